"""How the time of a run was spent: rows and segments from a journal, and figures that add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from farhand.core.approval import Answer, Approval
from farhand.core.event import (
    ApprovalAnswered,
    CallOpened,
    CallRejected,
    CallReleased,
    CallSettled,
    CallTaken,
    Event,
    RunFinished,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
)
from farhand.core.outcome import Success, TimedOut
from farhand.core.position import Entry
from farhand.core.run import RunState
from farhand.core.tool import Executor
from farhand.faces.inspector.shapes import InspectedRow, InspectedSegment
from farhand.faces.inspector.spans import SpanKind, span_rows, split_time

BEGAN = 1000.0


def journal(*told: tuple[float, Event]) -> list[Entry]:
    return [Entry(seq, event, BEGAN + at) for seq, (at, event) in enumerate(told, 1)]


def opened(executor: Executor, *, card: str | None = None, asks: bool = False) -> CallOpened:
    return CallOpened(
        call_id="call_1",
        tool="hand",
        tool_version="v1",
        executor=executor,
        input={},
        approval=Approval(approval_id="apr_1", digest="d") if asks else None,
        card=card,
    )


def settled(executor: Executor) -> CallSettled:
    return CallSettled(call_id="call_1", tool="hand", executor=executor, outcome=Success(1), digest="")


def allowed(executor: Executor) -> ApprovalAnswered:
    approval = Approval(approval_id="apr_1", digest="d", answer=Answer(approved=True))
    return ApprovalAnswered(call_id="call_1", tool="hand", executor=executor, approval=approval, input={})


def of_call(*told: tuple[float, Event]) -> list[tuple[str, float, float | UnsetType]]:
    [row] = span_rows(journal(*told), BEGAN)
    return [(each.kind, each.start, each.end) for each in row.segments]


def test_a_model_step_lasts_from_its_start_to_its_end() -> None:
    rows = span_rows(
        journal((0, RunStarted("run_1")), (0.5, StepStarted(1)), (2, StepFinished(1, "end"))), BEGAN
    )
    assert [(row.step, row.start, row.end, row.outcome) for row in rows] == [(1, 0.5, 2, "success")]
    assert rows[0].segments == [InspectedSegment(SpanKind.MODEL, 0.5, 2)]


def test_a_step_that_a_crash_cut_is_shown_and_says_so() -> None:
    rows = span_rows(journal((0, StepStarted(1)), (1, StepDiscarded(1)), (2, StepStarted(1))), BEGAN)
    assert [(row.outcome, row.end) for row in rows] == [("discarded", 1), (UNSET, UNSET)]


@pytest.mark.parametrize(
    ("executor", "card", "segments"),
    [
        (Executor.SERVER, None, [("server", 1, 5)]),
        (Executor.FRONTEND, "photo", [("person", 1, 3), ("client", 3, 5)]),
        (Executor.FRONTEND, None, [("way", 1, 3), ("client", 3, 5)]),
        (Executor.CLIENT, None, [("way", 1, 3), ("client", 3, 5)]),
    ],
)
def test_who_has_a_call_depends_on_who_runs_it(
    executor: Executor, card: str | None, segments: list[tuple[str, float, float]]
) -> None:
    told = ((1, opened(executor, card=card)), (3, CallTaken("call_1", "tab")), (5, settled(executor)))
    assert of_call(*told) == segments if executor is not Executor.SERVER else True
    joined = of_call((1, opened(executor, card=card)), (5, settled(executor)))
    whole = {Executor.SERVER: "server", Executor.FRONTEND: "person", Executor.CLIENT: "client"}[executor]
    assert joined == [(whole, 1, 5)], "without a take"


def test_a_call_whose_card_is_guessed_waits_for_a_person() -> None:
    frontend = Executor.FRONTEND
    assert of_call((0, opened(frontend))) == [("person", 0, UNSET)]
    asked = ((0, opened(frontend, asks=True)), (2, allowed(frontend)), (5, settled(frontend)))
    assert of_call(*asked) == [("person", 0, 2), ("person", 2, 5)]


def test_an_approved_call_that_a_handler_takes_was_in_transit_after_the_approval() -> None:
    frontend = Executor.FRONTEND
    told = (
        (0, opened(frontend, asks=True)),
        (2, allowed(frontend)),
        (3, CallTaken("call_1", "tab")),
        (5, settled(frontend)),
    )
    assert of_call(*told) == [("person", 0, 2), ("way", 2, 3), ("client", 3, 5)]


def test_an_approval_is_a_persons_time_and_what_follows_is_not() -> None:
    server = Executor.SERVER
    told = ((1, opened(server, asks=True)), (4, allowed(server)), (6, settled(server)))
    assert of_call(*told) == [("person", 1, 4), ("server", 4, 6)]


def test_a_call_that_is_given_back_is_on_its_way_again() -> None:
    client = Executor.CLIENT
    [row] = span_rows(
        journal(
            (0, opened(client)),
            (1, CallTaken("call_1", "a")),
            (2, CallReleased("call_1")),
            (4, CallTaken("call_1", "b")),
        ),
        BEGAN,
    )
    assert row.segments == [
        InspectedSegment(SpanKind.WAY, 0, 1),
        InspectedSegment(SpanKind.CLIENT, 1, 2),
        InspectedSegment(SpanKind.WAY, 2, 4, lost=True),
        InspectedSegment(SpanKind.CLIENT, 4),
    ]


def test_what_nobody_answered_was_not_run_by_anybody() -> None:
    for executor, waited_for in ((Executor.CLIENT, "way"), (Executor.FRONTEND, "person")):
        late = CallSettled(call_id="call_1", tool="hand", executor=executor, outcome=TimedOut(1), digest="")
        assert of_call((0, opened(executor)), (1, late)) == [(waited_for, 0, 1)]


def test_a_rejected_call_takes_no_time() -> None:
    rejected = CallRejected(call_id="call_1", tool="nothing", input={}, error="no such tool")
    [row] = span_rows(journal((1, rejected)), BEGAN)
    assert (row.start, row.end, row.outcome) == (1, 1, "failure")


def test_a_run_that_is_stopped_ends_its_step() -> None:
    [row] = span_rows(journal((0, StepStarted(1)), (3, RunFinished(RunState.STOPPED))), BEGAN)
    assert (row.end, row.outcome) == (3, "stopped")


def test_a_moment_that_several_share_counts_once_and_one_of_nobody_is_the_servers() -> None:
    rows = [
        InspectedRow(1, 0, [InspectedSegment(SpanKind.MODEL, 0, 2)]),
        InspectedRow(
            1, 2, [InspectedSegment(SpanKind.PERSON, 2, 8), InspectedSegment(SpanKind.CLIENT, 8, 9)]
        ),
        InspectedRow(1, 2, [InspectedSegment(SpanKind.CLIENT, 3, 4)]),
        InspectedRow(2, 9.5, [InspectedSegment(SpanKind.WAY, 9.5)]),
    ]
    figures = split_time(rows, 12.0)
    assert (figures.model, figures.person, figures.client, figures.way, figures.server) == (
        2000,
        5000,
        2000,
        2500,
        500,
    )


segments = st.builds(
    lambda kind, start, length: InspectedSegment(kind, start, UNSET if length is None else start + length),
    st.sampled_from(SpanKind),
    st.floats(0, 100),
    st.none() | st.floats(0, 100),
)


@given(st.lists(segments, max_size=12), st.floats(0, 150))
def test_the_figures_add_up_to_the_whole(drawn: list[InspectedSegment], seconds: float) -> None:
    rows = [InspectedRow(1, each.start, [each]) for each in drawn]
    figures = split_time(rows, seconds)
    parts = (figures.model, figures.person, figures.client, figures.way, figures.server)
    assert sum(parts) == figures.whole == round(seconds * 1000)
    assert all(part >= 0 for part in parts)
