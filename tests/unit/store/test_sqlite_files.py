"""Files in SQLite: removed at once for readers, and from the disk a few pieces at a time."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from farhand.store.sqlite import SqliteStore
from farhand.store.sqlite.files import SWEPT
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN, StoreFixture
from tests.requirement import requirement


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as db:
        [(rows,)] = db.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(rows)


async def test_others_get_their_turn_while_a_thread_with_many_pieces_goes(
    fixture: StoreFixture, path: Path
) -> None:
    file = await fixture.put_file(*[b"x"] * (3 * SWEPT))
    await fixture.append("t1", files=(file.ref,))
    left: list[int] = []

    async def append() -> None:
        await fixture.append("t2")
        left.append(count(path, "file_pieces"))

    async with asyncio.TaskGroup() as group:
        group.create_task(fixture.delete("t1"))
        # behind the removal in the queue, and before its sweep
        group.create_task(append())
    assert left[0] > 0
    assert count(path, "file_pieces") == count(path, "removed_files") == 0


async def test_pieces_that_a_crash_kept_from_being_swept_go_with_a_purge(
    fixture: StoreFixture, path: Path, clock: FakeClock
) -> None:
    gone = await fixture.put_file(b"1", b"2")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO removed_files (file_no) SELECT no FROM files")
        db.execute("DELETE FROM files")
    # and a new file does not take over what is left of the old one
    new = await fixture.put_file(b"3")
    assert await fixture.store.files.get(ANN, gone.ref) is None
    await fixture.store.purge(before=clock.now() - 1)
    assert count(path, "file_pieces") == 1
    assert await fixture.store.files.piece(ANN, new.ref, 0) == b"3"


@requirement("files:nothing-half")
async def test_what_was_arriving_when_a_process_died_is_gone_when_the_file_is_opened(
    path: Path, clock: FakeClock
) -> None:
    store = await SqliteStore.open(str(path), clock)
    fixture = StoreFixture(store, clock)
    whole = await fixture.put_file(b"1")
    assert await store.files.put(fixture.new_file(), 0, [b"2"], is_last=False)
    await store.close()
    again = await SqliteStore.open(str(path), clock)
    assert await again.files.piece(ANN, whole.ref, 0) == b"1"
    assert count(path, "files") == count(path, "file_pieces") == 1
    await again.close()
