"""Shared by the unit tests: a fake clock, and every kind of store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farhand.store.base import Store
from farhand.store.open import open_store
from farhand.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Store]:
    address = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/calls.db"
    opened = await open_store(address, clock)
    yield opened
    await opened.close()
