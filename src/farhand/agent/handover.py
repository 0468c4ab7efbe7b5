"""Between workers: who wants to end a run that another worker holds asks it to stop first.

So that what was said there is stored before the run's end is. It is a courtesy: whoever does not answer in
time loses the run all the same, by its fence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from farhand.core.run import Run
from farhand.errors import StoreDown
from farhand.store.base import Store
from farhand.store.hub import LET_GO, RUN_TAKEN, Watch, freed

LET_GO_SEC = 1.0
AT_ONCE = 64
"""Runs that are let go or looked at together: each may take `LET_GO_SEC`."""


async def ask_holder(store: Store, run: Run) -> bool:
    """Returns when the worker that holds the run has stopped, or need not, or does not answer. True if what
    it said is stored: it has said so, or it was not speaking."""
    now = await store.get_run(run.owner, run.run_id)
    if now is None or not now.active or now.parked:
        return True
    is_silent = now.blockers > 0
    if not store.is_shared or now.lease_until <= store.now():
        return is_silent
    with store.hub.watch(freed(run.run_id)) as watch:
        store.hub.tell_others(LET_GO, run.run_id)
        until = _now() + LET_GO_SEC
        while not store.hub.closed and (left := until - _now()) > 0:
            await watch.wait(left)
            if run.run_id in watch.news:
                return True
            watch.news.clear()
    return is_silent


async def hear_others(
    store: Store, *, let_go: Callable[[str], Awaitable[None]], check: Callable[[str], Awaitable[None]]
) -> None:
    """For ever: lets go of runs that others want to end, and checks those that others took."""
    hub = store.hub
    with hub.watch(LET_GO, limit=10_000) as asked, hub.watch(RUN_TAKEN, limit=10_000) as taken:
        async with asyncio.TaskGroup() as group:
            group.create_task(_each(store, asked, let_go))
            group.create_task(_each(store, taken, check))


async def together(run_ids: Iterable[str], act: Callable[[str], Awaitable[object]]) -> None:
    """For each of them, so many at once: one that takes its time holds up none of the others."""
    turns = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as group:
        for run_id in run_ids:
            await turns.acquire()
            group.create_task(_in_turn(turns, act, run_id))


async def _each(store: Store, watch: Watch, act: Callable[[str], Awaitable[None]]) -> None:
    turns = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as group:
        while not store.hub.closed:
            await watch.wait(store.hub.recheck)
            while watch.news:
                run_id = watch.news.pop(0)
                assert isinstance(run_id, str), "the topic tells ids"
                await turns.acquire()
                group.create_task(_in_turn(turns, act, run_id))


async def _in_turn(turns: asyncio.Semaphore, act: Callable[[str], Awaitable[object]], run_id: str) -> None:
    try:
        await act(run_id)
    except StoreDown:
        # whoever took the run has it by its fence, heard or not
        return
    finally:
        turns.release()


def _now() -> float:
    return asyncio.get_running_loop().time()
