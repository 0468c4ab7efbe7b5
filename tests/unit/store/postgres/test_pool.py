"""Reads by key that share statements: whoever asks is answered, however many statements end at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from farhand.store.postgres.connection import Columns, Connection
from farhand.store.postgres.pool import STATEMENTS_AT_ONCE, KeyedReads, Pool


class HeldPool:
    """Its statements end together, and find nothing."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[None] = asyncio.Queue()
        self.may_end = asyncio.Event()

    async def run(self, work: Callable[[Connection], Awaitable[list[Columns]]]) -> list[Columns]:
        self.asked.put_nowait(None)
        await self.may_end.wait()
        return []


async def test_who_asks_again_as_soon_as_all_statements_have_ended_is_answered() -> None:
    pool = HeldPool()
    reads = KeyedReads(cast("Pool", pool), "SELECT")

    async def ask(times: int) -> None:
        for _ in range(times):
            assert await reads.rows("t1") == []

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        # the statement of the first one ends first, and nobody else asks again
        for number in range(STATEMENTS_AT_ONCE):
            group.create_task(ask(1 if number else 2))
            await pool.asked.get()
        pool.may_end.set()
