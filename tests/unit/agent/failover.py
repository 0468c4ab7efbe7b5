"""Work that one server started and another continues, on each durable store.

On SQLite the first server is killed and the next one starts on its file. On PostgreSQL the next one is a
second worker, beside the first. All have the time that the test says.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farhand.core.settings import Settings
from farhand.models.scripted.model import Script
from farhand.store.postgres import PostgresStore
from farhand.testing import FakeClock
from tests.postgres import Cluster
from tests.unit.agent.stage import Stage
from tests.unit.agent.test_recovery import TURNS, Machine


class Workers:
    """As a `Machine`, of workers that share a database."""

    def __init__(self, address: str, clock: FakeClock) -> None:
        self.clock = clock
        self.settings: Settings = TURNS
        self._address = address
        self._stages: list[Stage] = []

    async def boot(self, script: Script, *tools: object) -> Stage:
        store = await PostgresStore.open(self._address, self.clock)
        on = Stage(store, self.clock, script, *tools, settings=self.settings)
        self._stages.append(on)
        await on.service.open()
        return on

    async def close(self) -> None:
        await self._stages[-1].check()
        for on in self._stages:
            await on.service.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def successors(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock
) -> AsyncIterator[Machine | Workers]:
    """`await successors.boot(script, *tools)`: the next server."""
    made: Machine | Workers
    if request.param == "sqlite":
        made = Machine(tmp_path, clock)
    else:
        cluster: Cluster = request.getfixturevalue("cluster")
        made = Workers(cluster.address(), clock)
    yield made
    await made.close()
