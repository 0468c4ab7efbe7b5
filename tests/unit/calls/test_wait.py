"""The one wait: it ends when the record says so, also when nobody told it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
from msgspec.structs import replace

from farhand.calls.wait import Wait, answered, settled
from farhand.core.call import Call
from farhand.core.outcome import Success, TimedOut
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.errors import ShuttingDown
from farhand.store.base import Due, Store
from farhand.store.hub import Hub, freed
from tests.requirement import requirement
from tests.unit.calls.bench import ANN, BOB, ON_SERVER, YES, Bench

T = TypeVar("T")


class Patient(Wait):
    """As patient as it is told to be."""

    def __init__(self, store: Store, run: Run, left: Callable[[], float] = lambda: 60.0) -> None:
        super().__init__(store, run.run_id)
        self._left = left

    def left(self) -> float:
        return self._left()


@requirement("calls:wakes")
async def test_a_wait_ends_with_the_last_result(bench: Bench) -> None:
    run = await bench.start_run()
    calls = [await bench.open(run=run), await bench.open(run=run)]
    async with _waiting(bench, run, calls) as (wait, woken):
        await bench.settle(calls[0], Success(1))
        assert woken.empty()
        await bench.settle(calls[1], Success(2))
        assert await _bounded(woken.get()) == run.run_id
        assert await wait.settled() == await bench.stored_run(run)
        known = wait.told()
    assert known == [await bench.stored(call) for call in calls]


@requirement("speed:no-task")
async def test_who_waits_is_a_record_and_reads_nothing_when_it_was_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    tasks = len(asyncio.all_tasks())
    looks = _counted_looks(bench, monkeypatch)
    async with _waiting(bench, run, [call]) as (wait, woken):
        assert len(asyncio.all_tasks()) == tasks
        await bench.settle(call, Success(1))
        await _bounded(woken.get())
        await wait.settled()
    assert looks == []


@requirement("calls:early-result")
async def test_a_wait_that_begins_after_the_result_looks_at_the_record_in_a_moment(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    await bench.settle(call, Success(1))
    async with _waiting(bench, _as_it_was(run), [call]) as (wait, woken):
        await _bounded(woken.get())
        assert await wait.settled() == await bench.stored_run(run)
        assert wait.told() is None, "how the call went was told before anybody listened"


@requirement("calls:wakes")
async def test_a_deadline_ends_a_wait_like_a_result(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with _waiting(bench, run, [call]) as (wait, woken):
        bench.clock.advance(60)
        await bench.desk.expire(Due(bench.clock.now(), ANN, call.call_id))
        await _bounded(woken.get())
        known = wait.told()
    assert known is not None
    assert known[0].outcome == TimedOut(60.0)


@requirement("calls:wakes")
async def test_a_notification_that_was_lost_costs_one_re_check(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hub, "tell", _lose)
    bench.store.hub.recheck = 0.01
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with _waiting(bench, run, [call]) as (wait, woken):
        await bench.settle(call, Success(1))
        await _bounded(woken.get())
        ended = await wait.settled()
    assert ended == await bench.stored_run(run)


@requirement("calls:wakes")
async def test_what_is_told_while_the_record_is_read_is_not_slept_over(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with _waiting(bench, run, [call]) as (wait, woken):
        bench.store.hub.shake(freed(run.run_id))
        await _bounded(woken.get())
        waits_still = await wait.settled()
        assert waits_still is not None
        assert waits_still.blockers == 1
        # awake: nobody is called for it
        await bench.settle(call, Success(1))
        assert woken.empty()
        wait.sleep(woken.put_nowait)
        await _bounded(woken.get())
        bench.store.hub.shake(freed(run.run_id))
        wait.sleep(woken.put_nowait)
        await _bounded(woken.get())


@requirement("calls:wakes")
async def test_an_alarm_of_an_earlier_sleep_wakes_nobody_and_who_sleeps_again_is_woken(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with _waiting(bench, run, [call]) as (wait, woken):
        for is_rung in (False, True):
            bench.store.hub.shake(freed(run.run_id))
            await _bounded(woken.get())
            await wait.settled()
            if is_rung:
                wait.ring(0.0)
            wait.sleep(woken.put_nowait)
            assert woken.empty()
        await bench.settle(call, Success(1))
        await _bounded(woken.get())


@requirement("calls:wakes")
async def test_a_wait_is_over_when_patience_is(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    left = iter([0.01] * 4)
    async with _waiting(bench, run, [call], lambda: next(left, 0.0)) as (wait, woken):
        await _bounded(woken.get())
        now = await wait.settled()
    assert now is not None
    assert now.blockers == 1


@requirement("calls:wakes")
async def test_who_is_asked_again_for_patience_does_not_read_the_record_each_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    looks = _counted_looks(bench, monkeypatch)
    monkeypatch.setattr("farhand.calls.wait.JUST_STORED_SEC", 60.0)
    left = iter([0.001] * 10)
    async with _waiting(bench, run, [call], lambda: next(left, 0.0)) as (wait, woken):
        await _bounded(woken.get())
        await wait.settled()
    assert looks == []


@requirement("calls:wakes")
async def test_a_run_that_was_read_before_its_last_words_is_not_believed_and_the_record_is_asked(
    bench: Bench,
) -> None:
    before = await bench.start_run()
    call = await bench.open(run=before)
    run = replace(await bench.stored_run(before), last_seq=5)
    async with _waiting(bench, run, [call]) as (wait, woken):
        # as it was when nothing was open yet
        bench.store.hub.tell(freed(run.run_id), before)
        await _bounded(woken.get())
        assert await wait.settled() == await bench.stored_run(before)
        wait.sleep(woken.put_nowait)
        assert woken.empty()
        await bench.settle(call, Success(1))
        await _bounded(woken.get())
        assert await wait.settled() == await bench.stored_run(run)


@requirement("calls:wakes")
async def test_a_wait_ends_when_another_claim_takes_the_run(bench: Bench) -> None:
    bench.store.hub.recheck = 0.01
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with _waiting(bench, run, [call]) as (wait, woken):
        claimed = await bench.claim(run)
        await _bounded(woken.get())
        now = await wait.settled()
    assert now == claimed


async def test_a_wait_for_a_run_that_does_not_exist_ends(bench: Bench) -> None:
    bench.store.hub.recheck = 0.01
    gone = Run(run_id=bench.clock.fresh("run"), owner=ANN, thread_id="t", started_at=0.0, blockers=1)
    async with _waiting(bench, gone, []) as (wait, woken):
        await _bounded(woken.get())
        assert await wait.settled() is None


async def test_a_wait_that_was_ended_wakes_nobody_and_leaves_nothing_behind(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with _waiting(bench, run, [call]) as (wait, woken):
        wait.end()
        assert not wait.listens
        assert bench.store.hub.watched(freed(run.run_id)) == bench.store.hub.watched(call.call_id) == 0
        await bench.settle(call, Success(1))
        wait.ring(0.0)
        wait.end()
        assert woken.empty()


async def test_when_the_process_is_about_to_stop_a_wait_wakes_nobody(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with _waiting(bench, run, [call]) as (_, woken):
        bench.store.hub.close()
        assert woken.empty()


async def test_how_long_to_be_patient_is_for_whoever_waits_to_say(bench: Bench) -> None:
    with pytest.raises(NotImplementedError):
        Wait(bench.store, "run").left()


@requirement("calls:wakes")
async def test_a_call_without_a_run_is_waited_for_until_its_result(bench: Bench) -> None:
    call = await bench.open()
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_bounded(settled(bench.store, ANN, call.call_id)))
        await _sleeping(bench, call.call_id)
        await bench.desk.take(ANN, call.call_id, "tab")
        await bench.settle(call, Success(1))
    assert wait.result() == await bench.stored(call)


@requirement("calls:wakes")
async def test_a_server_tool_without_a_run_is_waited_for_until_it_has_ended(bench: Bench) -> None:
    call = await bench.open(ON_SERVER, asks=True)
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_bounded(settled(bench.store, ANN, call.call_id)))
        await _sleeping(bench, call.call_id)
        await bench.answer(call, YES)
        started = await bench.desk.start(await bench.stored(call))
        assert started is not None
        await _sleeping(bench, call.call_id)
        assert not wait.done()
        await bench.desk.finish(started, Success("done"))
    assert wait.result() == await bench.stored(call)


@requirement("calls:wakes")
async def test_some_calls_of_a_run_are_waited_for_whatever_else_is_open(bench: Bench) -> None:
    run = await bench.start_run()
    await bench.open(run=run)
    awaited = [await bench.open(run=run), await bench.open(run=run)]
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_bounded(answered(bench.store, run, awaited, patient=lambda: 60.0)))
        await _sleeping(bench, awaited[0].call_id)
        for call in awaited:
            assert not wait.done()
            await bench.settle(call, Success(1))
    assert wait.result()


async def test_a_wait_for_some_calls_is_over_when_patience_is(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    left = iter([0.01, 0.0])
    assert not await _bounded(answered(bench.store, run, [call], patient=lambda: next(left)))


async def test_a_wait_for_a_call_ends_when_the_process_is_about_to_stop(bench: Bench) -> None:
    call = await bench.open()
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_refused(bench, call.call_id))
        await _sleeping(bench, call.call_id)
        bench.store.hub.close()
    assert isinstance(wait.result(), ShuttingDown)
    assert await bench.stored(call) == call


@requirement("calls:owner")
async def test_nobody_waits_for_a_call_of_another_owner(bench: Bench) -> None:
    call = await bench.open()
    assert await _bounded(settled(bench.store, BOB, call.call_id)) is None


async def _refused(bench: Bench, call_id: str) -> ShuttingDown | None:
    try:
        await _bounded(settled(bench.store, ANN, call_id))
    except ShuttingDown as error:
        return error
    return None


@asynccontextmanager
async def _waiting(
    bench: Bench, run: Run, calls: list[Call], left: Callable[[], float] = lambda: 60.0
) -> AsyncIterator[tuple[Patient, asyncio.Queue[str]]]:
    """Asleep, with what it is woken for."""
    woken: asyncio.Queue[str] = asyncio.Queue()
    wait = Patient(bench.store, run, left)
    wait.listen(_as_it_was(run), calls)
    assert wait.is_patient()
    wait.sleep(woken.put_nowait)
    yield wait, woken
    wait.end()


def _as_it_was(run: Run) -> Run:
    """Before anything was answered."""
    return replace(run, blockers=max(1, run.blockers))


def _counted_looks(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    get_run = bench.store.get_run
    looks: list[str] = []

    async def counted(owner: Owner, run_id: str) -> Run | None:
        looks.append(run_id)
        return await get_run(owner, run_id)

    monkeypatch.setattr(bench.store, "get_run", counted)
    return looks


async def _bounded(work: Coroutine[None, None, T]) -> T:
    async with asyncio.timeout(10):
        return await work


async def _sleeping(bench: Bench, topic: str) -> None:
    """Until somebody watches the topic: the wait reads the record only after that."""
    for _ in range(1_000):
        if bench.store.hub.watched(topic):
            return
        await asyncio.sleep(0)
    raise AssertionError(f"nobody watches {topic}")


def _lose(hub: Hub, topic: str, item: object) -> None:
    """In place of telling."""
