"""Every store of logs obeys the same laws."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

# has no types of its own
import asyncpg  # type: ignore[import-untyped]
import pytest

from farhand.errors import StoreDown
from farhand.store.log.base import Appended, Moved
from farhand.store.log.memory import MemoryLogStore
from farhand.store.log.postgres import PostgresLogStore
from farhand.store.log.postgres_sql import SCHEMA
from farhand.store.log.sqlite import SqliteLogStore
from farhand.testing import FakeClock
from tests.laws.log_laws import ANN, LogLaws
from tests.postgres import Cluster

pytestmark = pytest.mark.anyio


class TestMemory(LogLaws):
    @pytest.fixture(autouse=True)
    async def opened(self) -> AsyncIterator[None]:
        self.clock = FakeClock()
        self.store = MemoryLogStore(self.clock)
        yield
        await self.store.close()


class TestSqlite(LogLaws):
    @pytest.fixture(autouse=True)
    async def opened(self, tmp_path: Path) -> AsyncIterator[None]:
        self.clock = FakeClock()
        self.path = tmp_path / "log.db"
        self.store = self.open()
        yield
        await self.store.close()

    def open(self) -> SqliteLogStore:
        return SqliteLogStore(self.connect, self.clock)

    def connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        return db

    async def test_what_was_appended_is_there_after_a_restart_and_leases_are_not(self) -> None:
        await self.append(b"[1]", calls=(self.call("call_1"),))
        await self.store.close()
        self.store = self.open()
        assert len((await self.store.load(ANN, "t1")).rows) == 1
        assert await self.store.find_call(ANN, "call", "call_1") is not None

    async def test_a_store_that_is_closed_says_so(self) -> None:
        await self.store.close()
        with pytest.raises(StoreDown):
            await self.append(b"[1]")
        self.store = self.open()

    async def test_a_batch_that_breaks_in_the_middle_leaves_nothing(self) -> None:
        broken = self.made(b"[2]", thread_id="t2", calls=(self.call("call_1"), object()))
        with pytest.raises(AttributeError):
            await self.store.append([self.made(b"[1]"), broken])
        assert (await self.store.load(ANN, "t1")).rows == ()


class TestPostgres(LogLaws):
    @pytest.fixture(autouse=True)
    async def opened(self, cluster: Cluster) -> AsyncIterator[None]:
        self.clock = FakeClock()
        self.pool = await _pool(cluster.address())
        self.store = PostgresLogStore(self.pool, offset=lambda: self.clock.now() - time.time())
        await self.store.measure_clock()
        yield
        await self.store.close()

    async def test_two_workers_that_append_at_once_have_one_winner_per_thread(self) -> None:
        one = [self.made(b"[1]", thread_id=f"t{no}") for no in range(8)]
        other = [self.made(b"[2]", thread_id=f"t{no}") for no in reversed(range(8))]
        first, second = await asyncio.gather(self.store.append(one), self.store.append(other))
        both = [*zip(one, first, strict=True), *zip(other, second, strict=True)]
        winners = [append.thread_id for append, result in both if isinstance(result, Appended)]
        assert sorted(winners) == [f"t{no}" for no in range(8)]
        assert sum(isinstance(result, Moved) for _, result in both) == 8

    async def test_the_numbers_of_a_feed_appear_in_their_order(self) -> None:
        work = [self.append(b"[1]", thread_id=f"t{no}", in_feed=True) for no in range(20)]
        await asyncio.gather(*work)
        feed = await self.store.feed(ANN, after=0, limit=50)
        assert [each.no for each in feed] == list(range(1, 21))

    async def test_workers_hear_which_threads_moved(self) -> None:
        heard: asyncio.Queue[str] = asyncio.Queue()
        assert isinstance(self.store, PostgresLogStore)
        async with self.store.listening(lambda owner, thread_id: heard.put_nowait(thread_id)):
            many = [self.made(b"[1]", thread_id=f"thread-{no:0100}") for no in range(200)]
            await self.store.append(many)
            async with asyncio.timeout(30):
                told = {await heard.get() for _ in many}
        assert told == {each.thread_id for each in many}

    async def test_a_database_that_is_gone_is_said(self) -> None:
        await self.store.close()
        with pytest.raises(StoreDown):
            await self.append(b"[1]")

    async def test_the_clock_is_the_one_of_the_database(self) -> None:
        assert abs(self.store.now() - self.clock.now()) < 60


async def _pool(address: str) -> Any:
    parts = urlsplit(address)
    schema = parts.query.removeprefix("schema=")
    dsn = parts._replace(query="").geturl()
    line = await asyncpg.connect(dsn)
    await line.execute(f"CREATE SCHEMA {schema}")
    await line.close()
    pool = await asyncpg.create_pool(dsn, min_size=1, max_size=8, server_settings={"search_path": schema})
    await pool.execute(SCHEMA)
    return pool
