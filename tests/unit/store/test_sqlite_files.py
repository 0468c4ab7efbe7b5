"""Files in SQLite: removed for everybody at once, and from the disk a few pieces at a time."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from farhand.core.event import TextAdded
from farhand.store.base import BindFiles, DeleteThread, InsertFile, PutPiece, WriteRun
from farhand.store.sqlite import SqliteStore
from farhand.store.sqlite.files import SWEPT
from farhand.testing import FakeClock
from farhand.testing.store_laws.files import new_file, put_file
from farhand.testing.store_laws.given import ANN, Given
from tests.requirement import requirement


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as db:
        [(rows,)] = db.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(rows)


@requirement("store:files-swept")
async def test_others_get_their_turn_while_a_thread_with_many_pieces_goes(given: Given, path: Path) -> None:
    await given.thread()
    file = await put_file(given, *[b"x"] * (3 * SWEPT))
    await given.write(BindFiles(ANN, "t1", (file.ref,)))
    run = await given.run("t2")
    left: list[int] = []

    async def note() -> None:
        await given.write(WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),)))
        left.append(count(path, "file_pieces"))

    async with asyncio.TaskGroup() as group:
        group.create_task(given.write(DeleteThread(ANN, "t1")))
        # behind the removal in the queue, and before its sweep
        group.create_task(note())
    assert left[0] > 0
    assert count(path, "file_pieces") == count(path, "file_rubbish") == 0


@requirement("store:files-swept")
async def test_pieces_that_a_crash_kept_from_being_swept_go_with_a_purge(
    given: Given, path: Path, clock: FakeClock
) -> None:
    gone = await put_file(given, b"1", b"2")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO file_rubbish (file_no) SELECT file_no FROM files")
        db.execute("DELETE FROM files")
    # and a new file does not take over what is left of the old one
    new = await put_file(given, b"3")
    assert await given.store.files.get(ANN, gone.ref) is None
    await given.store.purge(settled_before=clock.now() - 1)
    assert count(path, "file_pieces") == 1
    assert await given.store.files.piece(ANN, new.ref, 0) == b"3"


@requirement("files:nothing-half")
async def test_what_was_arriving_when_a_process_died_is_gone_when_the_file_is_opened(
    path: Path, clock: FakeClock
) -> None:
    store = await SqliteStore.open(str(path), clock)
    given = Given(store, clock)
    whole, half = await put_file(given, b"1"), new_file(given)
    await given.write(InsertFile(half), PutPiece(ANN, half.ref, 0, b"2"))
    await store.close()
    again = await SqliteStore.open(str(path), clock)
    assert await again.files.piece(ANN, whole.ref, 0) == b"1"
    assert count(path, "files") == count(path, "file_pieces") == 1
    await again.close()
