"""No read or scan of a SQLite store walks through a table, and an append takes few statements."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from farhand.core.principal import Owner
from farhand.core.run import RunState
from farhand.store.base import Append, CallFilter, Lease
from farhand.store.sqlite import SqliteStore, append, files, purge, queries, store, writer
from farhand.store.sqlite.file import open_file
from farhand.store.sqlite.writer import WriteConnection
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN, OPEN_URL, StoreFixture

# feeds are counted by walking through them, for whoever asks; records, for doctor; all clients, at start
WALKS = {"COUNT_OLD", "RECORDS", "CLIENTS", "FIRST_FEED"}


def _statements() -> dict[str, str]:
    found = {
        name: value
        for module in (append, files, purge, queries, store, writer)
        for name, value in vars(module).items()
        if name[0].isalpha()
        and name.isupper()
        and isinstance(value, str)
        and "WHERE" in value
        and name not in WALKS
    }
    found |= {f"FIND_CALL {kind}": sql for kind, sql in queries.FIND_CALL.items()}
    found |= {f"DELETE_BY_NO {no}": sql for no, sql in enumerate(purge.DELETE_BY_NO)}
    filters = {
        "owner": CallFilter(owner=ANN),
        "due": CallFilter(due_before=1.0),
        "direct": CallFilter(needs_worker=True),
        "client": CallFilter(is_client=True),
    }
    found |= {f"OPEN_CALLS {name}": queries.open_calls(which)[0] for name, which in filters.items()}
    return found


STATEMENTS = _statements()


@pytest.fixture
def db(path: Path) -> Iterator[sqlite3.Connection]:
    file = open_file(str(path))
    db = file.connect()
    yield db
    db.close()
    file.close()


@pytest.mark.parametrize("name", [*STATEMENTS, "COUNT_OLD"])
def test_no_statement_has_numbered_parameters(name: str) -> None:
    """Python 3.12.0 to 3.12.3 take them for named ones and warn, which hosts may turn into an error."""
    sql = purge.COUNT_OLD if name == "COUNT_OLD" else STATEMENTS[name]
    assert re.search(r"\?\d", sql) is None


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_walks_through_a_table(name: str, db: sqlite3.Connection) -> None:
    # json_each is a list of values that was handed over
    walks = [
        step for step in _plan(db, STATEMENTS[name]) if step.startswith("SCAN") and "json_each" not in step
    ]
    # an index of open things alone, in the order that was asked for, is no table
    walks = [
        step for step in walks if not re.search(r"USING INDEX (calls_for_worker|calls_of_clients)", step)
    ]
    assert [
        step for step in walks if step != "SCAN CONSTANT ROW" and not step.startswith("SCAN removed_")
    ] == []


@pytest.mark.parametrize("name", [name for name, sql in STATEMENTS.items() if "tenant = ?" in sql])
def test_what_a_tenant_asks_walks_through_nothing_of_others(name: str, db: sqlite3.Connection) -> None:
    first = next(step for step in _plan(db, STATEMENTS[name]) if step.startswith("SEARCH"))
    # by the tenant, or by what is one record's own
    assert re.search(r"\((tenant|run_id|call_id|approval_id|ref|file_no)=\?", first), first


def test_lists_come_sorted_from_their_indexes(db: sqlite3.Connection) -> None:
    for name in (
        "THREADS",
        "THREADS_AFTER",
        "RUNS",
        "RUNS_AFTER",
        "CLAIMABLE",
        "FEED",
        "WITHOUT_SNAPSHOT",
        "OLD_THREADS",
    ):
        assert not [step for step in _plan(db, STATEMENTS[name]) if "TEMP B-TREE" in step], name
    due = _plan(db, STATEMENTS["OPEN_CALLS due"])
    assert any("calls_due" in step for step in due)
    assert not [step for step in due if "TEMP B-TREE" in step]


def test_every_index_is_used_by_a_statement(db: sqlite3.Connection) -> None:
    made = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    names = {name for (name,) in db.execute(made)}
    steps = "\n".join(step for sql in STATEMENTS.values() for step in _plan(db, sql))
    assert {name for name in names if name not in steps} == set()


async def test_an_append_is_a_handful_of_statements(sqlite: SqliteStore, fixture: StoreFixture) -> None:
    first = fixture.new_append(
        thread=fixture.running(),
        calls=(fixture.new_call(),),
        runs=(fixture.new_run(),),
        tools=(OPEN_URL,),
        feed=2,
        lease=Lease("w1", fixture.clock.now() + 15),
    )
    # thread (read, written), row, tools, feed; the last numbers of threads and of the feed, once
    assert len(await _traced(sqlite, first)) == 7
    await fixture.append_all(fixture.new_append("t9", feed=1))
    words = fixture.new_append(version=1, thread=fixture.running())
    assert [sql.split()[0] for sql in await _traced(sqlite, words)] == ["UPDATE", "INSERT"]
    settled = fixture.new_append(
        version=2,
        thread=fixture.running(),
        calls=(fixture.settled(fixture.new_call()),),
        tools=(OPEN_URL,),
        feed=1,
    )
    assert len(await _traced(sqlite, settled)) == 3
    ended = fixture.new_append(
        version=3, thread=fixture.running(run_state=RunState.DONE), runs=(fixture.new_run(),), feed=1
    )
    # the call and the run once they will not change any more
    assert len(await _traced(sqlite, ended)) == 5


async def test_words_that_are_added_touch_no_index(sqlite: SqliteStore, fixture: StoreFixture) -> None:
    await fixture.append(thread=fixture.running())
    [update, _] = await _traced(sqlite, fixture.new_append(thread=fixture.running()))
    indexed = {"updated_at", "can_go_on", "oldest_at", "tenant", "subject", "thread_id"}
    assert not [name for name in indexed if re.search(rf"\b{name} =", update)]


async def test_what_is_due_or_claimable_is_found_among_many_parked_calls(
    fixture: StoreFixture, clock: FakeClock
) -> None:
    now = clock.now()
    appends = [
        fixture.new_append(
            f"t{no}",
            thread=fixture.parked(f"run_{no}"),
            calls=(fixture.new_call(f"call_{no}", deadline=now + 1000 + no),),
        )
        for no in range(300)
    ]
    await fixture.append_all(*appends)
    assert await fixture.claimable_ids() == []
    assert await fixture.open_ids(due_before=now + 1002.5) == ["call_0", "call_1", "call_2"]
    assert len(await fixture.open_ids(owner=ANN)) == 300


async def test_totals_are_counted_once_for_a_tenant_and_kept_up_to_date(path: Path, clock: FakeClock) -> None:
    store = await SqliteStore.open(str(path), clock)
    fixture = StoreFixture(store, clock)
    await fixture.append("t1", b"123", thread=fixture.running(), calls=(fixture.new_call(),))
    await fixture.append("t1", b"45", owner=Owner("other", "ann"))
    await store.close()
    fixture.store = store = await SqliteStore.open(str(path), clock)
    # written before anybody asked, and in the transaction in which it is counted
    late, counted = fixture.append("t2", b"6"), store.count("bytes", "acme")
    await late
    assert await counted == 4
    before = store._writer.transactions
    assert [await store.count(what, "acme", "ann") for what in ("threads", "running", "open_calls")] == [
        2,
        1,
        1,
    ]
    assert await store.count("threads", "nobody") == 0
    assert await store.count("bytes", "other") == 2
    assert store._writer.transactions == before + 2, "one for each tenant that is new"
    await store.close()


async def test_totals_of_too_many_are_counted_again(
    sqlite: SqliteStore, fixture: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "COUNTED", 3)
    for no in range(5):
        owner = Owner("acme", f"s{no}")
        await fixture.append("t1", b"12", owner=owner)
        assert await sqlite.count("bytes", "acme") == 2 * (no + 1)
        assert await sqlite.count("threads", "acme", f"s{no}") == 1


async def _traced(store: SqliteStore, one: Append) -> list[str]:
    """The statements of this append."""
    seen: list[str] = []

    def work(writing: WriteConnection) -> None:
        writing.db.set_trace_callback(seen.append)
        try:
            append.append_all(writing, [one])
        finally:
            writing.db.set_trace_callback(None)

    await store._writer.do(work)
    return [sql.strip() for sql in seen]


def _plan(db: sqlite3.Connection, sql: str) -> list[str]:
    numbered = set(re.findall(r"\?\d", sql))
    values = ("1",) * (len(numbered) or sql.count("?"))
    steps = [str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    return [step for step in steps if step]
