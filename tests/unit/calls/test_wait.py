"""The one wait: it ends when the record says so, even without a notification."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
from msgspec.structs import replace

from farhand.calls import wait as wait_module
from farhand.calls.wait import RunWait, wait_until_answered, wait_until_settled
from farhand.core.call import Call
from farhand.core.decide.runs import StepResult, finish_step
from farhand.core.outcome import Cancelled, Success, TimedOut
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.state import ThreadState
from farhand.errors import ShuttingDown, StoreDown
from farhand.eventlog.log import EventLog
from farhand.eventlog.pubsub import Broker, freed_topic, thread_topic
from farhand.store.base import CallKey, FoundCall
from tests.requirement import requirement
from tests.unit.calls.desk_harness import ANN, ANY_OUTPUT, BOB, ON_SERVER, THREAD, WORKER, YES, Bench

T = TypeVar("T")


class Patient(RunWait):
    """As patient as it is told to be."""

    def __init__(self, eventlog: EventLog, run: Run, left: Callable[[], float] = lambda: 60.0) -> None:
        super().__init__(eventlog, run.run_id)
        self._left = left

    def seconds_left(self) -> float:
        return self._left()


@requirement("calls:wakes")
async def test_a_wait_ends_with_the_last_result(bench: Bench) -> None:
    run = await bench.start_run()
    calls = await bench.open_calls(run, ANY_OUTPUT, ANY_OUTPUT)
    async with _waiting(bench, run) as (wait, woken):
        await bench.settle(calls[0], Success(1))
        assert woken.empty()
        await bench.settle(calls[1], Success(2))
        assert await _bounded(woken.get()) == run.run_id
        assert wait.is_stale


async def test_who_waits_is_a_record_and_no_task(bench: Bench) -> None:
    run = await bench.start_run()
    await bench.open(run=run)
    tasks = len(asyncio.all_tasks())
    async with _waiting(bench, run):
        assert len(asyncio.all_tasks()) == tasks


@pytest.mark.slow
@requirement("calls:early-result")
async def test_a_wait_that_begins_after_the_result_looks_at_the_record_in_a_moment(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    await bench.settle(call, Success(1))
    async with _waiting(bench, run) as (wait, woken):
        await _bounded(woken.get())
        assert wait.is_stale


@requirement("calls:wakes")
async def test_a_deadline_ends_a_wait_like_a_result(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with _waiting(bench, run) as (wait, woken):
        bench.clock.advance(60)
        await bench.desk.expire(call)
        await _bounded(woken.get())
        assert wait.is_stale
    assert (await bench.stored(call)).outcome == TimedOut(60.0)


@requirement("calls:wakes")
async def test_a_notification_that_was_lost_costs_one_re_check(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broker, "publish", _lose)
    bench.log.broker.recheck = 0.01
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with _waiting(bench, run) as (wait, woken):
        await bench.settle(call, Success(1))
        await _bounded(woken.get())
        assert wait.is_stale


@requirement("calls:wakes")
async def test_a_wait_looks_at_the_record_when_its_thread_may_have_moved_on_without_a_word(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with _waiting(bench, run) as (wait, woken):
        with monkeypatch.context() as patch:
            patch.setattr(Broker, "publish", _lose)
            await bench.settle(call, Success(1))
        assert woken.empty()
        bench.log.broker.invalidate(thread_topic(ANN, THREAD))
        await _bounded(woken.get())
        assert wait.is_stale


@requirement("calls:wakes")
async def test_what_is_told_while_the_record_is_read_is_not_slept_over(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with _waiting(bench, run) as (wait, woken):
        bench.log.broker.invalidate(freed_topic(run.run_id))
        await _bounded(woken.get())
        wait.begin_look()
        # awake: nobody is woken for it
        await bench.settle(call, Success(1))
        assert woken.empty()
        wait.sleep(woken.put_nowait)
        await _bounded(woken.get())
        wait.begin_look()
        bench.log.broker.invalidate(freed_topic(run.run_id))
        wait.sleep(woken.put_nowait)
        await _bounded(woken.get())


@requirement("calls:wakes")
async def test_an_alarm_of_an_earlier_sleep_wakes_nobody_and_who_sleeps_again_is_woken(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with _waiting(bench, run) as (wait, woken):
        for is_rung in (False, True):
            bench.log.broker.invalidate(freed_topic(run.run_id))
            await _bounded(woken.get())
            wait.begin_look()
            if is_rung:
                wait.fire(0.0)
            wait.sleep(woken.put_nowait)
            assert woken.empty()
        await bench.settle(call, Success(1))
        await _bounded(woken.get())


@requirement("calls:wakes")
async def test_a_wait_is_over_when_patience_is(bench: Bench) -> None:
    run = await bench.start_run()
    await bench.open(run=run)
    left = iter([0.01] * 4)
    async with _waiting(bench, run, lambda: next(left, 0.0)) as (wait, woken):
        await _bounded(woken.get())
        assert not wait.keeps_waiting()


@requirement("calls:wakes")
async def test_who_is_asked_again_for_patience_is_not_woken_each_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await bench.start_run()
    await bench.open(run=run)
    monkeypatch.setattr("farhand.calls.wait.JUST_STORED_SEC", 60.0)
    left = iter([0.001] * 10)
    async with _waiting(bench, run, lambda: next(left, 0.0)) as (wait, woken):
        await _bounded(woken.get())
        assert next(left, None) is None
        assert not wait.is_stale


@requirement("calls:wakes")
async def test_a_wait_ends_when_another_claim_takes_the_run(bench: Bench) -> None:
    bench.log.broker.recheck = 0.01
    run = await bench.start_run()
    await bench.open(run=run)
    async with _waiting(bench, run) as (wait, woken):
        await bench.claim(run)
        await _bounded(woken.get())
        assert wait.is_stale


async def test_a_wait_that_was_ended_wakes_nobody_and_leaves_nothing_behind(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with _waiting(bench, run) as (wait, woken):
        wait.end()
        assert not wait.listens
        topics = (freed_topic(run.run_id), call.call_id, thread_topic(ANN, THREAD))
        assert not any(bench.log.broker.count(topic) for topic in topics)
        await bench.settle(call, Success(1))
        wait.fire(0.0)
        wait.end()
        assert woken.empty()


async def test_when_the_process_is_about_to_stop_a_wait_wakes_nobody(bench: Bench) -> None:
    run = await bench.start_run()
    await bench.open(run=run)
    async with _waiting(bench, run) as (_, woken):
        bench.log.broker.close()
        assert woken.empty()


async def test_how_long_to_be_patient_is_for_whoever_waits_to_say(bench: Bench) -> None:
    with pytest.raises(NotImplementedError):
        RunWait(bench.log, "run").seconds_left()


@requirement("calls:wakes")
async def test_a_call_without_a_run_is_waited_for_until_its_result(bench: Bench) -> None:
    call = await bench.open()
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_bounded(wait_until_settled(bench.log, call)))
        await _sleeping(bench, call.call_id)
        await bench.desk.take(ANN, call.call_id, "tab")
        await bench.settle(call, Success(1))
    assert wait.result() == await bench.stored(call)


@requirement("calls:wakes")
async def test_a_server_tool_without_a_run_is_waited_for_until_it_has_ended(bench: Bench) -> None:
    call = await bench.open(ON_SERVER, asks=True)
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_bounded(wait_until_settled(bench.log, call)))
        await _sleeping(bench, call.call_id)
        await bench.answer(call, YES)
        started = await bench.desk.start_direct(await bench.stored(call), ON_SERVER, WORKER)
        assert started is not None
        await _sleeping(bench, call.call_id)
        assert not wait.done()
        await bench.desk.finish(started, Success("done"))
    assert wait.result() == await bench.stored(call)


@requirement("calls:wakes")
async def test_some_calls_of_a_run_are_waited_for_whatever_else_is_open(bench: Bench) -> None:
    run = await bench.start_run()
    _, *awaited = await bench.open_calls(run, ANY_OUTPUT, ANY_OUTPUT, ANY_OUTPUT)
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(
            _bounded(wait_until_answered(bench.log, run, awaited, seconds_left=lambda: 60.0))
        )
        await _sleeping(bench, awaited[0].call_id)
        for call in awaited:
            assert not wait.done()
            await bench.settle(call, Success(1))
    assert wait.result()


@requirement("calls:wakes")
async def test_a_call_that_was_opened_ahead_of_the_store_is_waited_for(bench: Bench) -> None:
    run = await bench.start_run()
    opening = replace(bench.opening(is_direct=False), step=1)
    step = StepResult(step=1, stop_reason="calls", calls=(opening,))
    call = await bench.log.decide_uncommitted(
        ANN,
        THREAD,
        lambda state, now: finish_step(
            state, run.fence, step, now=now, settings=bench.settings, calls_left=1
        ),
        lambda state, _: state.calls[opening.call_id],
    )
    left = iter([0.01, 0.0])
    assert not await _bounded(wait_until_answered(bench.log, run, [call], seconds_left=lambda: next(left)))


async def test_a_wait_for_some_calls_is_over_when_the_run_has_something_to_do(bench: Bench) -> None:
    run = await bench.start_run()
    far, asking = await bench.open_step(
        run, bench.opening(is_direct=False), bench.opening(ON_SERVER, asks=True, is_direct=False)
    )
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(
            _bounded(wait_until_answered(bench.log, run, [far], seconds_left=lambda: 60.0))
        )
        await _sleeping(bench, far.call_id)
        await bench.answer(asking, YES)
    assert wait.result()


async def test_a_wait_for_some_calls_is_over_when_patience_is(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    left = iter([0.01, 0.0])
    assert not await _bounded(wait_until_answered(bench.log, run, [call], seconds_left=lambda: next(left)))


@requirement("calls:wakes")
async def test_who_waits_for_a_call_is_woken_when_its_thread_may_have_moved_on_without_a_word(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await bench.start_run()
    in_run, direct = await bench.open(run=run), await bench.open()
    async with asyncio.TaskGroup() as group:
        group.create_task(_bounded(wait_until_settled(bench.log, direct)))
        some = group.create_task(
            _bounded(wait_until_answered(bench.log, run, [in_run], seconds_left=lambda: 60.0))
        )
        for call in (in_run, direct):
            await _sleeping(bench, call.call_id)
        with monkeypatch.context() as patch:
            patch.setattr(Broker, "publish", _lose)
            await bench.desk.cancel([in_run, direct], "stopped")
        bench.log.broker.invalidate(thread_topic(ANN, THREAD))
    assert some.result()


@requirement("calls:wakes")
async def test_a_wait_for_a_call_that_is_shaken_during_its_look_looks_again_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await bench.start_run()
    in_run, direct = await bench.open(run=run), await bench.open()
    get_call = bench.log.get_call

    async def overtaken(owner: Owner, call_id: str) -> Call | None:
        """Another process settles the call when this one has just read it."""
        call = await get_call(owner, call_id)
        if call is not None and call.outcome is None:
            with monkeypatch.context() as patch:
                patch.setattr(Broker, "publish", _lose)
                await bench.desk.cancel([call], "stopped")
            bench.log.broker.invalidate(thread_topic(ANN, THREAD))
        return call

    with monkeypatch.context() as patched:
        patched.setattr(bench.log, "get_call", overtaken)
        found = await _bounded(wait_until_settled(bench.log, direct))
    assert found is not None
    assert found.outcome == Cancelled("stopped")
    read = bench.log.read

    async def overtaken_read(owner: Owner, thread_id: str, view: Callable[[ThreadState], T]) -> T:
        seen = await read(owner, thread_id, view)
        if await bench.desk.cancel([in_run], "stopped"):
            bench.log.broker.invalidate(thread_topic(ANN, THREAD))
        return seen

    monkeypatch.setattr(bench.log, "read", overtaken_read)
    assert await _bounded(wait_until_answered(bench.log, run, [in_run], seconds_left=lambda: 60.0))


async def test_a_wait_for_a_call_ends_when_its_thread_is_deleted(bench: Bench) -> None:
    call = await bench.open()
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_bounded(wait_until_settled(bench.log, call)))
        await _sleeping(bench, call.call_id)
        assert await bench.log.delete(ANN, call.thread_id)
    assert wait.result() is None


async def test_a_wait_for_a_call_ends_when_the_process_is_about_to_stop(bench: Bench) -> None:
    call = await bench.open()
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_refused(bench, call))
        await _sleeping(bench, call.call_id)
        bench.log.broker.close()
    assert isinstance(wait.result(), ShuttingDown)
    assert await bench.stored(call) == call


@requirement("calls:owner")
async def test_nobody_waits_for_a_call_of_another_owner(bench: Bench) -> None:
    call = await bench.open()
    assert await _bounded(wait_until_settled(bench.log, replace(call, owner=BOB))) is None


async def _refused(bench: Bench, call: Call) -> ShuttingDown | None:
    try:
        await _bounded(wait_until_settled(bench.log, call))
    except ShuttingDown as error:
        return error
    return None


@asynccontextmanager
async def _waiting(
    bench: Bench, run: Run, left: Callable[[], float] = lambda: 60.0
) -> AsyncIterator[tuple[Patient, asyncio.Queue[str]]]:
    """Asleep, with what it is woken for."""
    woken: asyncio.Queue[str] = asyncio.Queue()
    wait = Patient(bench.log, run, left)
    wait.listen(run.owner, run.thread_id)
    assert wait.keeps_waiting()
    wait.sleep(woken.put_nowait)
    yield wait, woken
    wait.end()


async def _bounded(work: Coroutine[None, None, T]) -> T:
    async with asyncio.timeout(10):
        return await work


async def _sleeping(bench: Bench, topic: str) -> None:
    """Until somebody watches the topic: the wait reads the record only after that."""
    for _ in range(1_000):
        if bench.log.broker.count(topic):
            return
        await asyncio.sleep(0)
    raise AssertionError(f"nobody watches {topic}")


def _lose(broker: Broker, topic: str, item: object) -> None:
    """In place of telling."""


@requirement("calls:wakes")
async def test_a_wait_for_a_call_goes_on_while_the_store_is_down(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = await bench.open()
    get_call = bench.log.get_call
    errors = [StoreDown("The store is away.")] * 3

    async def away(owner: Owner, call_id: str) -> Call | None:
        if errors:
            raise errors.pop()
        return await get_call(owner, call_id)

    await bench.desk.cancel([direct], "stopped")
    monkeypatch.setattr(wait_module, "STORE_RETRY_SEC", 0.001)
    monkeypatch.setattr(bench.log, "get_call", away)
    found = await _bounded(wait_until_settled(bench.log, direct))
    assert found is not None
    assert found.outcome == Cancelled("stopped")
    assert errors == []


@requirement("calls:wakes")
async def test_a_wait_for_a_call_that_another_process_opened_goes_on_while_the_store_is_down(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = await bench.open()
    await bench.desk.cancel([direct], "stopped")
    find_call, errors = bench.store.find_call, [StoreDown("The store is away.")] * 3

    async def away(owner: Owner, kind: CallKey, value: str) -> FoundCall | None:
        if errors:
            raise errors.pop()
        return await find_call(owner, kind, value)

    monkeypatch.setattr(wait_module, "STORE_RETRY_SEC", 0.001)
    monkeypatch.setattr(bench.store, "find_call", away)
    found = await _bounded(wait_until_settled(EventLog(bench.store), direct))
    assert found is not None
    assert found.outcome == Cancelled("stopped")
    assert errors == []
