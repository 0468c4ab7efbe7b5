"""What workers learn about each other's clients: background tasks survive errors and log them once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from farhand.clients import cluster
from farhand.clients.cluster import ClusterSync
from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.errors import StoreDown
from farhand.store.base import Store
from farhand.store.presence import Absence, Seat
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.clients.client_harness import ANN, PATIENT, Office, comes_true


class AwayStreams:
    """A client is absent for long, and the store is down when the test says so."""

    def __init__(self) -> None:
        self.is_down = False
        self.takes_sec = 0.0
        self.leaving_takes_sec = 0.0
        self.now = 0.0
        self.asked = 0

    async def absent(self) -> list[Absence]:
        self.asked += 1
        self.now += self.takes_sec
        if self.is_down:
            raise StoreDown("The store is away.")
        return [Absence(ANN, "notes", 1e9)]

    async def renew_seats(self, seats: Sequence[Seat], *, lease_sec: float) -> list[Seat]:
        return []

    async def arrive(self, owner: Owner, client_id: str, *, lease_sec: float) -> Seat:
        raise NotImplementedError

    async def leave(self, seat: Seat) -> None:
        self.now += self.leaving_takes_sec

    async def retire(self, seat: Seat) -> None:
        raise NotImplementedError

    async def is_retired(self, owner: Owner, client_id: str) -> bool:
        raise NotImplementedError

    async def expect(self, owner: Owner, client_id: str) -> None:
        raise NotImplementedError

    async def is_here(self, owner: Owner, client_id: str) -> bool:
        return False

    async def asked_again(self) -> None:
        seen = self.asked

        async def is_asked() -> bool:
            return self.asked > seen + 2

        await comes_true(is_asked)


@requirement("client-tools:grace")
@pytest.mark.parametrize("fault", ["down", "slow", "slow when a stream ends"])
async def test_after_an_outage_of_the_store_each_client_has_its_grace_period_again(
    clock: FakeClock, store: Store, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    streams = AwayStreams()
    monkeypatch.setattr(cluster, "POLL_SEC", 0.001)
    monkeypatch.setattr(cluster, "loop_time", lambda: streams.now)
    office = Office(store, clock, settings=PATIENT)
    await office.register("notes", "read")
    sync = asyncio.create_task(ClusterSync(office.sessions, _fail, office.log, streams).run())
    try:
        if fault == "slow when a stream ends":
            streams.leaving_takes_sec = 1_000.0
            office.sessions.presence.sit(Seat(ANN, "notes", 1), office.inbox())
        else:
            streams.is_down, streams.takes_sec = fault == "down", 1_000.0
        await streams.asked_again()
        # it is back
        streams.is_down, streams.takes_sec = False, 0.0
        await streams.asked_again()
        assert [client.client_id for client in await office.clients()] == ["notes"]
        streams.now += 601

        async def is_removed() -> bool:
            return not await office.clients()

        await comes_true(is_removed)
    finally:
        sync.cancel()
        await asyncio.wait([sync])


async def _fail(calls: list[Call]) -> None:
    raise AssertionError("no tool is withdrawn elsewhere")
