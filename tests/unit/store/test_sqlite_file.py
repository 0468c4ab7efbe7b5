"""Opening a store's file: any problem is one clear sentence, and the file is not harmed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from farhand.errors import BadSetting, StoreDown, StoreLocked
from farhand.store.base import Appended, Lease
from farhand.store.sqlite import SqliteStore
from farhand.store.sqlite.file import open_file
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN, StoreFixture
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


@pytest.mark.parametrize(("first_mode", "mode"), [(None, 0o600), (0o640, 0o640)], ids=["new", "existing"])
def test_a_new_store_is_its_owners_alone_and_an_existing_one_keeps_its_mode(
    tmp_path: Path, first_mode: int | None, mode: int
) -> None:
    path = tmp_path / "chats.db"
    if first_mode is not None:
        path.touch()
        path.chmod(first_mode)
    umask = os.umask(0o022)
    try:
        file = open_file(str(path))
        db = file.connect()
        db.execute("SELECT count(*) FROM threads")
        modes = [Path(f"{path}{suffix}").stat().st_mode & 0o777 for suffix in ("", "-wal", "-shm")]
    finally:
        os.umask(umask)
    db.close()
    file.close()
    assert modes == [mode] * 3


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


@requirement("store:one-process")
async def test_a_server_whose_lock_was_removed_writes_nothing_beside_the_next_one(
    path: Path, clock: FakeClock
) -> None:
    store = await SqliteStore.open(str(path), clock)
    fixture = StoreFixture(store, clock)
    await fixture.append()
    path.with_name(path.name + ".lock").unlink()
    following = await SqliteStore.open(str(path), clock)
    with pytest.raises(StoreDown, match="its lock, was moved or removed"):
        await fixture.append()
    with pytest.raises(StoreDown, match="its lock, was moved or removed"):
        await store.check()
    assert await following.append([fixture.new_append()]) == [Appended()]
    await following.close()
    await store.close()


async def test_a_file_that_was_moved_takes_no_writes_until_it_is_back(path: Path, clock: FakeClock) -> None:
    store = await SqliteStore.open(str(path), clock)
    fixture = StoreFixture(store, clock)
    await fixture.append()
    with _moved(path):
        with pytest.raises(StoreDown, match="was moved or removed"):
            await fixture.append()
        with pytest.raises(StoreDown, match="was moved or removed"):
            await store.check()
    with _moved(path, instead=b"another file"), pytest.raises(StoreDown, match="was moved or removed"):
        await fixture.append()
    await fixture.append()
    await store.check()
    await store.close()


@contextmanager
def _moved(path: Path, *, instead: bytes | None = None) -> Iterator[None]:
    elsewhere = path.rename(path.with_name("elsewhere.db"))
    if instead is not None:
        path.write_bytes(instead)
    yield
    elsewhere.replace(path)


async def test_a_closed_store_can_be_opened_again(path: Path, clock: FakeClock) -> None:
    for _ in range(2):
        store = await SqliteStore.open(str(path), clock)
        await store.close()
        await store.close()


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
        assert str(caught.value).endswith("Make the file and its folder writable, or name another file.")
        Path(folder).chmod(0o777)


def test_a_store_that_was_cut_off_is_to_be_restored(path: Path) -> None:
    open_file(str(path)).close()
    path.write_bytes(path.read_bytes()[:8192])
    with pytest.raises(BadSetting, match=r"malformed\. Restore it from a backup, or name another file\."):
        open_file(str(path))


async def test_a_damaged_store_is_to_be_restored_and_not_tried_again(path: Path, clock: FakeClock) -> None:
    store = await SqliteStore.open(str(path), clock)
    await store.close()
    _damage(path, "threads")
    _damage(path, "threads_used")
    fixture = StoreFixture(await SqliteStore.open(str(path), clock), clock)
    with pytest.raises(StoreDown, match=r"write \(the file is damaged\).* Restore it from a backup\."):
        await fixture.append("t1")
    with pytest.raises(StoreDown, match=r"read \(the file is damaged\)\. Restore it from a backup\."):
        await fixture.store.threads(ANN, limit=9)
    await fixture.store.close()


async def test_at_start_all_leases_are_void_and_parked_runs_stay_parked(path: Path, clock: FakeClock) -> None:
    store = await SqliteStore.open(str(path), clock)
    fixture = StoreFixture(store, clock)
    lease = Lease("w1", clock.now() + 3600)
    await fixture.append("held", thread=fixture.running("run_1"), lease=lease)
    await fixture.append("parked", thread=fixture.parked("run_2"), lease=Lease("", 0.0))
    await fixture.append("ended")
    await fixture.append("found", thread=fixture.running("run_3"))
    assert await fixture.claimable_ids(reserve_sec=3600) == ["found"]
    assert await fixture.claimable_ids() == []
    await store.close()

    fixture.store = await SqliteStore.open(str(path), clock)
    assert await fixture.claimable_ids() == ["held", "found"]
    await fixture.store.close()


async def test_whoever_takes_a_store_as_it_is_changes_nothing_of_it(path: Path, clock: FakeClock) -> None:
    with pytest.raises(BadSetting, match="There is no store"):
        await SqliteStore.open(str(path), clock, as_is=True)
    store = await SqliteStore.open(str(path), clock)
    fixture = StoreFixture(store, clock)
    lease = Lease("w1", clock.now() + 3600)
    await fixture.append(thread=fixture.running(), lease=lease)
    await store.close()
    fixture.store = await SqliteStore.open(str(path), clock, as_is=True)
    assert await fixture.claimable_ids() == []
    await fixture.store.close()


def _damage(path: Path, name: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


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
