"""PostgreSQL stores with their own tables, and sample records."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from farhand.store.postgres import PostgresStore
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import StoreFixture
from tests.postgres import Cluster


@pytest.fixture
def address(cluster: Cluster) -> str:
    return cluster.address()


@pytest.fixture
async def postgres(address: str, clock: FakeClock) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(address, clock)
    yield opened
    await opened.close()


@pytest.fixture
def fixture(postgres: PostgresStore, clock: FakeClock) -> StoreFixture:
    return StoreFixture(postgres, clock)


@pytest.fixture
async def other(address: str, postgres: PostgresStore, clock: FakeClock) -> AsyncIterator[PostgresStore]:
    """The same tables as another process sees them."""
    opened = await PostgresStore.open(address, clock)
    yield opened
    await opened.close()
