"""Steps between versions of the tables: numbered, each in one transaction, and announced in the log."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from farhand.core.call import ProgramRequest
from farhand.errors import BadSetting
from farhand.store.sqlite import SqliteStore, migrate
from farhand.store.sqlite.file import inspect_file, open_file
from farhand.store.sqlite.migrate import UNRELEASED_ID, latest_version
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN, StoreFixture
from tests.requirement import requirement

ADD_COLUMN = "ALTER TABLE threads ADD COLUMN colour TEXT; UPDATE threads SET colour = 'blue';"
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

    monkeypatch.setattr(migrate, "STEPS", (*migrate.STEPS, ADD_COLUMN))
    for _ in range(2):
        again = await SqliteStore.open(str(path), clock)
        assert await again.load(ANN, "t1") == loaded
        assert await again.find_call(ANN, "call", "call_1") is not None
        await again.close()
    [message] = caplog.messages
    assert f"upgrading the store from version {latest_version() - 1} to {latest_version()}" in message
    assert _read(path, "PRAGMA user_version") == [(latest_version(),)]
    assert _read(path, "SELECT colour FROM threads") == [("blue",)]


@requirement("store:migrations")
async def test_calls_of_version_1_are_looked_after_until_they_change(path: Path, clock: FakeClock) -> None:
    store = await SqliteStore.open(str(path), clock)
    fixture = StoreFixture(store, clock)
    call = fixture.new_call(run_id=None, request=ProgramRequest("job-1"))
    await fixture.append(calls=(call, fixture.new_call("call_2")))
    await store.close()
    # back to the tables of version 1
    _write(
        path,
        """
        DROP INDEX calls_for_worker;
        ALTER TABLE calls DROP COLUMN needs_worker;
        CREATE INDEX calls_direct ON calls (opened_at, call_id) WHERE settled_at IS NULL AND run_id IS NULL;
        PRAGMA user_version = 1;
        """,
    )
    store = await SqliteStore.open(str(path), clock)
    fixture.store = store
    assert await fixture.open_ids(needs_worker=True) == ["call_1"]
    await fixture.append(calls=(replace(call, version=2),))
    assert await fixture.open_ids(needs_worker=True) == []
    assert await fixture.open_ids() == ["call_1", "call_2"]
    await store.close()


@requirement("store:migrations")
def test_steps_run_only_when_the_store_is_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_file(str(path)).close()
    assert _read(path, "PRAGMA user_version") == [(latest_version(),)]
    monkeypatch.setattr(migrate, "_run_step", None)
    open_file(str(path)).close()


@requirement("store:migrations")
def test_a_step_that_fails_leaves_the_version_before_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "STEPS", (*migrate.STEPS, FAILS))
    with pytest.raises(BadSetting, match="no such table: nowhere"):
        open_file(str(path))
    assert _read(path, "PRAGMA user_version") == [(latest_version() - 1,)]
    assert _read(path, "SELECT count(*) FROM sqlite_master WHERE name = 'half'") == [(0,)]


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
