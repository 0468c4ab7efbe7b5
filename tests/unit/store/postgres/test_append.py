"""Batches of appends: queued ones share a transaction, and each append is judged separately."""

from __future__ import annotations

import asyncio
import logging

import pytest

from farhand.core.call import Call, ProgramRequest
from farhand.errors import StoreDown, Unreadable
from farhand.store.base import Append, Appended, Lease, Moved, OutOfTime, RequestTaken, ThreadRow
from farhand.store.postgres import PostgresStore
from farhand.store.postgres.batch import AppendBatch
from farhand.store.postgres.connection import Columns, Connection, connect, parse_address
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN, BOB, OPEN_URL, StoreFixture
from tests.chaos.fault_proxy import FaultProxy
from tests.postgres import Cluster
from tests.requirement import requirement
from tests.statements import counted_statements
from tests.unit.store.postgres.store_probe import comes_true, execute, query, works

TRANSACTION = {"write": 1}


async def test_what_queued_while_a_transaction_ran_shares_the_next_one(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    before = postgres._appends.transactions
    appends = [fixture.new_append(f"t{no}", feed=1) for no in range(200)]
    answers = await asyncio.gather(*(postgres.append([each]) for each in appends))
    assert answers == [[Appended()]] * 200
    assert postgres._appends.transactions - before <= 3
    assert await postgres.feed_span(ANN) == (1, 200)


async def test_appends_that_are_too_large_together_are_stored_in_several_transactions(
    fixture: StoreFixture, postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.store.postgres.append.BATCH_BYTES", 10_000)
    before = postgres._appends.transactions

    def large(name: str, *calls: Call) -> Append:
        return fixture.new_append(name, b"b" * 1_000, snapshot=b"s" * 2_000, calls=calls)

    one = [large(f"one{no}", fixture.new_call(f"c{no}")) for no in range(4)]
    assert await postgres.append([*one, fixture.new_append("huge", body=b"b" * 20_000)]) == [Appended()] * 5
    assert postgres._appends.transactions - before == 3
    alone = [large(f"alone{no}") for no in range(6)]
    assert await asyncio.gather(*(postgres.append([each]) for each in alone)) == [[Appended()]] * 6
    assert postgres._appends.transactions - before == 5


async def test_an_append_that_does_not_hold_fails_alone_in_its_transaction(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    now = fixture.clock.now()
    await fixture.append("taken", calls=(fixture.new_call("call_0", request=ProgramRequest("job")),))
    twice = fixture.new_call("call_1", request=ProgramRequest("job"))
    odd = [
        fixture.new_append("moved", version=3),
        fixture.new_append("late", not_after=now - 1),
        fixture.new_append("request", calls=(twice,)),
    ]
    fine = [fixture.new_append(f"t{no}") for no in range(10)]
    before = postgres._appends.transactions
    answers = await asyncio.gather(*(postgres.append([each]) for each in (*fine[:5], *odd, *fine[5:])))
    results = [result for [result] in answers]
    assert results[5:8] == [Moved(0), OutOfTime(now), RequestTaken()]
    assert results[:5] + results[8:] == [Appended()] * 10
    assert postgres._appends.transactions - before <= 2
    rows = await query(postgres, "SELECT thread_id FROM threads WHERE version = 0")
    assert rows == [], "a thread that was made for a refused append is gone"


async def test_a_transaction_is_one_round_trip_whatever_is_in_it(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    file = await fixture.put_file(b"x")
    with counted_statements() as asked:
        await fixture.append()
    assert asked == TRANSACTION
    appends = [
        fixture.new_append(
            f"n{no}",
            thread=fixture.running(f"run_{no}"),
            calls=(fixture.new_call(f"call_{no}"),),
            runs=(fixture.new_run(f"run_{no}"),),
            tools=(OPEN_URL,),
            files=(file.ref,),
            feed=3,
            lease=Lease("w1", fixture.clock.now()),
            snapshot=b"{}",
        )
        for no in range(10)
    ]
    with counted_statements() as asked:
        await asyncio.gather(*(postgres.append([each]) for each in appends))
    assert asked == TRANSACTION


async def test_a_call_with_a_request_id_costs_no_round_trip_of_its_own(
    fixture: StoreFixture,
) -> None:
    call = fixture.new_call(request=ProgramRequest("job-1"))
    with counted_statements() as asked:
        await fixture.append(calls=(call,))
    assert asked == TRANSACTION
    with counted_statements() as asked:
        await fixture.append(calls=(fixture.settled(call),))
    assert asked == TRANSACTION


async def test_appends_without_events_are_one_read_without_a_transaction(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    await fixture.append("t1")
    asking = [fixture.new_append(name, b"", version=1) for name in ("t1", "t2", "t3")]
    with counted_statements() as asked:
        assert await postgres.append(asking) == [Appended(), Moved(0), Moved(0)]
    assert asked == {"versions": 1}
    with counted_statements() as asked:
        mixed = await postgres.append([*asking, fixture.new_append("t4")])
    assert mixed == [Appended(), Moved(0), Moved(0), Appended()]
    assert asked == TRANSACTION


async def test_an_append_without_events_waits_for_no_transaction_that_holds_its_thread(
    fixture: StoreFixture, postgres: PostgresStore, address: str
) -> None:
    await fixture.append("t1")
    holder = await _holding(address, "t1")
    asking = [fixture.new_append("t1", b"", version=1), fixture.new_append("t2")]
    async with asyncio.timeout(20.0):
        assert await postgres.append(asking[:1]) == [Appended()]
        assert await postgres.append(asking) == [Appended(), Appended()]
    holder.abort()


@requirement("workers:answer-anywhere")
async def test_of_two_processes_that_append_to_the_same_threads_one_wins_each_version(
    fixture: StoreFixture, postgres: PostgresStore, other: PostgresStore
) -> None:
    for version in range(20):
        one = [_append(fixture, f"t{no}", version, b"[1]") for no in range(8)]
        two = [_append(fixture, f"t{no}", version, b"[2]") for no in reversed(range(8))]
        first, second = await asyncio.gather(postgres.append(one), other.append(two))
        both = [*zip(one, first, strict=True), *zip(two, second, strict=True)]
        winners = [append.thread_id for append, result in both if result == Appended()]
        assert sorted(winners) == [f"t{no}" for no in range(8)]
        assert [result for _, result in both].count(Moved(version + 1)) == 8
    rows = (await postgres.load(ANN, "t3")).rows
    assert [row.version for row in rows] == list(range(1, 21))


@requirement("workers:answer-anywhere")
async def test_of_two_processes_that_use_a_request_id_at_once_one_is_refused_and_takes_nobody_with_it(
    fixture: StoreFixture, postgres: PostgresStore, other: PostgresStore
) -> None:
    for no in range(20):
        batches = [
            [
                _append(fixture, f"{name}{no}", 0, b"[1]", f"call_{name}{no}", f"job-{no}"),
                _append(fixture, f"beside-{name}{no}", 0, b"[1]"),
            ]
            for name in ("a", "b")
        ]
        answers = await asyncio.gather(postgres.append(batches[0]), other.append(batches[1]))
        first = [answer[0] for answer in answers]
        assert sorted(map(type, first), key=str) == [Appended, RequestTaken]
        assert [answer[1] for answer in answers] == [Appended()] * 2
        found = await postgres.find_call(ANN, "request", f"job-{no}")
        assert found is not None
        assert found.thread_id == f"{'ab'[first.index(Appended())]}{no}"


@requirement("workers:answer-anywhere")
async def test_a_request_race_that_is_lost_at_the_unique_index_is_looked_at_again(
    fixture: StoreFixture, postgres: PostgresStore, address: str
) -> None:
    holder = await connect(parse_address(address))
    await holder.execute("BEGIN")
    await holder.fetch(
        "INSERT INTO calls (call_id, thread_no, tenant, subject, request_id, opened_at, body)"
        " VALUES ('call_0', 0, 'acme', 'ann', 'job', 0, '{}')"
    )
    batch = [_append(fixture, "t1", 0, b"[1]", "call_1", "job"), _append(fixture, "t2", 0, b"[1]")]
    appending = asyncio.gather(postgres.append(batch))
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%wanted AS%'"

    async def is_waiting() -> bool:
        return bool(await query(postgres, waits))

    await comes_true(is_waiting)
    await holder.execute("COMMIT")
    [answer] = await appending
    assert answer == [RequestTaken(), Appended()]
    await holder.close()


@requirement("workers:answer-anywhere")
async def test_numbers_of_a_feed_that_two_processes_write_appear_in_their_order_without_gaps(
    fixture: StoreFixture, postgres: PostgresStore, other: PostgresStore
) -> None:
    writing = asyncio.gather(
        *(
            store.append([fixture.new_append(f"{name}{no}", feed=1 + no % 3)])
            for no in range(60)
            for name, store in (("a", postgres), ("b", other))
        ),
        *(store.add_to_feed(ANN, b"{}") for store in (postgres, other) for _ in range(10)),
    )
    seen = 0
    while not writing.done():
        rows = await other.feed(ANN, after=seen, limit=500)
        for row in rows:
            assert row.no - row.count == seen, "none appears behind one that was read"
            seen = row.no
        await asyncio.sleep(0)
    await writing
    rows = await other.feed(ANN, after=seen, limit=500)
    last = rows[-1].no if rows else seen
    assert last == 60 * 2 * 2 + 20
    assert await postgres.feed_span(ANN) == (1, last)


@requirement("calls:deadline")
async def test_a_time_limit_that_passes_while_a_thread_is_waited_for_has_passed(address: str) -> None:
    """By the database's own clock, which is read after the last lock."""
    store = await PostgresStore.open(address)
    fixture = StoreFixture(store, FakeClock())
    await fixture.append("t1")
    holder = await _holding(address, "t1")
    limited = fixture.new_append("t1", b"[2]", not_after=store.now() + 1.0)
    assert limited.not_after is not None
    appending = asyncio.gather(store.append([limited]))
    # the database tells when it is over by its own clock, however slow this process is
    await holder.fetch("SELECT pg_sleep_until(to_timestamp($1))", limited.not_after + 0.1)
    await holder.execute("COMMIT")
    [[result]] = await appending
    assert isinstance(result, OutOfTime)
    assert result.now >= limited.not_after
    holder.abort()
    await store.close()


async def test_an_append_that_the_database_cannot_hold_fails_alone(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    appends = [fixture.new_append(name) for name in ("t0", "nothing\0here", "t1", "t2")]
    answers = await asyncio.gather(*(postgres.append([each]) for each in appends), return_exceptions=True)
    assert isinstance(answers[1], ValueError)
    assert [answers[0], *answers[2:]] == [[Appended()]] * 3
    unknown = fixture.new_append("nothing\0here", b"")
    known = fixture.new_append("t0", b"", version=1)
    assert await postgres.append([unknown, known]) == [Appended(), Appended()]


async def test_a_thread_whose_row_contradicts_its_log_fails_alone(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    for _ in range(2):
        await fixture.append("odd")
    # as after a restore of some tables only
    await execute(postgres, "UPDATE threads SET version = 1")
    appends = [
        _append(fixture, name, version, b"[1]") for name, version in (("odd", 1), ("t1", 0), ("t2", 0))
    ]
    answers = await asyncio.gather(*(postgres.append([each]) for each in appends), return_exceptions=True)
    assert isinstance(answers[0], Unreadable)
    assert answers[1:] == [[Appended()]] * 2


async def test_a_call_appends_to_a_thread_once_and_two_callers_may_append_to_the_same(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    with pytest.raises(ValueError, match="at most once"):
        await postgres.append([fixture.new_append("t1"), fixture.new_append("t1")])
    in_turn = [_append(fixture, "t1", version, b"[1]") for version in range(3)]
    answers = await asyncio.gather(*(postgres.append([each]) for each in in_turn))
    assert answers == [[Appended()]] * 3


@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_commit_whose_answer_is_lost_is_store_down_and_deciding_again_writes_nothing_twice(
    cluster: Cluster, address: str, postgres: PostgresStore, clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_kept: bool,
) -> None:  # fmt: skip
    async with FaultProxy(("127.0.0.1", cluster.port)) as proxy:
        schema = parse_address(address).schema
        store = await PostgresStore.open(cluster.address(schema, port=proxy.port), clock)
        fixture = StoreFixture(store, clock)
        await fixture.append("t0")
        fetch, cuts = Connection.fetch, 0

        async def fetch_and_cut(
            connection: Connection, sql: str, *values: object, **how: float | None
        ) -> list[Columns]:
            nonlocal cuts
            if "INSERT INTO log " in sql and not cuts:
                cuts += 1
                # the database gets it and its answer is lost, or nothing arrives
                proxy.drop_after(0) if is_kept else proxy.cut()
            return await fetch(connection, sql, *values, **how)

        monkeypatch.setattr(Connection, "fetch", fetch_and_cut)
        with pytest.raises(StoreDown, match="not confirmed yet whether this was stored"):
            await fixture.append("t1", b"[once]")
        assert cuts == 1
        assert caplog.text.count("appends failed") == 1
        loaded = await works(lambda: store.load(ANN, "t1"))
        again = fixture.new_append("t1", b"[once]", version=0)
        [result] = await works(lambda: store.append([again]))
        assert result == (Moved(1) if is_kept else Appended())
        assert bool(loaded.rows) == is_kept
        assert [row.body for row in (await postgres.load(ANN, "t1")).rows] == [b"[once]"]
        await store.close()


async def test_a_connection_that_was_lost_is_replaced_and_the_append_is_made_once(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    await fixture.append("t0")
    connection = postgres._appends._connection
    assert connection is not None
    connection.abort()
    await fixture.append("t1")
    assert len((await postgres.load(ANN, "t1")).rows) == 1


async def test_a_fault_that_nobody_expected_ends_its_transaction_and_not_the_queue(
    fixture: StoreFixture, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("planted")

    with monkeypatch.context() as planted, caplog.at_level(logging.WARNING, "farhand.store"):
        planted.setattr(AppendBatch, "statement", broken)
        with pytest.raises(StoreDown, match="nothing of this was stored"):
            await fixture.append("t1")
    assert "planted" in caplog.text
    await fixture.append("t1")


async def test_a_store_that_is_closed_takes_nothing_more(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    queued = asyncio.gather(postgres.append([fixture.new_append("t1")]))
    await asyncio.sleep(0)
    await postgres.close()
    [answer] = await queued
    assert answer == [Appended()], "what was queued is written"
    with pytest.raises(StoreDown):
        await fixture.append("t2")
    with pytest.raises(StoreDown):
        await postgres.load(ANN, "t1")


async def test_a_caller_that_gives_up_waiting_takes_nothing_from_the_others(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    appends = [asyncio.ensure_future(postgres.append([fixture.new_append(f"t{no}")])) for no in range(10)]
    await asyncio.sleep(0)
    appends[3].cancel()
    answers = await asyncio.gather(*appends, return_exceptions=True)
    assert [answer for no, answer in enumerate(answers) if no != 3] == [[Appended()]] * 9


@requirement("workers:answer-anywhere")
async def test_a_process_that_stops_in_the_middle_of_a_transaction_does_not_keep_its_threads(
    fixture: StoreFixture, postgres: PostgresStore, address: str
) -> None:
    await fixture.append("t1")
    stopped = await _holding(address, "t1")
    [result] = await works(lambda: postgres.append([fixture.new_append("t1")]))
    assert result == Appended()
    stopped.abort()


async def test_workers_that_look_for_claimable_runs_at_once_do_not_find_the_same(
    fixture: StoreFixture, postgres: PostgresStore, other: PostgresStore, clock: FakeClock
) -> None:
    for no in range(40):
        await fixture.append(f"t{no}", thread=fixture.running(f"run_{no}"))
    looks = [store.claimable(limit=10, reserve_sec=2.0) for store in (postgres, other) * 2]
    pages = await asyncio.gather(*looks)
    found = [each.thread_id for page in pages for each in page]
    assert len(found) == len(set(found)), "none twice"
    assert len(found) >= 20
    clock.advance(2.0)
    assert len(await postgres.claimable(limit=100)) == 40, "a worker that died with them keeps none"


async def test_claimable_runs_that_cannot_be_read_hide_no_others(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    for no in range(6):
        await fixture.append(f"t{no}", thread=fixture.running(f"run_{no}"))
    await execute(postgres, "UPDATE threads SET body = 'odd' WHERE thread_id IN ('t0', 't1', 't2')")
    for reserve_sec in (0.0, 2.0):
        found = await postgres.claimable(limit=2, skip={"run_3"}, reserve_sec=reserve_sec)
        assert {each.thread_id for each in found} <= {"t4", "t5"}
        assert found


@requirement("calls:deadline")
async def test_leases_end_by_the_clock_of_the_database(address: str) -> None:
    store = await PostgresStore.open(address)
    fixture = StoreFixture(store, FakeClock())
    await fixture.append("t1", thread=fixture.running(), lease=Lease("w1", store.now() + 60.0))
    assert await store.claimable(limit=9) == []
    lease = Lease("w1", store.now() + 1.0)
    await fixture.append("t1", thread=fixture.running(), lease=lease)

    async def is_claimable() -> bool:
        return bool(await store.claimable(limit=9))

    await comes_true(is_claimable)
    [[now]] = await query(store, "SELECT extract(epoch FROM clock_timestamp())::float8")
    assert now >= lease.until
    await store.renew("w1", store.now() + 60.0)
    assert await store.claimable(limit=9) == []
    await store.close()


@requirement("workers:takeover")
async def test_a_lease_is_renewed_by_the_clock_of_the_database_whatever_its_worker_knows_of_it(
    address: str,
) -> None:
    store = await PostgresStore.open(address)
    fixture = StoreFixture(store, FakeClock())
    await fixture.append("t1", thread=fixture.running(), lease=Lease("w1", store.now() + 60.0))
    assert store._clock._ahead is not None
    # the clock of the database was set ahead, or another database took over
    store._clock._ahead -= 600.0
    await store.renew("w1", store.now() + 60.0)
    assert await store.claimable(limit=9) == []
    await store.renew("w1", 0.0)
    assert [each.thread_id for each in await store.claimable(limit=9)] == ["t1"]
    await store.close()


async def test_renewals_and_appends_that_meet_do_not_wait_for_each_other_in_a_circle(
    fixture: StoreFixture, postgres: PostgresStore, other: PostgresStore
) -> None:
    names = [f"t{no}" for no in range(20)]
    for name in names:
        lease = Lease("w1", fixture.clock.now() + 60.0)
        await fixture.append(name, thread=fixture.running(f"run_{name}"), lease=lease)
    # a deadlock would be found after a second, and fail one of them
    async with asyncio.timeout(20.0):
        for version in range(1, 20):
            batch = [_append(fixture, name, version, b"[1]") for name in names]
            renewals = [other.renew("w1", fixture.clock.now() + 60.0) for _ in range(3)]
            answers = await asyncio.gather(postgres.append(batch), *renewals)
            assert answers[0] == [Appended()] * 20


async def test_a_tool_is_sent_once_and_again_if_its_transaction_was_not_kept(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    await fixture.append("t0")
    assert await fixture.try_append("t0", version=7, tools=(OPEN_URL,)) == Moved(1)
    await fixture.append("t1", tools=(OPEN_URL,))
    assert await postgres.find_tool(OPEN_URL.version) == OPEN_URL
    assert postgres._appends._tools == {OPEN_URL.version}
    await fixture.append("t2", tools=(OPEN_URL,), owner=BOB)
    assert await query(postgres, "SELECT count(*) FROM tools") == [(1,)]


def _append(
    fixture: StoreFixture, name: str, version: int, body: bytes, call: str = "", request: str = ""
) -> Append:
    """At this version, whatever the fixture counted."""
    calls = (
        (fixture.new_call(call, thread_id=name, run_id=None, request=ProgramRequest(request)),)
        if call
        else ()
    )
    row = ThreadRow(title="Hello", created_at=1.0, updated_at=1.0)
    return fixture.new_append(name, body, version=version, thread=row, calls=calls)


async def _holding(address: str, thread_id: str) -> Connection:
    """A connection in the middle of a transaction that has locked the thread."""
    connection = await connect(parse_address(address))
    await connection.execute("BEGIN")
    await connection.fetch("SELECT 1 FROM threads WHERE thread_id = $1 FOR UPDATE", thread_id)
    return connection
