"""What the wires show of each event is pinned byte for byte: the log may hold more, readers see the same."""

from __future__ import annotations

from typing import NamedTuple, get_args

import pytest

from farhand.core.approval import Answer, Approval
from farhand.core.event import (
    THREAD_EVENTS,
    AnswerDelivered,
    ApprovalAnswered,
    CallBegun,
    CallersMoved,
    CallOpened,
    CallProgressed,
    CallRejected,
    CallReleased,
    CallSettled,
    CallTaken,
    ClientRegistered,
    ClientUnregistered,
    Echo,
    InputAdded,
    ModelDelayed,
    OutcomeReported,
    ReasoningAdded,
    RunFailed,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TakeRenewed,
    TextAdded,
)
from farhand.core.outcome import Failure
from farhand.core.position import Entry, Happening, News
from farhand.core.run import RunState, Usage
from farhand.core.tool import Executor
from farhand.faces.events import encode_news
from farhand.faces.inspector.event_text import event_json, event_line
from farhand.faces.inspector.redaction import redact_entries
from farhand.wire.json_writer import encode
from farhand.wire.sse import parse
from tests.requirement import requirement


def opened(executor: Executor, **more: object) -> CallOpened:
    # the log's own fields are there, too: no wire shows them
    fields = {"step": 2, "tool_version": "v1", "model_call_id": "toolu_1", "timeout_sec": 3.0, "input": {}}
    # fields by their names: a wrong one fails the test
    return CallOpened(call_id="c", tool="t", executor=executor, **{**fields, **more})  # type: ignore[arg-type]


ASKED = Approval(approval_id="apr_1", digest="d")
DENIED = Approval(
    approval_id="apr_1", digest="d", answer=Answer(approved=False, reason="no"), answered_at=4.0
)


class Case(NamedTuple):
    """`told` are the fields that follow on the type, on both wires unless the Inspector is told `more`."""

    event: Happening
    words: str
    told: str
    more: str | None = None

    @property
    def inspected(self) -> str:
        return self.told if self.more is None else self.more


CASES = [
    Case(
        RunStarted("run_1", "m1", 5.0),
        "chat t1",
        '"userMessageId":"m1"',
        '"threadId":"t1","userMessageId":"m1"',
    ),
    Case(StepStarted(1), "step 1", '"step":1'),
    Case(ModelDelayed("busy"), "busy", '"message":"busy"'),
    Case(TextAdded(0, "Hi"), "Hi", '"part":0,"text":"Hi"'),
    Case(ReasoningAdded(0, "Hm"), "Hm", '"part":0,"text":"Hm"'),
    Case(CallBegun("c", "t"), "t", '"callId":"c","tool":"t"'),
    Case(InputAdded("c", "{"), "t {", '"callId":"c","text":"{"'),
    Case(
        opened(Executor.FRONTEND, input={"a": 1}, deadline=9.0, card="photo"),
        "t, to open browsers of this chat",
        '"callId":"c","tool":"t","executor":"frontend","input":{"a":1},"phase":"ready","approvalId":null,'
        '"deadline":9.0,"card":"photo"',
    ),
    Case(
        opened(Executor.SERVER, approval=ASKED, deadline=9.0),
        "t, on the server, needs approval first",
        '"callId":"c","tool":"t","executor":"server","input":{},"phase":"asking","approvalId":"apr_1",'
        '"deadline":9.0,"card":null',
    ),
    Case(
        opened(Executor.SERVER, holder="server"),
        "t, on the server",
        '"callId":"c","tool":"t","executor":"server","input":{},"phase":"taken","approvalId":null,'
        '"deadline":null,"card":null',
    ),
    Case(
        CallRejected(call_id="c", tool="t", input={"a": 1}, error="no", failure=Failure("the whole story")),
        "t: no",
        '"callId":"c","tool":"t","input":{"a":1},"error":"no"',
    ),
    Case(
        ApprovalAnswered(call_id="c", tool="t", executor=Executor.SERVER, approval=DENIED, input={"a": 1}),
        "t, denied: no",
        '"callId":"c","approvalId":"apr_1","approved":false,"reason":"no","tool":"t","executor":"server",'
        '"input":{"a":1},"deadline":null',
    ),
    Case(CallTaken("c", "tab", 9.0), "t by tab", '"callId":"c","holder":"tab"'),
    Case(CallReleased("c"), "t", '"callId":"c"'),
    Case(
        CallSettled(
            call_id="c",
            tool="t",
            executor=Executor.SERVER,
            outcome=Failure("all of it", "a part"),
            digest="d",
            title="a title",
            metadata={"more": 1},
        ),
        "t, failure: all of it",
        '"callId":"c","tool":"t","executor":"server",'
        '"outcome":{"kind":"failure","error":"a part"},"digest":"d"',
        '"callId":"c","tool":"t","executor":"server",'
        '"outcome":{"kind":"failure","error":"all of it","public":"a part"},"digest":"d"',
    ),
    Case(
        StepFinished(1, "end", Usage(1, 2), (Echo(0, {"sealed": "x"}),)),
        "step 1, end",
        '"step":1,"stopReason":"end","usage":{"inputTokens":1,"outputTokens":2}',
    ),
    Case(StepDiscarded(1), "step 1", '"step":1'),
    Case(RunParked(), "saved while waiting; continues with its last answer", ""),
    Case(RunResumed(), "", "", '"takenOver":false'),
    Case(RunResumed(taken_over=True), "", '"takenOver":true'),
    Case(
        RunFinished(RunState.DONE, "end", delivered=True),
        "done, end",
        '"state":"done","reason":"end","heard":true',
    ),
    Case(
        RunFailed("code", "m", detail="for operators"),
        "for operators",
        '"code":"code","message":"m","heard":false',
        '"code":"code","message":"m","heard":false,"detail":"for operators"',
    ),
    Case(
        CallProgressed("c", "t", "half", "r1"),
        "t: half",
        '"callId":"c","tool":"t","text":"half","requestId":"r1"',
    ),
]


@requirement("events:told")
@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.event))
def test_an_event_of_a_feed_has_its_fields_in_their_order(case: Case) -> None:
    [frame] = parse([encode_news(News(7, 5.0, case.event, "t1", "run_1"), None)])
    kind = str(case.event.__struct_config__.tag)
    about = f'{{"type":"{kind}","at":5.0,"threadId":"t1","runId":"run_1"'
    assert (frame.event, frame.id) == (kind, "7.0")
    assert frame.data == (f"{about},{case.told}}}" if case.told else f"{about}}}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.event))
def test_the_inspector_shows_an_event_with_its_fields_and_in_words(case: Case) -> None:
    about = f'{{"type":"{case.event.__struct_config__.tag}"'
    whole = f"{about},{case.inspected}}}" if case.inspected else f"{about}}}"
    assert encode(event_json(case.event, "t1")).decode() == whole
    assert event_line(case.event, {"c": "t"}, "t1") == case.words


def test_names_that_readers_know_stay_though_the_log_has_others() -> None:
    assert event_json(AnswerDelivered(), "t1") == {"type": "answer-heard"}


def test_the_inspector_shows_who_came_and_who_left() -> None:
    came, left = ClientRegistered("k", ("a",)), ClientUnregistered("k", ("a",), "gone")
    about = {"clientId": "k", "tools": ("a",)}
    assert event_json(came, None) == {"type": "client-registered", **about}
    assert event_json(left, None) == {"type": "client-unregistered", **about, "reason": "gone"}


def test_what_only_the_log_needs_is_shown_by_no_wire() -> None:
    kinds = {kind for alias in get_args(Happening) for kind in (get_args(alias) or (alias,))}
    elsewhere = {AnswerDelivered, ClientRegistered, ClientUnregistered}
    assert kinds - {type(case.event) for case in CASES} - elsewhere == {
        CallersMoved,
        OutcomeReported,
        TakeRenewed,
        *THREAD_EVENTS,
    }
    entries = [Entry(1, CallTaken("c", "tab"), 0.0), Entry(2, TakeRenewed("c", "tab", 9.0), 0.0)]
    assert redact_entries(entries) == entries[:1]
