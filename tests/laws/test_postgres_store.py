"""The PostgreSQL store obeys the laws of every store."""

from __future__ import annotations

import pytest

from farhand.clock import Clock
from farhand.store.base import Store
from farhand.store.postgres import PostgresStore
from farhand.testing.store_laws import DurableStoreLaws
from tests.postgres import Cluster
from tests.requirement import requirement

pytestmark = [requirement("store:laws"), pytest.mark.anyio]


class TestPostgresStore(DurableStoreLaws):
    @pytest.fixture(autouse=True)
    def in_a_schema_of_its_own(self, cluster: Cluster) -> None:
        self.address = cluster.address()

    async def open_store(self, clock: Clock) -> Store:
        return await PostgresStore.open(self.address, clock)

    async def reopen(self, store: Store, clock: Clock) -> Store:
        """Another process that opens the same database; the one before never said goodbye."""
        after = await PostgresStore.open(self.address, clock)
        await store.close()
        return after
