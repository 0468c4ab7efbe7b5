"""How records lie in the tables: other versions' fields are kept, and no scan walks through the history."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from farhand.core.thread import Thread
from farhand.errors import Unreadable
from farhand.store.base import AllowTool, InsertThread, SwapCall
from farhand.store.draft import records
from farhand.store.sqlite import SqliteStore, files, purge, sql
from farhand.store.sqlite.file import open_file
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import ANN, Given
from tests.requirement import requirement

NEWER = {"shape": {"of": "a newer farhand"}, "number": 1.0}

# RUN is a part of others; feeds are counted by walking through them, in a thread of its own
LEFT_OUT = {"RUN", "COUNT_OLD"}
READS = {
    name: statement
    for name, statement in (vars(sql) | vars(files)).items()
    if name.isupper() and name not in LEFT_OUT and isinstance(statement, str) and "WHERE" in statement
}


@requirement("store:unknown-fields")
async def test_fields_of_a_newer_version_are_tolerated_and_kept_through_every_change(
    sqlite: SqliteStore, given: Given, path: Path
) -> None:
    run = await given.run()
    call = await given.call(run)
    thread = await sqlite.get_thread(ANN, "t1")
    for table in ("calls", "threads"):
        _change_bodies(path, table, lambda body: body | NEWER)
    # read again, as after an update of farhand and back
    sqlite._writer._draft.forget()

    assert await given.stored_call(call) == call
    assert await sqlite.get_thread(ANN, "t1") == thread
    await given.write(SwapCall(call, given.settled(call)), AllowTool(ANN, "t1", "v1"))
    await given.write(InsertThread(given.new_thread("t1")))
    assert await given.stored_call(call) == given.settled(call)
    for table in ("calls", "threads"):
        [body] = _bodies(path, table)
        assert {name: body[name] for name in NEWER} == NEWER


async def test_a_record_that_this_version_cannot_read_is_a_clear_error(given: Given, path: Path) -> None:
    call = await given.call()
    _change_bodies(path, "calls", lambda body: body | {"phase": "flying"})
    with pytest.raises(Unreadable, match="cannot be read by this version"):
        await given.stored_call(call)


@requirement("store:cheap-scans")
@pytest.mark.parametrize("name", READS)
def test_no_read_walks_through_a_table(name: str, path: Path) -> None:
    file = open_file(str(path))
    db = file.connect()
    assert _walks(db, READS[name]) == []
    db.close()
    file.close()


@requirement("store:cheap-scans")
@pytest.mark.parametrize("name", [name for name in READS if "tenant = ?" in READS[name]])
def test_what_a_tenant_asks_walks_through_nothing_of_others(name: str, path: Path) -> None:
    file = open_file(str(path))
    db = file.connect()
    first = next(step for step in _plan(db, READS[name]) if step.startswith("SEARCH"))
    # by the tenant, or by what is one record's own
    assert re.search(r"\((tenant|run_id|run_no|ref|file_no)=\?", first), first
    db.close()
    file.close()


@requirement("store:cheap-scans")
def test_purging_looks_only_at_what_it_changes(path: Path) -> None:
    file = open_file(str(path))
    db = file.connect()
    seen: list[str] = []
    db.set_trace_callback(seen.append)
    purge.purge_calls(db, 1.0)
    purge.purge_journals(db, 1.0)
    files.purge_files(db, 1.0, arriving_before=1.0)
    db.set_trace_callback(None)
    assert [walk for sql in seen for walk in _walks(db, sql)] == []
    db.close()
    file.close()


@requirement("store:cheap-scans")
async def test_what_is_due_or_stray_is_found_among_many_parked_calls(given: Given, clock: FakeClock) -> None:
    async def park(number: int) -> None:
        run = await given.run(f"t{number}")
        await given.call(run, deadline=clock.now() + 1000 + number)
        await given.park(run)

    await asyncio.gather(*(park(number) for number in range(300)))
    assert await given.store.stray_runs(limit=10) == []
    due = await given.store.due(before=clock.now() + 1002.5, limit=10)
    assert [round(item.deadline - clock.now()) for item in due] == [1000, 1001, 1002]


@requirement("postgres:strays")
async def test_strays_that_cannot_be_read_or_are_skipped_hide_no_others(
    sqlite: SqliteStore, given: Given, clock: FakeClock
) -> None:
    runs = [await given.run(f"t{number}") for number in range(6)]
    clock.advance(60.0)
    odd = [(run.run_id,) for run in runs[:3]]
    spoil = "UPDATE runs SET state = 'odd', stray_at = 0 WHERE run_id = ?"
    await sqlite._writer.do(lambda db: db.executemany(spoil, odd).rowcount)
    found = await sqlite.stray_runs(limit=2, skip={runs[3].run_id})
    assert found, "some of them; the others come next"
    assert {run.run_id for run in found} <= {runs[4].run_id, runs[5].run_id}


def test_an_unknown_field_is_not_lost_when_there_is_none() -> None:
    thread = Thread(owner=ANN, thread_id="t1", created_at=1.0, updated_at=2.0)
    body = records.encode(thread)
    assert records.unknown_in(body, Thread) == {}
    assert records.encode_with({}, thread) == body


def _walks(db: sqlite3.Connection, sql: str) -> list[str]:
    """The steps of its plan that go through a whole table."""
    return [step for step in _plan(db, sql) if step.startswith("SCAN") and step != "SCAN CONSTANT ROW"]


def _plan(db: sqlite3.Connection, sql: str) -> list[str]:
    numbered = set(re.findall(r"\?\d", sql))
    values = (1,) * (len(numbered) or sql.count("?"))
    steps = [str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert steps
    return steps


def _bodies(path: Path, table: str) -> list[dict[str, object]]:
    db = sqlite3.connect(path)
    bodies = [msgspec.json.decode(body) for (body,) in db.execute(f"SELECT body FROM {table}")]
    db.close()
    return bodies


def _change_bodies(path: Path, table: str, change: Callable[[dict[str, object]], dict[str, object]]) -> None:
    """As another version of farhand would have written them."""
    db = sqlite3.connect(path)
    found = db.execute(f"SELECT rowid, body FROM {table}").fetchall()
    bodies = [(msgspec.json.encode(change(msgspec.json.decode(body))), number) for number, body in found]
    db.executemany(f"UPDATE {table} SET body = ? WHERE rowid = ?", bodies)
    db.commit()
    db.close()
