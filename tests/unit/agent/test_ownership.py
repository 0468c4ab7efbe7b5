"""Workers know of each other whether they are alive, by the store that they share."""

from __future__ import annotations

import asyncio

import pytest

from farhand.agent.ownership import Membership, Ownership
from farhand.clock import SystemClock
from farhand.core.settings import Settings, Timeouts
from farhand.eventlog.log import EventLog
from farhand.store.memory import MemoryStore
from farhand.store.postgres import PostgresStore
from tests.postgres import Cluster
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


async def test_a_worker_is_sure_of_its_runs_for_one_lease_from_when_it_asked() -> None:
    timeouts = Timeouts(lease=60)
    ownership = Ownership(EventLog(SharedStore()), timeouts, "wrk_1")
    assert not ownership.is_sure()
    await ownership.renew()
    assert ownership.is_sure()
    # as if the process had been stopped for a whole lease before the store answered
    await ownership.renew(since=asyncio.get_running_loop().time() - timeouts.lease)
    assert not ownership.is_sure()


async def test_a_worker_that_has_its_store_alone_is_always_sure_of_its_runs() -> None:
    assert Ownership(EventLog(MemoryStore()), Timeouts(), "wrk_1").is_sure()


async def test_a_worker_is_alive_for_as_long_as_it_renews_its_lease(cluster: Cluster) -> None:
    address = cluster.address()
    store = await PostgresStore.open(address)
    try:
        eventlog = EventLog(store)
        one, other = Membership(eventlog, lease_sec=0.5), Membership(eventlog, lease_sec=60)
        await one.renew()
        await other.renew()
        assert await one.gone([one.name, other.name]) == set()
        await one.leave()
        assert await other.gone([one.name, other.name]) == {one.name}
        await one.renew()
        assert await other.gone([one.name]) == set()

        async def has_lapsed() -> bool:
            return bool(await other.gone([one.name]))

        await comes_true(has_lapsed)
        await other.leave()
    finally:
        await store.close()


async def test_a_worker_joins_when_it_opens_renews_and_leaves_when_it_is_closed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
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
