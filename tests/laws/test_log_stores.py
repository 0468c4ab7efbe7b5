"""Every store of logs obeys the same laws."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farhand.errors import StoreDown
from farhand.store.log.memory import MemoryLogStore
from farhand.store.log.sqlite import SqliteLogStore
from farhand.testing import FakeClock
from tests.laws.log_laws import ANN, LogLaws

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
