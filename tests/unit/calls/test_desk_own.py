"""What the server does itself: run its tools, expire overdue calls, cancel unneeded ones."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.calls.desk import BACKSTOP_SEC, executing_worker
from farhand.core.call import Phase, ProgramRequest
from farhand.core.decide.calls import CHANGED, UNKNOWN_END
from farhand.core.event import CallSettled, CallTaken
from farhand.core.outcome import Cancelled, Failure, Success, TimedOut, digest
from farhand.core.result import Accepted, Conflict, Refused, Repeated, Unknown, Winner
from farhand.core.tool import Tool
from tests.requirement import requirement
from tests.unit.calls.desk_harness import ANN, ANY_OUTPUT, BOB, BY_CLIENT, ON_SERVER, WORKER, YES, Bench

OTHER = "wrk_other"
HASTY = replace(ON_SERVER, timeout_sec=5.0)


async def test_a_tool_that_ran_here_settles_like_any_other(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(ON_SERVER, run=run)
    assert await bench.desk.finish(call, Success("done")) == Accepted()
    assert (await bench.stored(call)).outcome == Success("done")
    assert [type(event) for event in await bench.moves(run)] == [CallSettled]


async def test_a_second_end_of_a_tool_that_ran_here_changes_nothing(bench: Bench) -> None:
    call = await bench.open(ON_SERVER)
    await bench.desk.finish(call, Success("done"))
    winner = Winner("success", digest(Success("done")), bench.clock.now())
    assert await bench.desk.finish(call, Success("done")) == Repeated()
    assert await bench.desk.finish(call, Failure("broke")) == Conflict(winner)


@requirement("calls:deadline")
async def test_a_tool_that_comes_back_after_the_stored_deadline_is_too_late(bench: Bench) -> None:
    call = await bench.open(HASTY)
    bench.clock.advance(6)
    assert await bench.desk.finish(call, Success("late")) == Refused(
        "expired", Winner("timed_out", digest(TimedOut(5.0)), bench.clock.now())
    )


@requirement("calls:not-before-approval")
async def test_a_tool_that_was_not_approved_is_neither_started_nor_finished(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(ON_SERVER, asks=True, run=run)
    direct = await bench.open(ON_SERVER, asks=True)
    assert await bench.desk.start(call, ON_SERVER, fence=run.fence) is None
    assert await bench.desk.start_direct(direct, ON_SERVER, WORKER) is None
    for each in (call, direct):
        assert await bench.desk.finish(each, Success("forged")) == Refused("not_approved")
        assert await bench.stored(each) == each


async def test_the_end_of_a_call_that_is_not_stored_is_unknown(bench: Bench) -> None:
    call = replace(await bench.open(ON_SERVER), call_id=bench.clock.fresh("call"))
    assert await bench.desk.finish(call, Success(1)) == Unknown()


@requirement("calls:deadline")
async def test_the_time_of_an_approved_tool_starts_when_it_does(bench: Bench) -> None:
    run = await bench.start_run()
    asking = await bench.open(HASTY, asks=True, run=run)
    await bench.answer(asking, YES)
    bench.clock.advance(1_000)
    started = await bench.desk.start(asking, HASTY, fence=run.fence)
    assert started == await bench.stored(asking)
    assert started is not None
    deadline = bench.clock.now() + 6
    assert (started.phase, started.deadline) == (Phase.TAKEN, deadline)
    assert (await bench.moves(run))[-1] == CallTaken(asking.call_id, "server", deadline)


@requirement("calls:deadline")
@pytest.mark.parametrize("own", [None, 5.0], ids=["by the settings", "by the tool"])
async def test_the_stored_deadline_of_a_runs_tool_is_its_time_and_the_backstop(
    bench: Bench, own: float | None
) -> None:
    run = await bench.start_run()
    call = await bench.open(replace(ON_SERVER, timeout_sec=own), run=run)
    due_at = bench.clock.now() + (own or bench.timeouts.server_tool) + BACKSTOP_SEC
    assert (call.phase, call.deadline, executing_worker(call)) == (Phase.TAKEN, due_at, None)
    assert await bench.stored(call) == call
    assert bench.expected == [call]


async def test_of_two_that_start_an_approved_tool_one_does(bench: Bench) -> None:
    asking = await bench.open(ON_SERVER, asks=True)
    await bench.answer(asking, YES)
    ready = await bench.stored(asking)
    first = await bench.desk.start_direct(ready, ON_SERVER, WORKER)
    assert first is not None
    assert executing_worker(first) == WORKER
    assert await bench.desk.start_direct(ready, ON_SERVER, OTHER) is None


async def test_no_tool_of_a_run_starts_for_a_claim_that_another_worker_has_ended(bench: Bench) -> None:
    run = await bench.start_run()
    asking = await bench.open(ON_SERVER, asks=True, run=run)
    await bench.answer(asking, YES)
    claimed = await bench.claim(run)
    assert await bench.desk.start(asking, ON_SERVER, fence=run.fence) is None
    assert (await bench.stored(asking)).phase is Phase.READY
    assert await bench.desk.start(asking, ON_SERVER, fence=claimed.fence) is not None


@requirement("calls:what-was-approved")
@pytest.mark.parametrize("tool", [None, replace(ON_SERVER, description="Deletes more.")])
async def test_a_tool_that_is_not_the_approved_one_fails_its_call_and_does_not_run(
    bench: Bench, tool: Tool | None
) -> None:
    run = await bench.start_run()
    in_run = await bench.open(ON_SERVER, asks=True, run=run)
    direct = await bench.open(ON_SERVER, asks=True)
    for call in (in_run, direct):
        await bench.answer(call, YES)
    assert await bench.desk.start(in_run, tool, fence=run.fence) is None
    assert await bench.desk.start_direct(await bench.stored(direct), tool, WORKER) is None
    assert [(await bench.stored(call)).outcome for call in (in_run, direct)] == [CHANGED, CHANGED]


@requirement("calls:deadline")
@pytest.mark.parametrize(
    ("tool", "seconds"), [(ANY_OUTPUT, 60.0), (BY_CLIENT, 30.0), (replace(ANY_OUTPUT, timeout_sec=2.5), 2.5)]
)
async def test_a_call_expires_at_its_deadline_and_not_before(
    bench: Bench, tool: Tool, seconds: float
) -> None:
    call = await bench.open(tool)
    bench.clock.advance(seconds - 0.01)
    assert not await bench.desk.expire(call)
    assert await bench.stored(call) == call
    bench.clock.advance(0.01)
    assert await bench.desk.expire(call)
    assert (await bench.stored(call)).outcome == TimedOut(seconds)


@requirement("calls:deadline")
async def test_a_call_in_any_open_phase_expires(bench: Bench) -> None:
    asking, taken = await bench.open(asks=True), await bench.open()
    await bench.desk.take(ANN, taken.call_id, "tab")
    bench.clock.advance(3 * 24 * 3600)
    assert await bench.desk.expire(asking)
    assert await bench.desk.expire(taken)


async def test_what_is_settled_or_gone_or_has_no_deadline_does_not_expire(bench: Bench) -> None:
    settled = await bench.open()
    await bench.settle(settled, Success(1))
    approved = await bench.open(ON_SERVER, asks=True, run=await bench.start_run())
    await bench.answer(approved, YES)
    bench.clock.advance(1e9)
    assert not await bench.desk.expire(settled)
    assert not await bench.desk.expire(approved)
    assert not await bench.desk.expire(replace(settled, call_id=bench.clock.fresh("call")))
    assert (await bench.stored(settled)).outcome == Success(1)


@requirement("calls:cancel")
async def test_a_cancel_settles_every_open_call_and_no_other(bench: Bench) -> None:
    run = await bench.start_run()
    tools = (ANY_OUTPUT, ON_SERVER, ANY_OUTPUT)
    openings = [bench.opening(tool, is_direct=False) for tool in tools]
    asks = bench.opening(asks=True, is_direct=False)
    asking, ready, own, done = await bench.open_step(run, asks, *openings)
    await bench.settle(done, Success(1))
    direct = await bench.put(bench.opening(), owner=BOB, thread="t2")
    calls = [*await bench.log.calls_of(ANN, run.run_id), direct]
    assert await bench.desk.cancel(calls, "stopped by the user") == 4
    outcomes = [(await bench.stored(call)).outcome for call in (asking, ready, own, direct, done)]
    assert outcomes == [*[Cancelled("stopped by the user")] * 4, Success(1)]
    assert not (await bench.stored_run(run)).waits


@requirement("calls:cancel")
async def test_a_cancel_against_a_result_that_came_first_leaves_that_result(bench: Bench) -> None:
    first, second = await bench.open(), await bench.open()
    await bench.settle(first, Success(1))
    assert await bench.desk.cancel([second, first], "stopped") == 1
    outcomes = [(await bench.stored(call)).outcome for call in (first, second)]
    assert outcomes == [Success(1), Cancelled("stopped")]


async def test_a_cancel_of_nothing_stops_nothing(bench: Bench) -> None:
    assert await bench.desk.cancel([], "stopped") == 0


@requirement("calls:cancel")
async def test_calls_whose_hand_is_gone_fail_and_what_was_not_approved_is_cancelled(bench: Bench) -> None:
    run = await bench.start_run()
    openings = [bench.opening(BY_CLIENT, asks=asks, is_direct=False) for asks in (True, False, False)]
    asking, ready, done = await bench.open_step(run, *openings)
    await bench.settle(done, Success(1))
    calls = await bench.log.calls_of(ANN, run.run_id)
    assert await bench.desk.give_up(calls, "the client left") == 2
    outcomes = [(await bench.stored(call)).outcome for call in (asking, ready, done)]
    assert outcomes == [Cancelled("the client left"), Failure("the client left"), Success(1)]
    assert not (await bench.stored_run(run)).waits


@requirement("calls:deadline")
async def test_without_a_run_the_time_of_a_tool_counts_from_the_approval(bench: Bench) -> None:
    asking = await bench.open(HASTY, asks=True)
    bench.clock.advance(1_000)
    await bench.answer(asking, YES)
    deadline = bench.clock.now() + 6
    assert (await bench.stored(asking)).deadline == deadline
    bench.clock.advance(2)
    started = await bench.desk.start_direct(await bench.stored(asking), HASTY, WORKER)
    assert started is not None
    assert started.deadline == deadline
    again = await bench.desk.start_direct(started, HASTY, OTHER)
    assert again is not None, "whoever starts it knows that the worker that had it is gone"
    assert (again.deadline, executing_worker(again)) == (deadline, OTHER)


@requirement("calls:deadline")
async def test_without_a_run_a_tool_is_not_started_after_its_deadline(bench: Bench) -> None:
    asking = await bench.open(HASTY, asks=True)
    await bench.answer(asking, YES)
    bench.clock.advance(6)
    assert await bench.desk.start_direct(await bench.stored(asking), HASTY, WORKER) is None
    assert (await bench.stored(asking)).outcome == TimedOut(5.0)


async def test_a_tool_whose_worker_is_gone_has_an_unknown_end_however_late_it_is(bench: Bench) -> None:
    call = await bench.open(HASTY)
    bench.clock.advance(3_600)
    assert await bench.desk.abandon(call)
    assert (await bench.stored(call)).outcome == UNKNOWN_END
    assert not await bench.desk.abandon(call)


async def test_a_tool_that_another_worker_took_over_is_not_abandoned(bench: Bench) -> None:
    call = await bench.open(ON_SERVER)
    taken_over = await bench.desk.start_direct(call, ON_SERVER, OTHER)
    assert not await bench.desk.abandon(call)
    assert await bench.stored(call) == taken_over


async def test_a_call_without_a_run_names_the_worker_that_executes_it(bench: Bench) -> None:
    assert executing_worker(await bench.open(ON_SERVER)) == WORKER
    nameless = replace(bench.opening(ON_SERVER), worker="")
    assert executing_worker(await bench.put(nameless)) is None
    assert executing_worker(await bench.open(BY_CLIENT)) is None
    assert executing_worker(await bench.open(ON_SERVER, asks=True)) is None


async def test_without_its_caller_a_call_is_cancelled_unless_it_is_approved_or_can_be_asked_for(
    bench: Bench,
) -> None:
    asking, approved = await bench.open(asks=True), await bench.open(asks=True)
    await bench.answer(approved, YES)
    requested = await bench.put(replace(bench.opening(), request=ProgramRequest(request_id="r1")))
    # as they were seen before the approval
    calls = [asking, approved, requested]
    assert await bench.desk.cancel_unwanted(calls, "nobody asks") == 1
    outcomes = [(await bench.stored(call)).outcome for call in calls]
    assert outcomes == [Cancelled("nobody asks"), None, None]
