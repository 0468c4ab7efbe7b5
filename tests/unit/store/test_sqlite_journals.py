"""How journals lie in a SQLite file: what a commit says is one row, also where each event had its own."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from farhand.core.event import CallTaken, Entry, Event, News, RunParked, RunStarted, StepStarted, TextAdded
from farhand.store.base import InsertRun, WriteRun
from farhand.store.draft.records import encode
from farhand.store.sqlite import SqliteStore
from farhand.store.sqlite import file as file_module
from farhand.store.sqlite.file import open_file
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import ANN, Given
from tests.requirement import requirement

BEFORE_JOURNALS = 4
"""The last version with a row for each event."""

SAID: tuple[Event, ...] = (
    RunStarted("t1"),
    StepStarted(1),
    TextAdded(0, "grüß \u0000 \U0001f600"),
    RunParked(),
)


@requirement("store:journal-rows")
async def test_what_one_commit_says_is_one_row(sqlite: SqliteStore, given: Given, path: Path) -> None:
    run = await given.run()
    await given.write(WriteRun(run_id=run.run_id, events=SAID))
    await given.write(WriteRun(run_id=run.run_id, events=(StepStarted(2), CallTaken("call_1", "tab"))))
    assert _count_rows(path, "journals") == 2
    entries = await sqlite.events(ANN, run.run_id, after=3, limit=2)
    assert [(entry.seq, entry.event) for entry in entries] == [(4, RunParked()), (5, StepStarted(2))]
    told = [news.event for news in await sqlite.feed(ANN)]
    assert told == [RunStarted("t1"), RunParked(), CallTaken("call_1", "tab")]


@requirement("store:journal-rows")
async def test_a_purged_journal_borrows_nothing_from_the_next_one(
    sqlite: SqliteStore, given: Given, clock: FakeClock
) -> None:
    old, young = await given.run("t1"), await given.run("t2")
    await given.write(WriteRun(run_id=old.run_id, events=SAID))
    await given.end(old)
    clock.advance(10.0)
    await given.write(WriteRun(run_id=young.run_id, events=(RunStarted("t2"),)))
    await sqlite.purge(settled_before=clock.now() - 5.0)
    assert await sqlite.events(ANN, old.run_id) == []
    assert (await given.stored_run(old)).last_seq == len(SAID) + 1
    assert [news.event for news in await sqlite.feed(ANN)] == [RunStarted("t2")]
    assert len(await sqlite.events(ANN, young.run_id)) == 1


@requirement("store:migrations")
async def test_journals_and_feeds_of_a_file_with_a_row_for_each_event_are_as_they_were(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, now = clock.fresh("run"), clock.now()
    _make_old_file(path, monkeypatch, run_id, now)
    store = await SqliteStore.open(str(path), clock)
    given = Given(store, clock)
    expected = [Entry(seq, event, now) for seq, event in enumerate(SAID, 1)]
    assert await store.events(ANN, run_id) == expected
    assert await store.feed(ANN) == [
        News(1, now, RunStarted("t1"), "t1", run_id),
        News(2, now, RunParked(), "t1", run_id),
    ]
    await given.write(WriteRun(run_id=run_id, events=(StepStarted(2), StepStarted(3))))
    entries = await store.events(ANN, run_id, after=3)
    assert [(entry.seq, entry.event) for entry in entries] == [
        (4, RunParked()),
        (5, StepStarted(2)),
        (6, StepStarted(3)),
    ]
    await store.close()


@requirement("store:journal-rows")
async def test_of_a_threads_runs_the_last_one_tells_whether_another_may_begin(
    sqlite: SqliteStore, given: Given
) -> None:
    first = await given.run()
    # read again, as after a start
    sqlite._writer._draft.forget()
    assert await given.refuse(InsertRun(given.new_run())) == "active"
    await given.end(first)
    sqlite._writer._draft.forget()
    second = await given.run()
    sqlite._writer._draft.forget()
    assert await given.refuse(InsertRun(given.new_run())) == "active"
    assert await sqlite.last_run(ANN, "t1") == second


def _make_old_file(path: Path, monkeypatch: pytest.MonkeyPatch, run_id: str, at: float) -> None:
    """As the version before would have left it, with one run that has spoken."""
    known = file_module._migrations()
    with monkeypatch.context() as patch:
        patch.setattr(file_module, "_migrations", lambda: known[:BEFORE_JOURNALS])
        open_file(str(path)).close()
    thread = encode({"owner": ANN, "thread_id": "t1", "created_at": at, "updated_at": at})
    db = sqlite3.connect(path)
    db.execute("INSERT INTO threads VALUES (1, ?, ?, 't1', ?, ?)", (ANN.tenant, ANN.subject, at, thread))
    db.execute(
        "INSERT INTO runs (run_no, run_id, thread_no, state, parked, step, fence, lease_until, last_seq,"
        " blockers, started_at, hold_for) VALUES (1, ?, 1, 'running', 0, 1, 1, 0, 0, 0, ?, 0)",
        (run_id, at),
    )
    events = [(1, seq, at, encode(event)) for seq, event in enumerate(SAID, 1)]
    db.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", events)
    pointers = [(ANN.tenant, ANN.subject, no, at, seq) for no, seq in ((1, 1), (2, len(SAID)))]
    db.executemany("INSERT INTO feed VALUES (?, ?, ?, ?, 1, ?, NULL, NULL)", pointers)
    db.commit()
    db.close()


def _count_rows(path: Path, table: str) -> int:
    db = sqlite3.connect(path)
    (count,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    db.close()
    assert isinstance(count, int)
    return count
