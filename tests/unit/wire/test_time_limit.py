"""A limit of time that many tasks share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from farhand.wire.time_limit import TimeLimit

FOREVER = 60.0


async def _never() -> None:
    await asyncio.get_running_loop().create_future()


async def _echo(text: str) -> str:
    await asyncio.sleep(0)
    return text


async def test_work_that_is_done_in_time_returns_its_result() -> None:
    assert await TimeLimit(FOREVER).run(_echo("done")) == "done"


async def test_work_that_takes_too_long_is_cancelled() -> None:
    async with asyncio.timeout(20):
        with pytest.raises(TimeoutError):
            await TimeLimit(0.01).run(_never())
    task = asyncio.current_task()
    assert task is not None
    # the task itself continues, as if nobody had cancelled it
    assert not task.cancelling()


async def test_each_task_has_the_whole_time_from_its_own_start(monkeypatch: pytest.MonkeyPatch) -> None:
    limit, done = TimeLimit(3), asyncio.Event()
    loop = asyncio.get_running_loop()
    time, later = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: time() + later)

    async def exceed() -> None:
        with pytest.raises(TimeoutError):
            await limit.run(_never())

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        first = group.create_task(exceed())
        await asyncio.sleep(0)
        later += 2
        second = group.create_task(limit.run(done.wait()))
        await asyncio.sleep(0)
        later += 2
        await first
        assert not second.done()
        done.set()


async def test_one_timer_serves_all_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, limit, timers = asyncio.get_running_loop(), TimeLimit(FOREVER), []
    call_later = loop.call_later

    def count(delay: float, callback: Callable[..., None], *arguments: object) -> asyncio.TimerHandle:
        timers.append(call_later(delay, callback, *arguments))
        return timers[-1]

    monkeypatch.setattr(loop, "call_later", count)
    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(limit.run(_echo(str(number))))
    assert len(timers) == 1


async def test_a_cancel_from_outside_stays_a_cancel() -> None:
    limit = TimeLimit(FOREVER)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        waiting = group.create_task(limit.run(_never()))
        await asyncio.sleep(0)
        waiting.cancel()
    assert waiting.cancelled()


async def test_a_cancel_from_outside_counts_more_than_the_limit() -> None:
    limit = TimeLimit(0.0)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        waiting = group.create_task(limit.run(_never()))
        # until its timer has fired; the task has not run since, and nobody tells
        while not waiting.cancelling():  # noqa: ASYNC110
            await asyncio.sleep(0)
        waiting.cancel()
    assert waiting.cancelled()


async def test_an_error_of_the_work_is_raised_as_it_is() -> None:
    async def fail() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await TimeLimit(FOREVER).run(fail())


def test_it_works_in_one_loop_after_the_other() -> None:
    limit = TimeLimit(0.2)
    # its timer is pending when this loop ends, and no use to the next
    assert asyncio.run(limit.run(_echo("done"))) == "done"

    async def exceed() -> None:
        async with asyncio.timeout(20):
            with pytest.raises(TimeoutError):
                await limit.run(_never())

    asyncio.run(exceed())
