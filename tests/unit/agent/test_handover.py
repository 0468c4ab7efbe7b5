"""What other workers ask for is done for many runs at once: a slow one holds up none of the others."""

from __future__ import annotations

import asyncio

from farhand.agent.handover import AT_ONCE, hear_others, together
from farhand.errors import StoreDown
from farhand.store.hub import LET_GO, RUN_TAKEN
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from tests.requirement import requirement

MANY = 2 * AT_ONCE


class Slow:
    """Begins for each run, and ends for none until it is told so."""

    def __init__(self, breaks: frozenset[str] = frozenset()) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.may_end = asyncio.Event()
        self._breaks = breaks

    async def act(self, run_id: str) -> None:
        self.begun.append(run_id)
        if run_id in self._breaks:
            raise StoreDown("It is away.")
        await self.may_end.wait()
        self.ended.append(run_id)

    async def until_begun(self, times: int) -> None:
        async with asyncio.timeout(20):
            # nobody tells of a beginning: it is looked at after each turn of the loop
            while len(self.begun) < times:  # noqa: ASYNC110
                await asyncio.sleep(0)


@requirement("workers:asked-together")
async def test_runs_that_others_want_are_let_go_together_and_not_one_after_the_other(
    clock: FakeClock,
) -> None:
    store, slow, runs = MemoryStore(clock), Slow(), [f"run_{number}" for number in range(MANY)]
    async with asyncio.TaskGroup() as group:
        hearing = group.create_task(hear_others(store, let_go=slow.act, check=slow.act))
        await asyncio.sleep(0)
        for run_id in runs:
            store.hub.tell(LET_GO, run_id)
        await slow.until_begun(AT_ONCE)
        assert slow.ended == [], "none of them waited for another"
        store.hub.tell(RUN_TAKEN, "run_taken")
        await slow.until_begun(AT_ONCE + 1)
        assert "run_taken" in slow.begun, "those that were taken have turns of their own"
        slow.may_end.set()
        await slow.until_begun(MANY + 1)
        hearing.cancel()


@requirement("workers:asked-together")
async def test_so_many_are_at_work_at_once_and_no_more() -> None:
    slow = Slow()
    async with asyncio.TaskGroup() as group:
        group.create_task(together([f"run_{number}" for number in range(MANY)], slow.act))
        await slow.until_begun(AT_ONCE)
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(slow.begun) == AT_ONCE
        slow.may_end.set()
    assert sorted(slow.ended) == sorted(slow.begun)
    assert len(slow.ended) == MANY


@requirement("workers:asked-together")
async def test_a_store_that_is_away_for_one_run_does_not_end_the_others() -> None:
    slow = Slow(breaks=frozenset({"run_1"}))
    slow.may_end.set()
    await together(["run_0", "run_1", "run_2"], slow.act)
    assert slow.ended == ["run_0", "run_2"]
