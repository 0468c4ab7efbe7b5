"""A database that goes away and comes back, and lines that break: nobody is told anything untrue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import pytest

from farhand.core.event import TextAdded
from farhand.errors import StoreDown
from farhand.store.base import Committed, InsertThread, SwapCall, WriteRun
from farhand.store.hub import freed
from farhand.store.postgres import PostgresStore
from farhand.store.postgres import line as line_module
from farhand.store.postgres.line import Line, Lost, connect
from farhand.store.postgres.place import place_of
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import ANN, Given
from tests.chaos.fault_proxy import FaultProxy
from tests.postgres import Cluster, running_cluster
from tests.requirement import requirement
from tests.unit.agent.stage import comes_true

WITHIN_SEC = 20.0
MANY, SLOW_SEC = 20_000, 0.008
T = TypeVar("T")


@pytest.fixture
async def line(cluster: Cluster) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(("127.0.0.1", cluster.port)) as proxy:
        yield proxy


@pytest.fixture
async def far(cluster: Cluster, line: FaultProxy, address: str, clock: FakeClock) -> AsyncIterator[Given]:
    """A store that reaches its database over a line that may break."""
    schema = address.rpartition("=")[2]
    opened = await PostgresStore.open(cluster.address(schema, port=line.port), clock)
    yield Given(opened, clock)
    line.flow()
    await opened.close()


@requirement("postgres:recovers")
async def test_after_a_cut_everything_goes_on_by_itself(far: Given, line: FaultProxy) -> None:
    run = await far.run()
    for number in range(5):
        assert line.cut() > 0
        await _works(lambda: far.stored_run(run))
        write = WriteRun(run_id=run.run_id, events=(TextAdded(0, str(number)),))
        await _works(lambda write=write: far.store.commit(write))  # type: ignore[misc]
    entries = await far.store.events(ANN, run.run_id)
    assert [entry.event for entry in entries] == [TextAdded(0, str(number)) for number in range(5)]


@requirement("postgres:recovers")
async def test_half_a_connection_is_noticed_and_replaced(
    far: Given, line: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.store.postgres.line.IDLE_SEC", 0.0)
    run = await far.run()
    assert line.half_open() > 0
    async with asyncio.timeout(WITHIN_SEC):
        assert (await far.stored_run(run)).run_id == run.run_id
        assert isinstance(await far.store.commit(WriteRun(run_id=run.run_id)), Committed)


@requirement("postgres:recovers")
async def test_a_database_that_does_not_answer_is_said_to_be_away(
    far: Given, line: FaultProxy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("farhand.store.postgres.line.IDLE_SEC", 0.0)
    monkeypatch.setattr("farhand.store.postgres.line.CONNECT_SEC", 0.3)
    monkeypatch.setattr("farhand.store.postgres.line.ALIVE_SEC", 0.3)
    monkeypatch.setattr("farhand.store.postgres.lines.AGAIN_SEC", 0.0)
    thread = far.new_thread("t1")
    line.hang()
    with pytest.raises(StoreDown):
        await far.store.commit(InsertThread(thread))
    for _ in range(3):
        with pytest.raises(StoreDown):
            await far.store.get_thread(ANN, "t1")
    assert caplog.text.count("could not be read") == 1, "once for each time that it is away"
    line.flow()
    await _works(lambda: far.store.commit(InsertThread(thread)))
    assert await _works(lambda: far.store.get_thread(ANN, "t1")) == thread


@requirement("postgres:woken")
@pytest.mark.parametrize("fault", [FaultProxy.cut, FaultProxy.half_open])
async def test_what_was_said_while_nothing_could_be_heard_is_found_in_the_record(
    far: Given, other: Given, line: FaultProxy, fault: Callable[[FaultProxy], int]
) -> None:
    run = await far.run()
    call = await far.call(run)
    with far.store.hub.watch(freed(run.run_id)) as watch:
        await _hears(far.store)
        assert fault(line) > 0
        await other.write(SwapCall(call, other.settled(call)))
        async with asyncio.timeout(WITHIN_SEC):
            while not watch.lost and not watch.news:
                await watch.wait(WITHIN_SEC)
                watch.wake()
        assert (await _works(lambda: far.stored_run(run))).blockers == 0


@requirement("postgres:many-read")
async def test_many_runs_that_are_read_here_are_told_again_and_again_over_a_slow_line(
    far: Given,
    other: Given,
    line: FaultProxy,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("farhand.store.postgres.bell.SLICES", 2)
    topics = [f"run_{number:032x}" for number in range(MANY)]
    elsewhere = other.store.hub
    with far.store.hub.watch(*topics):
        await _hears(far.store)
        await _hears(other.store)
        line.delay(SLOW_SEC)
        for _ in range(3):
            elsewhere.elsewhere._topics.clear()

            async def all_are_known() -> bool:
                return all(map(elsewhere.watched, topics))

            await comes_true(all_are_known)
    assert "nothing is heard" not in caplog.text


@requirement("postgres:recovers")
async def test_a_line_that_takes_no_more_is_given_up_with_its_reason(
    far: Given, line: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    await _hears(far.store)
    line.hang()
    far.store.hub.tell_others("topic", "item")

    async def is_said() -> bool:
        # it may have been asking for a sign of life when the line began to hang
        why = "to say 1 hints took longer than 1 s", "the database did not answer in time"
        return any(f"nothing is heard of the other servers: {each}" in caplog.text for each in why)

    await comes_true(is_said)


@requirement("postgres:recovers")
async def test_a_database_that_is_killed_and_started_again_is_used_again(clock: FakeClock) -> None:
    with running_cluster() as cluster:
        store = await PostgresStore.open(cluster.address("crash"), clock)
        given = Given(store, clock)
        run = await given.run()
        await _hears(store)
        writing = [store.commit(WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),))) for _ in range(50)]
        under_way = asyncio.gather(*writing, return_exceptions=True)
        await asyncio.sleep(0)
        cluster.kill()
        with pytest.raises(StoreDown):
            await store.get_thread(ANN, "t1")
        cluster.start()
        answers = await asyncio.wait_for(under_way, WITHIN_SEC)
        kept = [answer for answer in answers if isinstance(answer, Committed)]
        assert all(isinstance(answer, Committed | StoreDown) for answer in answers)
        entries = await _works(lambda: store.events(ANN, run.run_id))
        assert len(entries) == len(kept), "what was answered is there, and nothing else is"
        await _works(lambda: store.commit(WriteRun(run_id=run.run_id)))
        await _hears(store)
        await store.close()


@requirement("postgres:doubt")
async def test_behind_a_commit_that_does_not_end_all_are_sent_away_until_the_database_says_what_became_of_it(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("farhand.store.postgres.writer.DOUBT_PATIENCE_SEC", 0.2)
    with running_cluster() as cluster:
        address = cluster.address("doubt")
        store = await PostgresStore.open(address, clock)
        given = Given(store, clock)
        run = await given.run()
        await store.check()
        await _wait_for_a_replica(address, "ghost")
        patience = line_module.COMMAND_SEC
        monkeypatch.setattr(line_module, "COMMAND_SEC", 0.5)
        write = WriteRun(run_id=run.run_id, events=(TextAdded(0, "once"),))
        first, batch = asyncio.gather(store.commit(write)), store._writer._batch

        async def is_under_way() -> bool:
            return store._writer._batch > batch

        await comes_true(is_under_way)
        with pytest.raises(StoreDown):
            await asyncio.wait_for(store.commit(write), WITHIN_SEC)
        with pytest.raises(StoreDown):
            await store.commit(write)
        with pytest.raises(StoreDown):
            await store.check()
        assert not first.done(), "it may be kept, or not"
        assert caplog.text.count("is not known yet") == 1
        monkeypatch.setattr(line_module, "COMMAND_SEC", patience)
        await _wait_for_a_replica(address, "")
        [answer] = await asyncio.wait_for(first, WITHIN_SEC)
        assert isinstance(answer, Committed)
        await _works(store.check)
        await _works(lambda: store.commit(write))
        assert len(await store.events(ANN, run.run_id)) == 2
        await store.close()


async def _wait_for_a_replica(address: str, name: str) -> None:
    """From now on no transaction ends before it is there, too."""
    line = await connect(place_of(address))
    await line.run(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
    await line.run("SELECT pg_reload_conf()")
    await line.close()


@requirement("postgres:recovers")
async def test_a_connection_that_is_lost_while_the_driver_asks_for_types_is_lost_and_no_fault_of_ours(
    postgres: PostgresStore,
) -> None:
    line = await postgres._lines._connect()

    async def stumble() -> None:
        line.cut()
        # as the driver does between the two commands that a new type takes
        raise AttributeError("'NoneType' object has no attribute 'bind_execute'")

    with pytest.raises(Lost):
        await line._in_time(stumble())
    whole = await postgres._lines._connect()

    async def err() -> None:
        raise AttributeError("a fault of ours")

    with pytest.raises(AttributeError):
        await whole._in_time(err())
    whole.cut()


@requirement("postgres:no-lock-kept")
async def test_whoever_stops_in_the_middle_of_a_transaction_does_not_keep_its_rows(
    given: Given, other: Given, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await given.run()
    stopped = await _stopped_in_mid_transaction(postgres, run.run_id)
    async with asyncio.timeout(WITHIN_SEC):
        await _works(lambda: other.store.commit(WriteRun(run_id=run.run_id)))
    stopped.cut()


async def _stopped_in_mid_transaction(store: PostgresStore, run_id: str) -> Line:
    line = await store._lines._connect()
    await line.run("BEGIN")
    await line.fetch("SELECT 1 FROM runs WHERE run_id = $1 FOR UPDATE", run_id)
    return line


async def _works(work: Callable[[], Awaitable[T]]) -> T:
    """Tries again while the store says that it is away."""
    for _ in range(1_000):
        try:
            return await work()
        except StoreDown:
            await asyncio.sleep(WITHIN_SEC / 1_000)
    raise AssertionError("the store did not come back")


async def _hears(store: object) -> None:
    assert isinstance(store, PostgresStore)

    async def is_hearing() -> bool:
        return store._bell.is_hearing

    await comes_true(is_hearing)
