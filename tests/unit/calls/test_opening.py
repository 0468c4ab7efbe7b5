"""How a call begins: asking, ready or taken, and until when."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.calls.opening import opened_event
from farhand.core.call import Phase
from farhand.core.tool import Executor, Tool
from farhand.store.base import Due, Stale
from tests.requirement import requirement
from tests.unit.calls.bench import ANN, ANY_OUTPUT, BY_CLIENT, ON_SERVER, OPEN_URL, Bench

THREE_DAYS = 3 * 24 * 3600


@requirement("calls:deadline-defaults")
@pytest.mark.parametrize(
    ("tool", "held", "seconds"),
    [
        (OPEN_URL, True, 60),
        (OPEN_URL, False, THREE_DAYS),
        (BY_CLIENT, True, 30),
        (BY_CLIENT, False, 30),
        (replace(OPEN_URL, timeout_sec=7.5), True, 7.5),
        (replace(OPEN_URL, timeout_sec=7.5), False, 7.5),
        (replace(BY_CLIENT, timeout_sec=86_400.0), True, 86_400),
        (ON_SERVER, True, 121),
        (replace(ON_SERVER, timeout_sec=5.0), False, 6),
    ],
)
async def test_a_call_that_is_ready_has_its_deadline_from_then_on(
    bench: Bench, tool: Tool, held: bool, seconds: float
) -> None:
    call = await bench.put(replace(bench.opening(tool), held=held))
    assert call.deadline == bench.clock.now() + seconds
    assert await bench.stored(call) == call
    assert bench.dues == [Due(call.deadline, ANN, call.call_id)]


@requirement("calls:deadline-defaults")
@pytest.mark.parametrize("tool", [OPEN_URL, ON_SERVER, BY_CLIENT])
async def test_a_question_waits_as_long_as_a_park_or_as_its_tool_says(bench: Bench, tool: Tool) -> None:
    asking = bench.desk.prepare(bench.opening(tool, asks=True))
    assert asking.phase is Phase.ASKING
    assert asking.deadline == bench.clock.now() + THREE_DAYS
    hasty = replace(tool, timeout_sec=5.0, approval_timeout_sec=20.0)
    assert bench.desk.prepare(bench.opening(hasty, asks=True)).deadline == bench.clock.now() + 20


async def test_a_server_tool_is_taken_as_it_is_opened(bench: Bench) -> None:
    call = bench.desk.prepare(bench.opening(ON_SERVER, run=await bench.start_run()))
    assert call.phase is Phase.TAKEN
    assert call.take is not None
    assert call.take.holder == "server"
    assert not call.blocks


async def test_a_server_tool_that_asks_waits_for_the_yes(bench: Bench) -> None:
    call = bench.desk.prepare(bench.opening(ON_SERVER, asks=True))
    assert call.phase is Phase.ASKING
    assert call.blocks


@requirement("calls:always-in-thread")
@pytest.mark.parametrize(("tool", "phase"), [(OPEN_URL, Phase.READY), (ON_SERVER, Phase.TAKEN)])
async def test_a_yes_for_the_whole_thread_is_kept_with_the_call(
    bench: Bench, tool: Tool, phase: Phase
) -> None:
    call = bench.desk.prepare(replace(bench.opening(tool, asks=True), allowed_before=True))
    assert call.phase is phase
    assert call.approval is not None
    assert call.approval.answer is not None
    assert call.approval.answer.approved
    assert call.approval.answered_at == bench.clock.now()
    assert opened_event(call).approval_id is None


async def test_the_event_of_an_opened_call_tells_what_a_far_hand_needs(bench: Bench) -> None:
    call = bench.desk.prepare(bench.opening(replace(ANY_OUTPUT, card="link"), asks=True))
    assert call.approval is not None
    event = opened_event(call)
    assert (event.call_id, event.tool, event.executor) == (call.call_id, "ask_text", Executor.FRONTEND)
    assert (event.input, event.phase, event.card) == (call.input, Phase.ASKING, "link")
    assert (event.approval_id, event.deadline) == (call.approval.approval_id, call.deadline)


async def test_calls_are_opened_together_or_not_at_all(bench: Bench) -> None:
    known = await bench.open()
    fresh = bench.desk.prepare(bench.opening())
    bench.dues.clear()
    assert isinstance(await bench.desk.open([(fresh, ANY_OUTPUT), (known, ANY_OUTPUT)]), Stale)
    assert await bench.store.get_call(ANN, fresh.call_id) is None
    assert bench.dues == []
