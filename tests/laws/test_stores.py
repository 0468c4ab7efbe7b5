"""Every store obeys the same laws."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from farhand.clock import Clock
from farhand.store.base import Store
from farhand.store.memory import MemoryStore
from farhand.store.sqlite import SqliteStore
from farhand.testing.store_laws import DurableStoreLaws, StoreLaws
from tests.requirement import requirement

pytestmark = requirement("store:laws")


class TestMemoryStore(StoreLaws):
    async def open_store(self, clock: Clock) -> Store:
        return MemoryStore(clock)


class TestSqliteStore(DurableStoreLaws):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self._folder = tmp_path
        self._opened = 0

    async def open_store(self, clock: Clock) -> Store:
        return await SqliteStore.open(str(self._folder / "store-0.db"), clock)

    async def reopen(self, store: Store, clock: Clock) -> Store:
        """The files as a crash would leave them: copied while the store is still open."""
        before, after = f"store-{self._opened}.db", f"store-{self._opened + 1}.db"
        self._opened += 1
        for suffix in ("", "-wal"):
            shutil.copy(self._folder / (before + suffix), self._folder / (after + suffix))
        await store.close()
        return await SqliteStore.open(str(self._folder / after), clock)
