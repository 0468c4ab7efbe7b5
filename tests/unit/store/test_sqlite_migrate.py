"""Steps between versions of the tables: numbered, each in one transaction, and announced in the log."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from farhand.errors import BadSetting
from farhand.store.sqlite import SqliteStore, migrate
from farhand.store.sqlite.file import inspect_file, open_file
from farhand.store.sqlite.migrate import UNRELEASED_ID, latest_version
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN, StoreFixture
from tests.requirement import requirement

ADD_COLUMN = "ALTER TABLE threads ADD COLUMN colour TEXT; UPDATE threads SET colour = 'blue';"
BY_THREAD = """
ALTER TABLE log RENAME TO newer;
CREATE TABLE log (
    thread_no INTEGER NOT NULL, version INTEGER NOT NULL, at REAL NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (thread_no, version)
) WITHOUT ROWID;
INSERT INTO log SELECT thread_no, version, at, body FROM newer;
DROP TABLE newer;
PRAGMA user_version = 1;
"""
"""What the first version of the tables had."""
FAILS = "CREATE TABLE half (a); INSERT INTO nowhere VALUES (1);"


@requirement("store:migrations")
async def test_a_later_step_changes_a_store_with_all_that_is_in_it(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = await SqliteStore.open(str(path), clock)
    fixture = StoreFixture(store, clock)
    await fixture.append(calls=(fixture.new_call(),), feed=1)
    loaded = await store.load(ANN, "t1")
    await store.close()
    assert caplog.messages == [], "a new file is made in no time"

    before = latest_version()
    monkeypatch.setattr(migrate, "STEPS", (*migrate.STEPS, ADD_COLUMN))
    for _ in range(2):
        again = await SqliteStore.open(str(path), clock)
        assert await again.load(ANN, "t1") == loaded
        assert await again.find_call(ANN, "call", "call_1") is not None
        await again.close()
    [message] = caplog.messages
    assert f"upgrading the store from version {before} to {before + 1}" in message
    assert _read(path, "PRAGMA user_version") == [(before + 1,)]
    assert _read(path, "SELECT colour FROM threads") == [("blue",)]


@requirement("store:migrations")
def test_steps_run_only_when_the_store_is_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_file(str(path)).close()
    assert _read(path, "PRAGMA user_version") == [(latest_version(),)]
    monkeypatch.setattr(migrate, "_run_step", None)
    open_file(str(path)).close()


@requirement("store:migrations")
def test_a_step_that_fails_leaves_the_version_before_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = latest_version()
    monkeypatch.setattr(migrate, "STEPS", (*migrate.STEPS, FAILS))
    with pytest.raises(BadSetting, match="no such table: nowhere"):
        open_file(str(path))
    assert _read(path, "PRAGMA user_version") == [(before,)]
    assert _read(path, "SELECT count(*) FROM sqlite_master WHERE name = 'half'") == [(0,)]


@requirement("store:migrations")
async def test_a_log_that_was_stored_by_thread_is_put_in_order_of_time(path: Path, clock: FakeClock) -> None:
    fixture = StoreFixture(await SqliteStore.open(str(path), clock), clock)
    for number, thread_id in enumerate(("t1", "t2", "t1", "t2")):
        clock.advance(1)
        await fixture.append(thread_id, b"%d" % number, feed=1)
    loaded = [await fixture.store.load(ANN, thread_id) for thread_id in ("t1", "t2")]
    await fixture.store.close()
    _write(path, BY_THREAD)
    assert _read(path, "SELECT CAST(body AS TEXT) FROM log") == [("0",), ("2",), ("1",), ("3",)]

    fixture.store = await SqliteStore.open(str(path), clock)
    assert [await fixture.store.load(ANN, thread_id) for thread_id in ("t1", "t2")] == loaded
    assert [row.body for row in await fixture.store.feed(ANN, after=0, limit=9)] == [b"0", b"1", b"2", b"3"]
    await fixture.append("t1", b"4")
    await fixture.store.close()
    rows = _read(path, "SELECT CAST(body AS TEXT) FROM log ORDER BY no")
    assert rows == [("0",), ("1",), ("2",), ("3",), ("4",)]


@requirement("store:migrations")
def test_a_store_of_a_newer_farhand_is_refused_and_stays_as_it_is(path: Path) -> None:
    open_file(str(path)).close()
    _write(path, f"PRAGMA user_version = {latest_version() + 1}")
    for as_is in (True, False):
        with pytest.raises(BadSetting, match=r"was written by a newer farhand|has tables of version"):
            open_file(str(path), as_is=as_is)
    assert _read(path, "PRAGMA user_version") == [(latest_version() + 1,)]


@requirement("store:migrations")
def test_a_store_from_before_the_first_release_is_refused_and_stays_as_it_is(path: Path) -> None:
    _write(
        path, f"PRAGMA application_id = {UNRELEASED_ID}; PRAGMA user_version = 7; CREATE TABLE threads (a);"
    )
    before = path.read_bytes()
    with pytest.raises(BadSetting, match=r"from before its first release\. Use a new file"):
        open_file(str(path))
    assert path.read_bytes() == before
    facts = inspect_file(str(path))
    assert (facts.problem, facts.hint) == (
        "the file was written by a farhand from before its first release",
        "Use a new file.",
    )


def _read(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def _write(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(sql)
