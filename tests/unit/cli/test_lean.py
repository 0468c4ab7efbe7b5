"""What takes the place of asyncio's own acts like it."""

from __future__ import annotations

import asyncio
import sys

import pytest

from farhand.cli.lean import Pipeline, Signal
from tests.requirement import requirement

SIGNALS = pytest.mark.parametrize("kind", [asyncio.Event, Signal])


@requirement("speed:held-streams")
@SIGNALS
async def test_all_who_wait_are_woken_once_it_is_set(kind: type[asyncio.Event | Signal]) -> None:
    signal = kind()
    assert not signal.is_set()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        waiting = [group.create_task(signal.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        signal.set()
        signal.clear()
    assert [task.result() for task in waiting] == [True] * 3
    assert not signal.is_set()


@requirement("speed:held-streams")
@SIGNALS
async def test_whoever_comes_after_it_was_set_does_not_wait_until_it_is_cleared(
    kind: type[asyncio.Event | Signal],
) -> None:
    signal = kind()
    signal.set()
    assert signal.is_set()
    assert await signal.wait()
    signal.clear()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        waiting = group.create_task(signal.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        signal.set()


@requirement("speed:held-streams")
@SIGNALS
async def test_one_who_stops_waiting_takes_nothing_from_the_others(
    kind: type[asyncio.Event | Signal],
) -> None:
    signal = kind()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        first, second = group.create_task(signal.wait()), group.create_task(signal.wait())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        signal.set()
    assert second.result()


@requirement("speed:held-streams")
def test_a_signal_that_nobody_waits_for_and_an_empty_pipeline_are_small() -> None:
    signal = Signal(is_set=True)
    assert not hasattr(signal, "__dict__")
    assert sys.getsizeof(signal) + sys.getsizeof(Pipeline[int]()) < 200


def test_requests_leave_the_pipeline_in_the_order_in_which_they_came() -> None:
    pipeline = Pipeline[str]()
    for request in ("first", "second", "third"):
        pipeline.appendleft(request)
    assert [pipeline.pop() for _ in range(3)] == ["first", "second", "third"]
    assert not pipeline
