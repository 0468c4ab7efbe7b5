"""Every event of the log as JSON."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from msgspec.structs import replace

from farhand.core.approval import Answer, Approval
from farhand.core.call import Phase
from farhand.core.event import (
    ApprovalAnswered,
    CallOpened,
    CallRejected,
    Event,
    Notice,
    RunFinished,
    StepFinished,
    TakeRenewed,
    TextAdded,
)
from farhand.core.outcome import Failure
from farhand.core.run import RunState, Usage
from farhand.core.tool import Executor

ASKED = Approval(approval_id="apr_1", digest="d")
YES, NO = Answer(approved=True), Answer(approved=False, reason="too dear")
OPENED = CallOpened(call_id="call_1", tool="t", tool_version="v", executor=Executor.SERVER, input={})


def test_an_event_is_read_from_json_as_it_was_written() -> None:
    events: list[Event] = [
        StepFinished(1, "end", Usage(3, 4)),
        RunFinished(RunState.STOPPED, "stopped by the user"),
        TextAdded(0, "\u00fc"),
        replace(OPENED, approval=ASKED),
        CallRejected(call_id="call_1", tool="t", input="no", error="No.", failure=Failure("Not at all.")),
    ]
    assert [msgspec.json.decode(msgspec.json.encode(event), type=Event) for event in events] == events


def test_every_event_has_a_tag_of_its_own() -> None:
    kinds = [*get_args(Event), *get_args(Notice)]
    tags = [kind.__struct_config__.tag for kind in kinds]
    assert len(set(tags)) == len(kinds)


@pytest.mark.parametrize(
    ("opened", "phase", "approval_id"),
    [
        (OPENED, Phase.READY, None),
        (replace(OPENED, holder="server"), Phase.TAKEN, None),
        (replace(OPENED, approval=ASKED), Phase.ASKING, "apr_1"),
        (replace(OPENED, approval=replace(ASKED, answer=YES)), Phase.READY, None),
    ],
)
def test_an_opened_call_asks_or_is_ready_or_runs(
    opened: CallOpened, phase: Phase, approval_id: str | None
) -> None:
    assert (opened.phase, opened.approval_id) == (phase, approval_id)


@pytest.mark.parametrize(
    ("answer", "approved", "reason"), [(YES, True, ""), (NO, False, "too dear"), (None, False, "")]
)
def test_an_answer_says_whether_it_was_an_approval_and_why_not(
    answer: Answer | None, approved: bool, reason: str
) -> None:
    event = ApprovalAnswered(
        call_id="call_1",
        tool="t",
        executor=Executor.SERVER,
        approval=replace(ASKED, answer=answer),
        input={},
    )
    assert (event.approval_id, event.approved, event.reason) == ("apr_1", approved, reason)


def test_a_feed_has_what_happens_to_runs_and_calls_and_not_what_a_model_writes() -> None:
    assert OPENED.in_feed
    assert not TextAdded(0, "x").in_feed
    assert not TakeRenewed("call_1", "tab").in_feed
