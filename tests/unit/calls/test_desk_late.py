"""Calls that their thread's state has dropped: latecomers get the same receipt."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.calls.desk import Desk, Reply, Submission
from farhand.core.approval import Answer
from farhand.core.call import Call
from farhand.core.decide.decision import Decision
from farhand.core.event import RunFinished
from farhand.core.fold import SETTLED_KEPT
from farhand.core.outcome import Cancelled, Failure, Success, digest
from farhand.core.result import Accepted, Conflict, Receipt, Refused, Repeated, Result, Unknown, Winner
from farhand.core.run import Run, RunState
from farhand.core.tool import Tool
from farhand.errors import Malformed
from farhand.eventlog.log import EventLog
from tests.requirement import requirement
from tests.unit.calls.desk_harness import ANN, ANY_OUTPUT, BOB, NO, ON_SERVER, OPEN_URL, YES, Bench


@requirement("calls:first-wins")
async def test_a_result_for_a_call_of_an_older_run_is_told_how_that_call_ended(bench: Bench) -> None:
    run = await bench.start_run()
    done, cancelled = await bench.open_calls(run, ANY_OUTPUT, ANY_OUTPUT)
    await bench.settle(done, Success(1))
    await bench.desk.cancel([cancelled], "stopped")
    at = bench.clock.now()
    await _begin_another_run(bench, run)
    assert await bench.settle(done, Success(1)) == Repeated()
    assert await bench.settle(done, Success(2)) == Conflict(Winner("success", digest(Success(1)), at))
    ended = Winner("cancelled", digest(Cancelled("stopped")), at)
    assert await bench.settle(cancelled, Success(1)) == Refused("cancelled", ended)
    assert await bench.desk.take(ANN, cancelled.call_id, "tab") == Refused("cancelled", ended)
    assert await bench.desk.release(ANN, cancelled.call_id, "tab") == Refused("cancelled", ended)
    assert await bench.settle(done, Success(1), owner=BOB) == Unknown()


async def test_an_answer_to_a_question_of_an_older_run_is_told_what_was_answered(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(asks=True, run=run)
    await bench.answer(call, NO)
    await _begin_another_run(bench, run)
    assert await bench.answer(call, NO) == Repeated()
    bad_edit = Answer(approved=True, input={"url": 5})
    for answer in (YES, bad_edit):
        assert await bench.answer(call, answer) == Conflict(Winner("denied", digest(NO), bench.clock.now()))


async def test_a_tool_that_ends_after_its_run_is_told_that_it_was_cancelled(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(ON_SERVER, run=run)
    await bench.desk.cancel([call], "stopped")
    await _begin_another_run(bench, run)
    ended = Winner("cancelled", digest(Cancelled("stopped")), bench.clock.now())
    assert await bench.desk.finish(call, Success("late")) == Refused("cancelled", ended)
    assert await bench.settle(call, Success("forged")) == Unknown()
    assert await bench.desk.take(ANN, call.call_id, "tab") == Unknown()


@requirement("calls:first-wins")
async def test_of_many_calls_of_a_program_the_oldest_is_remembered_by_the_look_up(bench: Bench) -> None:
    first = await bench.open()
    await bench.settle(first, Success(0))
    for _ in range(SETTLED_KEPT):
        await bench.settle(await bench.open(), Success(1))
    kept = await bench.log.read(ANN, first.thread_id, lambda thread: len(thread.calls))
    assert kept == SETTLED_KEPT
    assert await bench.settle(first, Success(0)) == Repeated()
    assert isinstance(await bench.settle(first, Success(1)), Conflict)


@requirement("calls:first-wins")
async def test_what_a_purge_removed_is_unknown(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    await bench.settle(call, Success(1))
    await _begin_another_run(bench, run)
    bench.clock.advance(60)
    await bench.log.purge(before=bench.clock.now())
    assert await bench.settle(call, Success(1)) == Unknown()


async def test_a_message_for_several_threads_is_answered_in_the_order_in_which_it_was_brought(
    bench: Bench,
) -> None:
    here, there = await bench.open(), await bench.put(bench.opening(), thread="t2")
    asking = await bench.put(bench.opening(asks=True), thread="t2")
    receipts = await bench.desk.accept(
        ANN,
        _result(here, 1),
        _result(there, 1),
        Result(call_id=bench.clock.fresh("call"), outcome=Success(1)),
        _reply(asking, YES),
        _result(here, 2),
        _result(there, 1),
    )
    kinds = [type(receipt) for receipt in receipts]
    assert kinds == [Accepted, Accepted, Unknown, Accepted, Conflict, Repeated]


async def test_a_bad_edit_in_one_thread_keeps_all_threads_of_the_message_as_they_were(bench: Bench) -> None:
    ready = await bench.open()
    asking = await bench.put(bench.opening(asks=True), thread="t2")
    bad = Answer(approved=True, input={"url": 5})
    with pytest.raises(Malformed):
        await bench.desk.accept(ANN, _result(ready, 1), _reply(asking, bad))
    assert await bench.stored(ready) == ready
    assert await bench.stored(asking) == asking


@requirement("calls:output-check")
async def test_the_schema_of_a_tool_is_read_once_for_all_its_results(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = _counted_reads(bench.log, monkeypatch)
    for number in range(3):
        call = await bench.open(OPEN_URL)
        await bench.settle(call, Success({"viewKey": number}))
        assert isinstance((await bench.stored(call)).outcome, Failure)
    assert reads == [OPEN_URL.version]


@requirement("calls:output-check")
async def test_of_very_many_tools_some_schemas_are_read_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.calls.desk.TOOLS_KEPT", 1)
    reads = _counted_reads(bench.log, monkeypatch)
    other = replace(OPEN_URL, name="open_other")
    for tool in (OPEN_URL, other, OPEN_URL):
        await bench.settle(await bench.open(tool), Success({"viewKey": "v"}))
    assert reads == [OPEN_URL.version, other.version, OPEN_URL.version]


@requirement("calls:output-check")
async def test_without_a_record_of_its_tool_a_result_is_taken_as_it_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(version: str) -> Tool | None:
        return None

    call, asking = await bench.open(OPEN_URL), await bench.open(OPEN_URL, asks=True)
    monkeypatch.setattr(bench.log, "get_tool", nothing)
    assert await bench.settle(call, Success({"viewKey": 3})) == Accepted()
    assert (await bench.stored(call)).outcome == Success({"viewKey": 3})
    assert await bench.answer(asking, Answer(approved=True, input={"url": 5})) == Accepted()


@requirement("calls:first-wins")
async def test_a_second_log_on_the_same_store_finds_the_call_and_its_end(bench: Bench) -> None:
    """As after a restart: nothing is cached."""
    run = await bench.start_run()
    call = await bench.open(run=run)
    await bench.settle(call, Success(1))
    await _begin_another_run(bench, run)
    later = Desk(EventLog(bench.store), bench.timeouts)
    receipts: list[Receipt] = [
        await later.settle(ANN, _result(call, 1)),
        await later.settle(ANN, _result(call, 2)),
        await later.settle(BOB, _result(call, 1)),
    ]
    assert [type(receipt) for receipt in receipts] == [Repeated, Conflict, Unknown]


async def _begin_another_run(bench: Bench, run: Run) -> None:
    """The calls of the run before are not in the state any more."""
    finished = RunFinished(RunState.DONE)
    await bench.log.decide(ANN, run.thread_id, lambda thread, now: Decision(None, (finished,)))
    await bench.start_run()
    assert await bench.log.read(ANN, run.thread_id, lambda thread: thread.calls) == {}


def _counted_reads(eventlog: EventLog, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    get_tool = eventlog.get_tool
    reads: list[str] = []

    async def counted(version: str) -> Tool | None:
        reads.append(version)
        return await get_tool(version)

    monkeypatch.setattr(eventlog, "get_tool", counted)
    return reads


def _result(call: Call, output: object) -> Result:
    return Result(call_id=call.call_id, outcome=Success(output))


def _reply(call: Call, answer: Answer) -> Submission:
    assert call.approval is not None
    return Reply(call.approval.approval_id, answer)
