"""Workers learn from the shared store which of them are alive."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import inf

import pytest

from farhand.agent.ownership import Membership, Ownership
from farhand.clock import SystemClock
from farhand.core.principal import Owner
from farhand.core.settings import Settings, Timeouts
from farhand.errors import StoreDown
from farhand.eventlog.log import EventLog
from farhand.store.memory import MemoryStore
from farhand.store.postgres import PostgresStore
from farhand.store.presence import Absence, Seat
from tests.postgres import Cluster
from tests.requirement import requirement
from tests.unit.agent.stage import Stage, comes_true


class SharedStore(MemoryStore):
    is_shared = True


async def test_in_a_store_of_one_process_every_other_worker_is_gone() -> None:
    eventlog = EventLog(MemoryStore())
    one, other = Membership(eventlog, lease_sec=15), Membership(eventlog, lease_sec=15)
    assert one.name != other.name
    await one.renew()
    assert await one.gone([one.name, other.name, other.name]) == {other.name}
    await one.leave()


class AnyStreams(MemoryStore):
    """Its workers have seats, and never lose them."""

    is_shared = True

    def __init__(self) -> None:
        super().__init__()
        self.streams = self

    async def arrive(self, owner: Owner, client_id: str, *, lease_sec: float) -> Seat:
        return Seat(owner, client_id, 1)

    async def renew_seats(self, seats: Sequence[Seat], *, lease_sec: float) -> list[Seat]:
        return []

    async def is_here(self, owner: Owner, client_id: str) -> bool:
        return False

    async def leave(self, seat: Seat) -> None:
        raise NotImplementedError

    async def retire(self, seat: Seat) -> None:
        raise NotImplementedError

    async def is_retired(self, owner: Owner, client_id: str) -> bool:
        return False

    async def expect(self, owner: Owner, client_id: str) -> None:
        raise NotImplementedError

    async def absent(self) -> list[Absence]:
        raise NotImplementedError


@requirement("workers:takeover")
async def test_after_an_outage_a_worker_takes_nobody_for_gone_until_all_could_renew_their_leases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Membership(EventLog(AnyStreams()), lease_sec=15)
    loop, real, at = asyncio.get_running_loop(), asyncio.get_running_loop().time, 0.0
    trusted: list[tuple[float, bool]] = []

    async def gone_at(*times: float) -> None:
        nonlocal at
        for at in times:
            trusted.append((at, await one.gone(["other"]) == {"other"}))

    monkeypatch.setattr(loop, "time", lambda: at)
    # nor does a worker know of an outage before its start
    await gone_at(0.0)
    await one.renew()
    await gone_at(4.0, 5.0)
    await one.renew()
    # nothing is renewed any more, and then the store is back
    await gone_at(11.0, 30.0)
    await one.renew()
    await gone_at(30.5, 34.0)
    await one.renew()
    await gone_at(35.5)
    monkeypatch.setattr(loop, "time", real)
    assert trusted == [
        (0.0, False), (4.0, False), (5.0, True), (11.0, True), (30.0, False), (30.5, False), (34.0, False),
        (35.5, True),
    ]  # fmt: skip


@requirement("workers:takeover")
async def test_a_worker_whose_own_lease_has_expired_takes_nobody_for_gone_however_short_leases_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Membership(EventLog(AnyStreams()), lease_sec=1)
    loop, real, at = asyncio.get_running_loop(), asyncio.get_running_loop().time, 0.0
    monkeypatch.setattr(loop, "time", lambda: at)
    # often enough for its lease, until it trusts the leases of others
    for _ in range(5):
        await one.renew()
        at += 0.9
    trusted = [await one.gone(["other"])]
    at = 4.7
    trusted.append(await one.gone(["other"]))
    await one.renew()
    trusted.append(await one.gone(["other"]))
    monkeypatch.setattr(loop, "time", real)
    assert trusted == [{"other"}, set(), set()]


class Lapse:
    """A worker with a lease of a minute; `stop()` stops it for longer than that."""

    def __init__(self, store: MemoryStore | None = None, lease_sec: float = 60.0) -> None:
        eventlog = EventLog(SharedStore() if store is None else store)
        membership = Membership(eventlog, lease_sec=lease_sec)
        self.ownership = Ownership(eventlog, Timeouts(lease=lease_sec), membership)
        self.looks = 0
        self.is_own = True

    def stop(self) -> None:
        self.ownership._sure_until = min(self.ownership._sure_until, now())

    async def look(self) -> bool:
        self.looks += 1
        return self.is_own

    async def holds(self, since: float) -> bool:
        return await self.ownership.still_holds(since, self.look)


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_worker_is_sure_of_its_runs_for_one_lease_from_when_it_asked() -> None:
    of = Lapse()
    assert not of.ownership.is_sure(now())
    await of.ownership.renew()
    assert of.ownership.is_sure(now())
    of.stop()
    assert not of.ownership.is_sure(now())


async def test_a_worker_that_was_stopped_while_it_renewed_its_lease_is_not_sure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of, loop = Lapse(), asyncio.get_running_loop()
    real = loop.time
    times = iter([0.0])
    # asked a minute ago, answered now
    monkeypatch.setattr(loop, "time", lambda: next(times, 60.0))
    await of.ownership.renew()
    is_sure = of.ownership.is_sure(60.0)
    monkeypatch.setattr(loop, "time", real)
    assert not is_sure


@requirement("workers:takeover")
async def test_a_worker_whose_machine_slept_for_a_lease_is_not_sure_though_no_time_has_passed_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of, today = Lapse(), 1_000_000.0
    monkeypatch.setattr("farhand.agent.ownership._time_of_day", lambda: today)
    await of.ownership.renew()
    since = now()
    assert await of.holds(since)
    today += 60.0
    assert await of.holds(since)
    assert of.looks == 1
    assert of.ownership.is_sure(now()), "its lease was renewed"
    assert not of.ownership.is_sure(since), "that is no proof for the time before"
    # set back by hand: the other clock counts
    today -= 3600.0
    of.stop()
    assert not of.ownership.is_sure(now())


async def test_a_worker_that_has_its_store_alone_is_always_sure_of_its_runs() -> None:
    of = Lapse(MemoryStore())
    assert await of.holds(-inf)
    assert of.looks == 0


@requirement("workers:takeover")
async def test_a_lease_that_was_renewed_after_it_expired_is_no_proof_for_the_time_before() -> None:
    of = Lapse()
    await of.ownership.renew()
    since = now()
    assert await of.holds(since)
    await of.ownership.renew()
    assert await of.holds(since), "it never expired"
    assert of.looks == 0
    of.stop()
    await of.ownership.renew()
    of.is_own = False
    assert not await of.holds(since)
    assert of.looks == 1


@requirement("workers:takeover")
async def test_an_expired_lease_is_renewed_before_the_worker_looks_what_it_still_holds() -> None:
    of = Lapse()
    assert await of.holds(now())
    assert of.looks == 1
    assert of.ownership.is_sure(now())


async def test_whether_a_worker_still_holds_a_call_is_asked_until_the_store_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("farhand.agent.ownership.RETRY_SEC", 0.001)
    of = Lapse()
    answers = iter([StoreDown("away"), None])
    look = of.look

    async def look_if_there() -> bool:
        error = next(answers)
        if error is not None:
            raise error
        return await look()

    monkeypatch.setattr(of, "look", look_if_there)
    assert await of.holds(-inf)
    assert of.looks == 1


async def test_a_worker_is_alive_for_as_long_as_it_renews_its_lease(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Membership, "trusts_leases", True)
    address = cluster.address()
    store = await PostgresStore.open(address)
    try:
        eventlog = EventLog(store)
        one, other = Membership(eventlog, lease_sec=60), Membership(eventlog, lease_sec=60)
        await one.renew()
        await other.renew()
        assert await one.gone([one.name, other.name]) == set()
        await one.leave()
        assert await other.gone([one.name, other.name]) == {one.name}
        await one.renew()
        assert await other.gone([one.name]) == set()
        brief = Membership(eventlog, lease_sec=0.5)
        await brief.renew()

        async def has_lapsed() -> bool:
            return await other.gone([one.name, brief.name]) == {brief.name}

        await comes_true(has_lapsed)
        for each in (one, other):
            await each.leave()
    finally:
        await store.close()


@requirement("runs:drain")
async def test_a_worker_that_has_left_is_gone_also_for_one_that_has_just_started(cluster: Cluster) -> None:
    store = await PostgresStore.open(cluster.address())
    try:
        eventlog = EventLog(store)
        left, lapsed, other = (Membership(eventlog, lease_sec=each) for each in (60.0, -1.0, 60.0))
        for each in (left, lapsed, other):
            await each.renew()
        await left.leave()
        assert await other.gone([left.name, lapsed.name, other.name]) == {left.name}
    finally:
        await store.close()


async def test_a_worker_joins_when_it_opens_renews_and_leaves_when_it_is_closed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Membership, "trusts_leases", True)
    address = cluster.address()
    quick = Settings(timeouts=Timeouts(lease=1.0))
    stage = Stage(await PostgresStore.open(address), SystemClock(), ["hm"], settings=quick)
    store = await PostgresStore.open(address)
    membership = stage.service.membership
    renew, renewed = membership.renew, 0

    async def counted() -> None:
        nonlocal renewed
        await renew()
        renewed += 1

    async def has_renewed() -> bool:
        # the first time, it joins
        return renewed > 1

    monkeypatch.setattr(membership, "renew", counted)
    try:
        looker = Membership(EventLog(store), lease_sec=60)
        await stage.service.open()
        await comes_true(has_renewed)
        assert await looker.gone([membership.name]) == set()
        await stage.service.close()
        assert await looker.gone([membership.name]) == {membership.name}
    finally:
        await store.close()
