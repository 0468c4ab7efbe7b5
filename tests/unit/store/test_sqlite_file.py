"""Opening a store's file: whatever is wrong with it is one clear sentence, and nothing of it is harmed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pytest

from farhand.errors import BadSetting, StoreLocked
from farhand.store.sqlite import SqliteStore
from farhand.store.sqlite import file as file_module
from farhand.store.sqlite.file import latest_version, open_file
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import Given
from tests.requirement import requirement

NOBODY = 65534

HOLD = """
import asyncio, sys
from farhand.clock import SystemClock
from farhand.store.sqlite import SqliteStore

async def main():
    await SqliteStore.open(sys.argv[1], SystemClock())
    print("open", flush=True)
    sys.stdin.read()

asyncio.run(main())
"""

REFUSED = """
import asyncio, sys
from farhand.clock import SystemClock
from farhand.errors import StoreLocked
from farhand.store.sqlite import SqliteStore

try:
    asyncio.run(SqliteStore.open(sys.argv[1], SystemClock()))
except StoreLocked as error:
    print(error)
"""


@contextmanager
def another_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has this store open."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        try:
            yield holder
        finally:
            holder.kill()


@requirement("store:one-process")
def test_a_second_process_is_refused_at_once_and_told_who_has_the_store(path: Path) -> None:
    file = open_file(str(path))
    command = [sys.executable, "-c", REFUSED, str(path)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert f"is in use by another farhand server (process {os.getpid()})" in second.stdout
    assert second.stderr == ""
    file.close()


@requirement("store:one-process")
def test_a_killed_process_leaves_no_lock_behind(path: Path) -> None:
    with another_process(path) as holder:
        with pytest.raises(StoreLocked, match="in use"):
            open_file(str(path))
        holder.kill()
        holder.wait(timeout=30)
        open_file(str(path)).close()


@requirement("store:one-process")
def test_another_name_of_the_same_file_is_the_same_store(path: Path) -> None:
    file = open_file(str(path))
    link = path.with_name("link.db")
    link.symlink_to(path)
    with pytest.raises(StoreLocked):
        open_file(str(link))
    file.close()


async def test_a_closed_store_can_be_opened_again(path: Path, clock: FakeClock) -> None:
    for _ in range(2):
        store = await SqliteStore.open(str(path), clock)
        await store.close()
        await store.close()


@requirement("store:bad-path")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "is a folder"),
        ("missing/folder/store.db", "does not exist"),
        ("text.db", "file is not a database"),
        ("pipe.db", "is not a file"),
        ("other.db", "database of another program"),
        ("nul\0.db", "null"),
        ("~nobody-has-this-name/store.db", "cannot be used"),
    ],
)
def test_a_path_that_cannot_be_a_store_is_one_clear_sentence(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "text.db").write_text("Not a database, but a text that is long enough to be one. " * 99)
    os.mkfifo(tmp_path / "pipe.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE theirs (a)")
    other.close()
    before = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    with pytest.raises(BadSetting, match=says) as caught:
        open_file(name if name.startswith("~") else f"{tmp_path}/{name}")
    assert "\n" not in str(caught.value)
    assert before == {file: file.stat().st_mtime_ns for file in before}


@requirement("store:bad-path")
@pytest.mark.parametrize("locked_down", ["folder", "file"])
def test_a_store_that_cannot_be_written_is_one_clear_sentence(locked_down: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "farhand.db"
        open_file(str(path)).close()
        Path(folder).chmod(0o777 if locked_down == "file" else 0o555)
        path.with_name("farhand.db.lock").chmod(0o666)
        path.chmod(0o444 if locked_down == "file" else 0o666)
        with _without_privileges(), pytest.raises(BadSetting, match="cannot be used") as caught:
            open_file(str(path))
        assert "\n" not in str(caught.value)
        Path(folder).chmod(0o777)


@requirement("store:migrations")
def test_a_store_of_a_newer_farhand_is_refused_and_stays_as_it_is(path: Path) -> None:
    open_file(str(path)).close()
    _set_version(path, latest_version() + 1)
    with pytest.raises(BadSetting, match="was written by a newer farhand"):
        open_file(str(path))
    assert _version(path) == latest_version() + 1


@requirement("store:migrations")
def test_migrations_run_only_when_the_store_is_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_file(str(path)).close()
    assert _version(path) == latest_version()
    monkeypatch.setattr(file_module, "_run_migration", None)
    open_file(str(path)).close()


@requirement("store:migrations")
def test_a_first_start_that_may_take_long_says_why(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    known = file_module._migrations()
    with monkeypatch.context() as patch:
        patch.setattr(file_module, "_migrations", lambda: known[:4])
        open_file(str(path)).close()
    assert caplog.messages == [], "a new file is made in no time"
    for _ in range(2):
        open_file(str(path)).close()
    [said] = caplog.messages
    assert f"the store is being upgraded from version 4 to {len(known)}" in said


@requirement("store:migrations")
def test_migrations_are_numbered_without_a_gap() -> None:
    folder = files("farhand.store") / "migrations" / "sqlite"
    names = sorted(script.name for script in folder.iterdir() if script.name.endswith(".sql"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


@requirement("store:migrations")
def test_a_migration_that_fails_leaves_the_version_before_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = file_module._migrations()
    bad = (latest_version() + 1, "CREATE TABLE half (a); INSERT INTO nowhere VALUES (1);")
    monkeypatch.setattr(file_module, "_migrations", lambda: [*good, bad])
    with pytest.raises(BadSetting, match="no such table: nowhere"):
        open_file(str(path))
    assert _version(path) == len(good)
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    db.close()


@requirement("store:leases-void")
async def test_at_start_all_leases_are_void_and_parked_runs_stay_parked(path: Path, clock: FakeClock) -> None:
    store = await SqliteStore.open(str(path), clock)
    given = Given(store, clock)
    held, ended = await given.run("held"), await given.run("ended")
    parked = await given.run("parked")
    await given.call(parked)
    await given.park(parked)
    await given.end(ended)
    assert await store.stray_runs(limit=10) == []
    await store.close()

    store = await SqliteStore.open(str(path), clock)
    assert [run.run_id for run in await store.stray_runs(limit=10)] == [held.run_id]
    [stray] = await store.stray_runs(limit=10)
    assert (stray.lease_until, stray.fence) == (0.0, held.fence)
    await store.close()


@contextmanager
def _without_privileges() -> Iterator[None]:
    """As a user whom file modes stop."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def _version(path: Path) -> int:
    db = sqlite3.connect(path)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    db.close()
    assert isinstance(version, int)
    return version


def _set_version(path: Path, version: int) -> None:
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
