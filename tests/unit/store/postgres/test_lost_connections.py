"""A database that disappears and comes back, and broken connections: no caller gets a wrong answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from farhand.errors import StoreDown
from farhand.store.base import THREAD_MOVED, Appended, Moved, thread_key
from farhand.store.postgres import PostgresStore
from farhand.store.postgres import connection as connection_module
from farhand.store.postgres.connection import ConnectionLost, connect, parse_address
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN, StoreFixture
from tests.chaos.fault_proxy import FaultProxy
from tests.postgres import Cluster, running_cluster
from tests.replica import wait_for_replica
from tests.requirement import requirement
from tests.unit.store.postgres.store_probe import WITHIN_SEC, Hints, comes_true, listens, works

LOST = "not receiving notifications from other servers"


@pytest.fixture
async def proxy(cluster: Cluster) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(("127.0.0.1", cluster.port)) as proxy:
        yield proxy


@pytest.fixture
async def distant(
    cluster: Cluster, proxy: FaultProxy, address: str, clock: FakeClock
) -> AsyncIterator[PostgresStore]:
    """A store that reaches its database over connections that may break."""
    schema = parse_address(address).schema
    opened = await PostgresStore.open(cluster.address(schema, port=proxy.port), clock)
    yield opened
    proxy.flow()
    await opened.close()


@pytest.fixture
def far(distant: PostgresStore, clock: FakeClock) -> StoreFixture:
    return StoreFixture(distant, clock)


@requirement("postgres:recovers")
async def test_after_a_cut_everything_continues_automatically(
    far: StoreFixture, distant: PostgresStore, proxy: FaultProxy
) -> None:
    for no in range(5):
        await works(lambda: distant.load(ANN, "t1"))
        assert proxy.cut() > 0
        await works(lambda: distant.load(ANN, "t1"))
        append = far.new_append("t1", b"[%d]" % no, version=no)
        [result] = await works(lambda append=append: distant.append([append]))  # type: ignore[misc]
        assert result == Appended()
    rows = (await distant.load(ANN, "t1")).rows
    assert [row.body for row in rows] == [b"[%d]" % no for no in range(5)]


@requirement("postgres:recovers")
async def test_a_half_open_connection_is_noticed_and_replaced(
    far: StoreFixture, distant: PostgresStore, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "IDLE_SEC", 0.0)
    await far.append("t1")
    assert proxy.half_open() > 0
    async with asyncio.timeout(WITHIN_SEC):
        assert len((await distant.load(ANN, "t1")).rows) == 1
        await far.append("t1")


@requirement("postgres:recovers")
async def test_a_database_that_does_not_answer_is_reported_to_be_away(
    far: StoreFixture,
    distant: PostgresStore,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await far.append("t0")
    proxy.hang()
    # only as long as it does not answer: when it does again, a busy machine may need longer
    with monkeypatch.context() as impatient:
        impatient.setattr(connection_module, "IDLE_SEC", 0.0)
        impatient.setattr(connection_module, "CONNECT_SEC", 0.3)
        impatient.setattr(connection_module, "ALIVE_SEC", 0.3)
        impatient.setattr("farhand.store.postgres.pool.RETRY_SEC", 0.0)
        for _ in range(3):
            with pytest.raises(StoreDown):
                await far.append("t1")
            with pytest.raises(StoreDown):
                await distant.load(ANN, "t1")
        assert caplog.text.count("did not complete a request") == 1, "once for each time that it is away"
        assert caplog.text.count("appends failed") == 1
        with pytest.raises(StoreDown):
            await distant.check()
    proxy.flow()
    monkeypatch.setattr("farhand.store.outage_log.QUIET_SEC", 0.0)
    [result] = await works(lambda: distant.append([far.new_append("t1")]))
    assert result == Appended()
    await works(lambda: distant.load(ANN, "t1"))
    assert caplog.text.count("can be written again") == 1
    assert caplog.text.count("completes requests again") == 1
    assert len((await works(lambda: distant.load(ANN, "t1"))).rows) == 1
    await distant.check()


@requirement("postgres:woken")
@pytest.mark.parametrize("fault", [FaultProxy.cut, FaultProxy.half_open])
async def test_of_what_was_sent_while_nothing_could_be_heard_a_listener_is_told_to_look(
    distant: PostgresStore, fixture: StoreFixture, proxy: FaultProxy, fault: Callable[[FaultProxy], int]
) -> None:
    hints = Hints(distant)
    await listens(distant)
    hints.all.clear()
    assert fault(proxy) > 0
    await fixture.append("t1")
    await comes_true(lambda: bool(set(hints.all) & {("", ""), (THREAD_MOVED, thread_key(ANN, "t1"))}))
    assert len((await works(lambda: distant.load(ANN, "t1"))).rows) == 1


@requirement("postgres:recovers")
async def test_a_connection_that_takes_no_more_is_given_up_with_its_reason(
    distant: PostgresStore, proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    await listens(distant)
    proxy.hang()
    distant.notify("topic", "item")
    await comes_true(lambda: f"{LOST}: the database did not answer in time" in caplog.text)


@requirement("postgres:recovers")
async def test_a_database_that_is_killed_and_started_again_is_used_again(clock: FakeClock) -> None:
    with running_cluster() as cluster:
        store = await PostgresStore.open(cluster.address("crash"), clock)
        fixture = StoreFixture(store, clock)
        hints = Hints(store)
        await fixture.append("t0")
        await listens(store)
        hints.all.clear()
        writing = [store.append([fixture.new_append(f"n{no}", feed=1)]) for no in range(50)]
        under_way = asyncio.gather(*writing, return_exceptions=True)
        await asyncio.sleep(0)
        cluster.kill()
        with pytest.raises(StoreDown):
            await store.load(ANN, "t0")
        cluster.start()
        answers = await asyncio.wait_for(under_way, WITHIN_SEC)
        assert all(answer == [Appended()] or isinstance(answer, StoreDown) for answer in answers)
        for no, answer in enumerate(answers):
            rows = (await works(lambda no=no: store.load(ANN, f"n{no}"))).rows  # type: ignore[misc]
            if answer == [Appended()]:
                assert len(rows) == 1, "what was answered is there"
            again = fixture.new_append(f"n{no}")
            [result] = await works(lambda again=again: store.append([again]))  # type: ignore[misc]
            assert result == (Moved(1) if rows else Appended()), "deciding again doubles nothing"
        await hints.have(("", ""))
        await listens(store)
        await store.check()
        await store.close()


@requirement("postgres:doubt")
async def test_a_commit_that_does_not_end_is_store_down_and_what_became_of_it_is_read_later(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_cluster() as cluster:
        address = cluster.address("doubt")
        store = await PostgresStore.open(address, clock)
        fixture = StoreFixture(store, clock)
        await fixture.append("t0")
        await wait_for_replica(address, "ghost")
        patience = connection_module.COMMAND_SEC
        # far apart: it is not ready long before the commit is given up, on a busy machine as well
        monkeypatch.setattr(connection_module, "COMMAND_SEC", 4.0)
        monkeypatch.setattr("farhand.store.postgres.append.STALLED_SEC", 0.3)
        await store.check()
        under_way = asyncio.gather(fixture.append("t1"))

        async def is_not_ready() -> bool:
            return not await _is_ready(store)

        await comes_true(is_not_ready)
        assert not under_way.done(), "it may be kept, or not"
        with pytest.raises(StoreDown, match="not confirmed yet whether this was stored"):
            await under_way
        assert not await _is_ready(store), "nor is a commit of nothing"
        monkeypatch.setattr(connection_module, "COMMAND_SEC", patience)
        await wait_for_replica(address, "")

        async def is_decided() -> bool:
            [result] = await works(lambda: store.append([fixture.new_append("t1", version=0)]))
            return result == Moved(1)

        await comes_true(is_decided)
        assert len((await store.load(ANN, "t1")).rows) == 1
        await works(store.check)
        await store.close()


async def _is_ready(store: PostgresStore) -> bool:
    try:
        await store.check()
    except StoreDown:
        return False
    return True


@requirement("postgres:recovers")
async def test_a_connection_that_is_lost_while_the_driver_asks_for_types_is_lost_and_no_fault_of_ours(
    address: str,
) -> None:
    connection = await connect(parse_address(address))

    async def stumble() -> None:
        connection.abort()
        # as the driver does between the two commands that a new type takes
        raise AttributeError("'NoneType' object has no attribute 'bind_execute'")

    with pytest.raises(ConnectionLost):
        await connection._in_time(stumble())
    whole = await connect(parse_address(address))

    async def err() -> None:
        raise AttributeError("a fault of ours")

    with pytest.raises(AttributeError):
        await whole._in_time(err())
    whole.abort()


async def test_a_write_to_the_pool_whose_commit_is_lost_is_not_tried_again(
    distant: PostgresStore, postgres: PostgresStore, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute, cuts = connection_module.Connection.execute, 0

    async def execute_and_cut(
        connection: connection_module.Connection, sql: str, **how: float | None
    ) -> None:
        nonlocal cuts
        if sql == "COMMIT":
            cuts += 1
            proxy.drop_after(0)
        await execute(connection, sql, **how)

    with monkeypatch.context() as broken:
        broken.setattr(connection_module.Connection, "execute", execute_and_cut)
        with pytest.raises(StoreDown):
            await distant.add_to_feed(ANN, b"{}")
    assert cuts == 1
    assert await postgres.feed_span(ANN) == (1, 1), "it was kept, once"
