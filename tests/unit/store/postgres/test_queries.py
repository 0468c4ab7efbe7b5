"""How statements are planned and shared, and what a list does with a record that cannot be read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import pytest

from farhand.core.client import Client
from farhand.errors import StoreDown, Unreadable
from farhand.store import records
from farhand.store.base import CallFilter, Loaded
from farhand.store.open import inspect_store
from farhand.store.postgres import PostgresStore, batch, purge, queries
from farhand.store.postgres.batch import AppendBatch, EncodedAppend
from farhand.store.postgres.connection import BY_INDEX, BY_KEY, Connection, connect, parse_address
from farhand.store.postgres.pool import KEYS_PER_STATEMENT
from farhand.testing.store_laws.fixture import ANN, OPEN_URL, StoreFixture
from tests.statements import counted_statements
from tests.unit.store.postgres.store_probe import execute, query

KEY = ("acme", "ann")
FREQUENT: dict[str, tuple[str, tuple[object, ...]]] = {
    "load": (queries.LOAD, (["acme"], ["ann"], ["t1"], [None])),
    "call": (queries.FIND_CALL["call"], (["acme"], ["ann"], ["?"])),
    "approval": (queries.FIND_CALL["approval"], (["acme"], ["ann"], ["?"])),
    "request": (queries.FIND_CALL["request"], (["acme"], ["ann"], ["?"])),
    "threads": (queries.THREADS, (*KEY, 9)),
    "threads after": (queries.THREADS_AFTER, (*KEY, 9, 1.0, "t1")),
    "run": (queries.FIND_RUN, (*KEY, "?")),
    "runs": (queries.RUNS, (*KEY, "?", 9)),
    "tool": (queries.FIND_TOOL, ("?",)),
    "running": (queries.COUNT["running"], ("acme", None)),
    "open calls": (queries.COUNT["open_calls"], ("acme", None)),
    "feed": (queries.FEED, (*KEY, 0, 9)),
    "feed span": (queries.FEED_SPAN, KEY),
    "claimable": (queries.CLAIMABLE, (None, [], [], 9, "")),
    "own leases": (queries.CLAIMABLE, (None, [], [], 9, "w1")),
    "reserved claimable threads": (queries.RESERVE_CLAIMABLE, (None, [], [], 9, 2.0)),
    "renew": (queries.RENEW, ("w1", 1.0, None)),
    "due": (
        queries.open_calls_query(CallFilter(due_before=1.0))[0],
        (1.0, 9),
    ),
    "direct": (
        queries.open_calls_query(CallFilter(needs_worker=True))[0],
        (9,),
    ),
    "versions": (batch.VERSIONS, (["acme"], ["ann"], ["t1"], None)),
    "without_snapshot": (queries.WITHOUT_SNAPSHOT, (1.0, 9)),
    "purge of calls": (purge.PURGE_CALLS, (1.0, 9)),
    "purge of logs": (purge.PURGE_LOG, (1.0, 9)),
    "purge of feeds": (purge.PURGE_FEED, (1.0, 9)),
}


async def test_a_plan_that_is_kept_walks_through_no_table_because_it_was_small(
    fixture: StoreFixture, address: str
) -> None:
    await _fill(fixture)
    plans = await _plans(address, BY_INDEX, FREQUENT)
    assert {name: plan for name, plan in plans.items() if "Index" not in plan or "Seq Scan" in plan} == {}


async def test_the_runs_that_a_sweep_skips_are_found_by_their_hash(
    fixture: StoreFixture, address: str
) -> None:
    """A worker may hold tens of thousands: compared one by one, they would take seconds."""
    await _fill(fixture)
    names = ("claimable", "own leases", "reserved claimable threads")
    plans = await _plans(address, BY_INDEX, {name: FREQUENT[name] for name in names})
    assert {name: plan for name, plan in plans.items() if "hashed SubPlan" not in plan} == {}


async def test_an_append_finds_every_row_by_its_key(fixture: StoreFixture, address: str) -> None:
    await _fill(fixture)
    file = await fixture.put_file(b"x")
    append = fixture.new_append(
        "t1", calls=(fixture.new_call(),), runs=(fixture.new_run(),), tools=(OPEN_URL,), files=(file.ref,),
        feed=1, snapshot=b"{}",
    )  # fmt: skip
    sql, values = AppendBatch([EncodedAppend(append)]).statement(
        set(), notify=("channel", "sender"), now=None, everywhere=True
    )
    [plan] = (await _plans(address, BY_KEY, {"append": (sql, tuple(values))})).values()
    assert "Index" in plan
    for slow in ("Seq Scan", "Hash Join", "Merge Join"):
        assert slow not in plan


async def test_reads_that_come_together_share_a_statement(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    for number in range(1, 4):
        await fixture.append(
            f"t{number}", calls=(fixture.new_call(f"call_{number}", thread_id=f"t{number}"),)
        )
    await fixture.append("t1")
    await fixture.append("t3", snapshot=b"{}")
    with counted_statements() as asked:
        loads = await asyncio.gather(
            *(postgres.load(ANN, f"t{number}") for number in range(1, 5)),
            postgres.load(ANN, "t1", after=1),
            postgres.load(ANN, "t3", after=0),
            postgres.load(ANN, "t\0"),
        )
        calls = await asyncio.gather(*(postgres.find_call(ANN, "call", f"call_{no}") for no in range(1, 5)))
    found = [([row.version for row in each.rows], each.snapshot_version) for each in loads]
    assert found == [([1, 2], 0), ([1], 0), ([], 2), ([], 0), ([2], 0), ([1, 2], 0), ([], 0)]
    assert [each and each.thread_id for each in calls] == ["t1", "t2", "t3", None]
    # together, then one by one, since one of them has a text that no record can hold
    assert asked == {"load": 8, "find call": 1}


async def test_a_flood_of_reads_is_split_and_a_reader_that_leaves_costs_the_others_nothing(
    fixture: StoreFixture, postgres: PostgresStore
) -> None:
    await fixture.append("t1")
    with counted_statements() as asked:
        reads = [asyncio.ensure_future(postgres.load(ANN, "t1")) for _ in range(2 * KEYS_PER_STATEMENT)]
        await asyncio.sleep(0)
        reads[0].cancel()
        found = await asyncio.gather(*reads, return_exceptions=True)
    assert asked == {"load": 2}
    assert isinstance(found[0], asyncio.CancelledError)
    assert [isinstance(each, Loaded) and len(each.rows) for each in found[1:]] == [1] * (
        2 * KEYS_PER_STATEMENT - 1
    )


async def test_every_reader_is_told_that_the_store_is_closed(postgres: PostgresStore) -> None:
    await postgres.close()
    found = await asyncio.gather(*(postgres.load(ANN, "t1") for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in found] == [StoreDown] * 3


async def test_most_appends_change_a_thread_in_place(fixture: StoreFixture, postgres: PostgresStore) -> None:
    row = fixture.running()
    for _ in range(50):
        fixture.clock.advance(1.0)
        await fixture.append("t1", thread=row)
    # figures arrive when the connection that wrote has been idle for a moment
    await postgres._appends._connection.close()  # type: ignore[union-attr]
    await execute(postgres, "SELECT pg_stat_clear_snapshot()")
    figures = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'threads'::regclass"
    [[updates, in_place]] = await query(postgres, figures)
    assert updates == 49, "the first one creates it"
    assert in_place >= 40


async def test_lists_leave_out_what_cannot_be_read_and_name_it_once(
    fixture: StoreFixture, postgres: PostgresStore, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    records._named.clear()
    for no in range(1, 5):
        fixture.clock.advance(1.0)
        run = fixture.new_run(f"run_{no}", thread_id=f"t{no}")
        call = fixture.new_call(f"call_{no}", thread_id=f"t{no}", run_id=run.run_id)
        await fixture.append(f"t{no}", thread=fixture.running(run.run_id), calls=(call,), runs=(run,))
        client = Client(owner=ANN, client_id=f"c{no}", tools=(), grace_sec=5.0, registered_at=0.0)
        await postgres.clients.put(client)
    await execute(
        postgres,
        "UPDATE threads SET body = 'no JSON' WHERE thread_id = 't3';"
        "UPDATE calls SET body = '{}' WHERE call_id = 'call_3';"
        "UPDATE runs SET body = '[]' WHERE run_id = 'run_3';"
        "UPDATE clients SET body = 'no JSON' WHERE client_id = 'c3'",
    )
    with caplog.at_level(logging.ERROR, "farhand.store"):
        for _ in range(2):
            threads = await postgres.threads(ANN, limit=3)
            assert [each.thread_id for each in threads] == ["t4", "t2", "t1"], "the page is full"
            assert [run.run_id for run in await postgres.runs(ANN, limit=2)] == ["run_4", "run_2"]
            found = await postgres.open_calls(CallFilter(owner=ANN))
            assert [each.call.call_id for each in found] == ["call_1", "call_2", "call_4"]
            assert [each.client_id for each in await postgres.clients.all(ANN)] == ["c1", "c2", "c4"]
    assert caplog.text.count("left out of lists") == 4
    for alone in (postgres.find_call(ANN, "call", "call_3"), postgres.find_run(ANN, "run_3")):
        with pytest.raises(Unreadable):
            await alone
    facts = await inspect_store(address)
    assert set(facts.unreadable) == {"thread t3", "call call_3", "run run_3", "client c3"}


async def test_fields_of_a_newer_version_stay_in_a_registration_that_is_changed(
    postgres: PostgresStore,
) -> None:
    client = Client(owner=ANN, client_id="c1", tools=(), grace_sec=5.0, registered_at=0.0)
    await postgres.clients.put(client)
    added = "UPDATE clients SET body = convert_to(rtrim(convert_from(body, 'UTF8'), '}') || $1, 'UTF8')"
    await query(postgres, added, ', "newer": [1]}')
    after = Client(owner=ANN, client_id="c1", tools=(), grace_sec=6.0, registered_at=0.0, version=2)
    assert await postgres.clients.put(after) == "put"
    [[body]] = await query(postgres, "SELECT body FROM clients")
    assert b'"newer":[1]' in body.replace(b" ", b"")
    assert await postgres.clients.all() == [after]


async def _fill(fixture: StoreFixture) -> None:
    call = fixture.new_call(approval=fixture.new_approval())
    await fixture.append("t1", thread=fixture.running(), calls=(call,), runs=(fixture.new_run(),), feed=1)


async def _plans(
    address: str, settings: dict[str, str], statements: Mapping[str, tuple[str, tuple[object, ...]]]
) -> dict[str, str]:
    """As they are kept: for any values."""
    connection: Connection = await connect(
        parse_address(address), settings={**settings, "plan_cache_mode": "force_generic_plan"}
    )
    # those of this test: without names it goes through the tables of all tests
    tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    await connection.execute(f"ANALYZE {', '.join(row[0] for row in tables)}")
    plans = {}
    for name, (sql, values) in statements.items():
        rows = await connection.fetch(f"EXPLAIN {sql}", *values)
        plans[name] = "\n".join(str(row[0]) for row in rows)
    await connection.close()
    return plans
