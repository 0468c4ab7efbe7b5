"""A SQLite store in a temporary folder, and sample records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farhand.store.sqlite import SqliteStore
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import StoreFixture


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "farhand.db"


@pytest.fixture
async def sqlite(path: Path, clock: FakeClock) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(str(path), clock)
    yield opened
    await opened.close()


@pytest.fixture
def fixture(sqlite: SqliteStore, clock: FakeClock) -> StoreFixture:
    return StoreFixture(sqlite, clock)
