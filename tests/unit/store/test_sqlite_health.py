"""Diagnosis of a SQLite store from outside, without opening it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from farhand.store.sqlite import SqliteStore
from farhand.store.sqlite.file import inspect_file, open_file
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


def test_what_is_wrong_with_a_file_comes_with_the_next_step(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_file(str(path)).close()
    with monkeypatch.context() as patch:
        # the tests may run as root, who may write everything
        patch.setattr(os, "access", lambda *_: False)
        facts = inspect_file(str(path))
    assert facts.problem == "the file cannot be written"
    assert facts.hint == "Make the file and its folder writable, or name another file."

    path.write_bytes(path.read_bytes()[:8192])
    facts = inspect_file(str(path))
    assert facts.problem == "the file is damaged: database disk image is malformed"
    assert facts.hint == "Restore it from a backup, or name another file."
