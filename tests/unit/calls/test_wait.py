"""The one wait: it ends when the record says so, also when nobody told it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

import pytest
from msgspec.structs import replace

from farhand.calls.wait import answered, settled, unblocked
from farhand.core.outcome import Success, TimedOut
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.errors import ShuttingDown
from farhand.store.base import Due
from farhand.store.hub import Hub, freed
from tests.requirement import requirement
from tests.unit.calls.bench import ANN, BOB, ON_SERVER, YES, Bench

T = TypeVar("T")


@requirement("calls:wakes")
async def test_a_wait_ends_with_the_last_result(bench: Bench) -> None:
    run = await bench.start_run()
    first, second = await bench.open(run=run), await bench.open(run=run)
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_settled(bench, run))
        await _sleeping(bench, freed(run.run_id))
        await bench.settle(first, Success(1))
        assert not wait.done()
        await bench.settle(second, Success(2))
    ended = wait.result()
    assert ended is not None
    assert ended.blockers == 0
    assert ended == await bench.stored_run(run)


@requirement("calls:early-result")
async def test_a_wait_that_begins_after_the_result_ends_at_once(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    await bench.settle(call, Success(1))
    ended = await _bounded(settled(bench.store, run, patient=_never_asked))
    assert ended is not None
    assert bench.store.hub.watched(freed(run.run_id)) == 0


@requirement("calls:wakes")
async def test_a_deadline_ends_a_wait_like_a_result(bench: Bench) -> None:
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_settled(bench, run))
        await _sleeping(bench, freed(run.run_id))
        bench.clock.advance(60)
        await bench.desk.expire(Due(bench.clock.now(), ANN, call.call_id))
    assert (await bench.stored(call)).outcome == TimedOut(60.0)
    assert wait.result() is not None


@requirement("calls:wakes")
async def test_a_notification_that_was_lost_costs_one_re_check(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hub, "tell", _lose)
    bench.store.hub.recheck = 0.01
    run = await bench.start_run()
    call = await bench.open(run=run)
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_settled(bench, run))
        await _sleeping(bench, freed(run.run_id))
        await bench.settle(call, Success(1))
    assert wait.result() is not None


@requirement("calls:wakes")
async def test_a_wait_is_over_when_patience_is(bench: Bench) -> None:
    run = await bench.start_run()
    await bench.open(run=run)
    left = iter([0.01, 0.01, 0.0])
    assert await _bounded(settled(bench.store, run, patient=lambda: next(left))) is None


@requirement("calls:wakes")
async def test_who_is_asked_again_for_patience_does_not_read_the_record_each_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await bench.start_run()
    await bench.open(run=run)
    get_run, looks = bench.store.get_run, 0

    async def counted(owner: Owner, run_id: str) -> Run | None:
        nonlocal looks
        looks += 1
        return await get_run(owner, run_id)

    monkeypatch.setattr(bench.store, "get_run", counted)
    left = iter([0.01] * 10 + [0.0])
    assert await _bounded(settled(bench.store, run, patient=lambda: next(left))) is None
    assert looks == 1


@requirement("calls:wakes")
async def test_a_run_that_was_read_before_its_last_words_is_not_believed_and_the_record_is_asked(
    bench: Bench,
) -> None:
    before = await bench.start_run()
    call = await bench.open(run=before)
    run = replace(await bench.stored_run(before), last_seq=5)
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(
            _bounded(settled(bench.store, run, patient=lambda: 60.0, calls={call.call_id: call}))
        )
        await _sleeping(bench, freed(run.run_id))
        # as it was when nothing was open yet
        bench.store.hub.tell(freed(run.run_id), before)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not wait.done()
        await bench.settle(call, Success(1))
    assert wait.result() == await bench.stored_run(run)


@requirement("calls:wakes")
async def test_a_wait_ends_when_another_claim_takes_the_run(bench: Bench) -> None:
    bench.store.hub.recheck = 0.01
    run = await bench.start_run()
    await bench.open(run=run)
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_settled(bench, run))
        await _sleeping(bench, freed(run.run_id))
        claimed = await bench.claim(run)
    assert wait.result() == claimed


async def test_a_wait_for_a_run_that_does_not_exist_ends(bench: Bench) -> None:
    gone = Run(run_id=bench.clock.fresh("run"), owner=ANN, thread_id="t", started_at=0.0)
    assert await _bounded(settled(bench.store, gone, patient=_never_asked)) is None


@requirement("calls:wakes")
async def test_a_call_without_a_run_is_waited_for_until_its_result(bench: Bench) -> None:
    call = await bench.open()
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_bounded(unblocked(bench.store, ANN, call.call_id)))
        await _sleeping(bench, call.call_id)
        await bench.desk.take(ANN, call.call_id, "tab")
        await bench.settle(call, Success(1))
    assert wait.result() == await bench.stored(call)


@requirement("calls:wakes")
async def test_a_server_tool_without_a_run_is_waited_for_until_its_yes(bench: Bench) -> None:
    call = await bench.open(ON_SERVER, asks=True)
    async with asyncio.TaskGroup() as group:
        wait = group.create_task(_bounded(unblocked(bench.store, ANN, call.call_id)))
        await _sleeping(bench, call.call_id)
        await bench.answer(call, YES)
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
    assert await _bounded(unblocked(bench.store, BOB, call.call_id)) is None


async def _refused(bench: Bench, call_id: str) -> ShuttingDown | None:
    try:
        await _bounded(unblocked(bench.store, ANN, call_id))
    except ShuttingDown as error:
        return error
    return None


async def _settled(bench: Bench, run: Run) -> Run | None:
    return await _bounded(settled(bench.store, run, patient=lambda: 60.0))


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


def _never_asked() -> float:
    raise AssertionError("there was nothing to wait for")
