"""Shared by the tests of the PostgreSQL store: waiting for facts, and counting rows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from farhand.errors import StoreDown
from farhand.store.postgres import PostgresStore
from farhand.store.postgres.connection import Connection

WITHIN_SEC = 20.0
PAUSE_SEC = 0.01
T = TypeVar("T")


async def comes_true(question: Callable[[], bool | Awaitable[bool]]) -> None:
    """For facts that no event tells of: asks again and again, within bounds."""
    for _ in range(int(WITHIN_SEC / PAUSE_SEC)):
        answer = question()
        if answer if isinstance(answer, bool) else await answer:
            return
        await asyncio.sleep(PAUSE_SEC)
    raise AssertionError("it did not come true")


async def works(work: Callable[[], Awaitable[T]]) -> T:
    """Tries again while the store says that it is away."""
    for _ in range(int(WITHIN_SEC / PAUSE_SEC)):
        try:
            return await work()
        except StoreDown:
            await asyncio.sleep(PAUSE_SEC)
    raise AssertionError("the store did not come back")


async def listens(store: PostgresStore) -> None:
    await comes_true(lambda: store._notifier.is_listening)


# a row of the driver
async def query(store: PostgresStore, sql: str, *values: object) -> list[Any]:
    return await store._pool.run(lambda connection: connection.fetch(sql, *values))


async def execute(store: PostgresStore, sql: str) -> None:
    async def run(connection: Connection) -> None:
        await connection.execute(sql)

    await store._pool.run(run)


class Hints:
    """What a store was told of the others."""

    def __init__(self, store: PostgresStore) -> None:
        self.all: list[tuple[str, str]] = []
        store.listen(lambda topic, item: self.all.append((topic, item)))

    async def have(self, *hints: tuple[str, str]) -> None:
        await comes_true(lambda: set(hints) <= set(self.all))
