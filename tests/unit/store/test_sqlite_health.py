"""Diagnosis of a SQLite store from outside, without opening it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from farhand.store.sqlite import SqliteStore
from farhand.store.sqlite.file import inspect_file
from farhand.store.sqlite.migrate import latest_version
from farhand.testing import FakeClock


def test_a_store_that_is_not_there_is_not_made_by_looking(path: Path) -> None:
    new = inspect_file(str(path))
    assert new.what.endswith("(not created yet)")
    assert (new.version, new.problem) == (None, None)
    assert not path.exists()


async def test_a_store_is_seen_with_its_version_and_whoever_has_it(path: Path, clock: FakeClock) -> None:
    store = await SqliteStore.open(str(path), clock)
    facts = inspect_file(str(path))
    assert (facts.version, facts.latest, facts.problem) == (latest_version(), latest_version(), None)
    assert facts.in_use_by == f"process {os.getpid()}"
    assert facts.free_bytes
    assert facts.unreadable == ()
    await store.close()
    assert inspect_file(str(path)).in_use_by is None


def test_what_cannot_be_a_store_is_a_problem(tmp_path: Path) -> None:
    assert "does not exist" in str(inspect_file(f"{tmp_path}/missing/store.db").problem)
    text = tmp_path / "text.db"
    text.write_text("Not a database, but a text that is long enough to be one. " * 99)
    assert str(inspect_file(str(text)).problem) == "the file is not an SQLite database"
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE theirs (a)")
    assert inspect_file(str(other)).problem == "the file is a database of another program"
