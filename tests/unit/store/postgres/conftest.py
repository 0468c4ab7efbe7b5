"""A PostgreSQL store with tables of its own, and things to put into it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from farhand.store.postgres import PostgresStore
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import Given
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
def given(postgres: PostgresStore, clock: FakeClock) -> Given:
    return Given(postgres, clock)


@pytest.fixture
async def other(address: str, postgres: PostgresStore) -> AsyncIterator[Given]:
    """The same tables in another process's eyes."""
    clock = FakeClock(seed="other")
    opened = await PostgresStore.open(address, clock)
    yield Given(opened, clock)
    await opened.close()
