"""What this side does itself: run its tools, expire what is overdue, cancel what nobody wants any more."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.calls.desk import BACKSTOP_SEC, Desk, executing_worker
from farhand.core.call import Call, Phase
from farhand.core.event import CallSettled, CallTaken, RunFinished
from farhand.core.outcome import Cancelled, Failure, Success, TimedOut, digest
from farhand.core.result import Accepted, Conflict, Refused, Repeated, Unknown, Winner
from farhand.core.run import RunState
from farhand.core.tool import Tool
from farhand.store.base import Committed, Due, Stale, WriteRun
from tests.requirement import requirement
from tests.unit.calls.bench import ANN, ANY_OUTPUT, BY_CLIENT, ON_SERVER, YES, Bench


@requirement("calls:own-hands")
async def test_a_tool_that_ran_here_settles_like_any_other(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(ON_SERVER, run=run)
    assert await bench.desk.finish(call, Success("done")) == Accepted()
    assert (await bench.stored(call)).outcome == Success("done")
    assert [type(event) for event in await bench.events(run)] == [CallSettled]


@requirement("calls:own-hands")
async def test_a_second_end_of_a_tool_that_ran_here_changes_nothing(bench: Bench) -> None:
    call = await bench.open(ON_SERVER)
    await bench.desk.finish(call, Success("done"))
    winner = Winner("success", digest(Success("done")), bench.clock.now())
    assert await bench.desk.finish(call, Success("done")) == Repeated()
    assert await bench.desk.finish(call, Failure("broke")) == Conflict(winner)


@requirement("calls:deadline")
async def test_a_tool_that_comes_back_after_the_stored_deadline_is_too_late(bench: Bench) -> None:
    call = await bench.open(replace(ON_SERVER, timeout_sec=5.0))
    bench.clock.advance(6)
    assert await bench.desk.finish(call, Success("late")) == Refused(
        "expired", Winner("timed_out", digest(TimedOut(5.0)), bench.clock.now())
    )


@requirement("calls:not-before-approval")
async def test_a_tool_that_was_not_approved_is_neither_started_nor_finished(bench: Bench) -> None:
    call = await bench.open(ON_SERVER, asks=True)
    assert await bench.desk.start(call) is None
    assert await bench.desk.finish(call, Success("forged")) == Refused("not_approved")
    assert await bench.stored(call) == call


async def test_the_end_of_a_call_that_is_not_stored_is_unknown(bench: Bench) -> None:
    call = bench.desk.prepare(bench.opening(ON_SERVER))
    assert await bench.desk.finish(call, Success(1)) == Unknown()


@requirement("calls:deadline")
async def test_the_time_of_an_approved_tool_starts_when_it_does(bench: Bench) -> None:
    run = await bench.start_run()
    asking = await bench.open(replace(ON_SERVER, timeout_sec=5.0), asks=True, run=run)
    await bench.answer(asking, YES)
    bench.clock.advance(1_000)
    started = await bench.desk.start(await bench.stored(asking))
    assert started == await bench.stored(asking)
    assert started is not None
    assert (started.phase, started.deadline) == (Phase.TAKEN, bench.clock.now() + 6)
    assert (await bench.events(run))[-1] == CallTaken(asking.call_id, "server")


@requirement("calls:deadline")
@pytest.mark.parametrize("own", [None, 5.0], ids=["by the settings", "by the tool"])
async def test_the_stored_deadline_of_a_runs_tool_is_its_time_and_the_backstop(
    bench: Bench, own: float | None
) -> None:
    run = await bench.start_run()
    call = await bench.open(replace(ON_SERVER, timeout_sec=own), run=run)
    due_at = bench.clock.now() + (own or bench.patience.server_tool) + BACKSTOP_SEC
    assert (call.phase, call.deadline, executing_worker(call)) == (Phase.TAKEN, due_at, None)
    assert await bench.stored(call) == call
    assert bench.dues[-1] == Due(due_at, ANN, call.call_id)


@requirement("calls:own-hands")
async def test_of_two_that_start_an_approved_tool_one_does(bench: Bench) -> None:
    asking = await bench.open(ON_SERVER, asks=True)
    await bench.answer(asking, YES)
    ready = await bench.stored(asking)
    assert await bench.desk.start(ready) is not None
    assert await bench.desk.start(ready) is None


@requirement("calls:deadline")
@pytest.mark.parametrize(
    ("tool", "seconds"), [(ANY_OUTPUT, 60.0), (BY_CLIENT, 30.0), (replace(ANY_OUTPUT, timeout_sec=2.5), 2.5)]
)
async def test_a_call_expires_at_its_deadline_and_not_before(
    bench: Bench, tool: Tool, seconds: float
) -> None:
    call = await bench.open(tool)
    bench.clock.advance(seconds - 0.01)
    assert not await bench.desk.expire(_due(call))
    assert await bench.stored(call) == call
    bench.clock.advance(0.01)
    assert await bench.desk.expire(_due(call))
    assert (await bench.stored(call)).outcome == TimedOut(seconds)


@requirement("calls:deadline")
async def test_a_call_in_any_open_phase_expires(bench: Bench) -> None:
    asking, taken = await bench.open(asks=True), await bench.open()
    await bench.desk.take(ANN, taken.call_id, "tab")
    bench.clock.advance(3 * 24 * 3600)
    assert await bench.desk.expire(_due(asking))
    assert await bench.desk.expire(_due(taken))


async def test_what_is_settled_or_gone_or_has_no_deadline_does_not_expire(bench: Bench) -> None:
    settled = await bench.open()
    await bench.settle(settled, Success(1))
    approved = await bench.open(ON_SERVER, asks=True, run=await bench.start_run())
    await bench.answer(approved, YES)
    bench.clock.advance(1e9)
    assert not await bench.desk.expire(_due(settled))
    assert not await bench.desk.expire(_due(approved))
    assert not await bench.desk.expire(Due(0.0, ANN, bench.clock.fresh("call")))
    assert (await bench.stored(settled)).outcome == Success(1)


@requirement("calls:cancel")
async def test_a_cancel_settles_every_open_call_and_what_is_written_beside_it(bench: Bench) -> None:
    run = await bench.start_run()
    asking = await bench.open(asks=True, run=run)
    ready, own, done = [await bench.open(tool, run=run) for tool in (ANY_OUTPUT, ON_SERVER, ANY_OUTPUT)]
    await bench.settle(done, Success(1))
    calls = await bench.store.calls_of(ANN, run.run_id)
    commit = await bench.desk.cancel(calls, "stopped by the user", _end(run.run_id, run.fence))
    assert isinstance(commit, Committed)
    outcomes = [(await bench.stored(call)).outcome for call in (asking, ready, own, done)]
    assert outcomes == [*[Cancelled("stopped by the user")] * 3, Success(1)]
    assert (await bench.stored_run(run)).state is RunState.STOPPED


@requirement("calls:cancel")
async def test_a_cancel_against_a_result_that_came_first_changes_nothing(bench: Bench) -> None:
    run = await bench.start_run()
    first, second = await bench.open(run=run), await bench.open(run=run)
    await bench.settle(first, Success(1))
    commit = await bench.desk.cancel([second, first], "stopped", _end(run.run_id, run.fence))
    assert isinstance(commit, Stale)
    assert await bench.stored(second) == second
    assert (await bench.stored_run(run)).state is RunState.RUNNING


async def test_a_cancel_of_nothing_is_committed(bench: Bench) -> None:
    assert isinstance(await bench.desk.cancel([], "stopped"), Committed)


@requirement("calls:cancel")
async def test_calls_whose_hand_is_gone_fail_and_what_was_not_approved_is_cancelled(bench: Bench) -> None:
    run = await bench.start_run()
    asking = await bench.open(BY_CLIENT, asks=True, run=run)
    ready, done = await bench.open(BY_CLIENT, run=run), await bench.open(BY_CLIENT, run=run)
    await bench.settle(done, Success(1))
    calls = await bench.store.calls_of(ANN, run.run_id)
    assert isinstance(await bench.desk.give_up(calls, "the client left"), Committed)
    outcomes = [(await bench.stored(call)).outcome for call in (asking, ready, done)]
    assert outcomes == [Cancelled("the client left"), Failure("the client left"), Success(1)]
    assert (await bench.stored_run(run)).blockers == 0


def _due(call: Call) -> Due:
    return Due(call.deadline or 0.0, call.owner, call.call_id)


def _end(run_id: str, fence: int) -> WriteRun:
    return WriteRun(
        run_id=run_id, fence=fence, events=(RunFinished(RunState.STOPPED),), state=RunState.STOPPED
    )


@requirement("direct:deadline")
async def test_without_a_run_the_time_of_a_tool_counts_from_the_yes(bench: Bench) -> None:
    asking = await bench.open(replace(ON_SERVER, timeout_sec=5.0), asks=True)
    bench.clock.advance(1_000)
    await bench.answer(asking, YES)
    deadline = bench.clock.now() + 6
    assert (await bench.stored(asking)).deadline == deadline
    bench.clock.advance(2)
    started = await bench.desk.start(await bench.stored(asking))
    assert started is not None
    assert started.deadline == deadline
    again = await bench.desk.start(started)
    assert again is not None, "whoever starts it knows that the worker that had it is gone"
    assert again.deadline == deadline


@requirement("direct:deadline")
async def test_without_a_run_a_tool_is_not_started_after_its_deadline(bench: Bench) -> None:
    asking = await bench.open(replace(ON_SERVER, timeout_sec=5.0), asks=True)
    await bench.answer(asking, YES)
    bench.clock.advance(6)
    assert await bench.desk.start(await bench.stored(asking)) is None


@requirement("direct:in-flight")
async def test_a_call_without_a_run_names_the_worker_that_executes_it(bench: Bench) -> None:
    named = Desk(bench.store, bench.patience, worker="wrk_1")
    call = named.prepare(bench.opening(ON_SERVER))
    assert executing_worker(call) == "wrk_1"
    assert executing_worker(await bench.open(ON_SERVER)) is None, "a desk without a name"
    assert executing_worker(await bench.open(BY_CLIENT)) is None
    assert executing_worker(await bench.open(ON_SERVER, asks=True)) is None
