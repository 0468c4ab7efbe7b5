"""`farhand rebuild` on a SQLite file: what it prints, what it changes, and how it ends."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from farhand.clock import SystemClock
from farhand.eventlog.log import EventLog
from farhand.store.sqlite import SqliteStore
from tests.unit.cli.test_commands import said
from tests.unit.core.thread_builder import asks_for
from tests.unit.eventlog.thread_story import ThreadStory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a call that waits in one thread, and another thread."""
    place = tmp_path / "farhand.db"
    asyncio.run(_live(place))
    return place


def test_what_differs_is_counted_and_then_corrected(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _execute(path, "DELETE FROM calls")
    address = f"sqlite:///{path}"
    code, out, err = said(capsys, monkeypatch, "rebuild", "--dry-run", "--store", address)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "look-up tables compared with the logs",
        "  threads  2",
        "  rows     1 differed",
    ]
    assert _execute(path, "SELECT count(*) FROM calls") == [(0,)]
    code, out, _ = said(capsys, monkeypatch, "rebuild", "--store", address)
    assert (code, out.splitlines()[0]) == (0, "look-up tables rebuilt from the logs")
    assert _execute(path, "SELECT call_id, settled_at FROM calls") == [("call_1", None)]
    code, out, _ = said(capsys, monkeypatch, "rebuild", "--store", address, "--json")
    assert (code, json.loads(out)) == (0, {"threads": 2, "rows": 0, "dryRun": False, "skipped": []})


def test_a_thread_that_cannot_be_read_is_named_and_the_code_is_1(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _execute(path, "UPDATE log SET body = 'rubbish' WHERE thread_no = 2")
    address = f"sqlite:///{path}"
    code, out, err = said(capsys, monkeypatch, "rebuild", "--store", address)
    assert code == 1
    assert "error: thread t2 of acme/ann: Row 1 of a thread's log cannot be read" in err
    assert "rows     0 differed" in out
    code, out, _ = said(capsys, monkeypatch, "rebuild", "--store", address, "--json")
    [left] = json.loads(out)["skipped"]
    assert (code, left["tenant"], left["subject"], left["threadId"]) == (1, "acme", "ann", "t2")


def test_a_file_that_a_server_has_and_a_store_in_memory_are_refused(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = said(capsys, monkeypatch, "rebuild", "--store", "memory:")
    assert code == 2
    assert "cannot be opened from outside its server" in err

    async def in_use() -> tuple[int, str, str]:
        async with _opened(path):
            return await asyncio.to_thread(
                said, capsys, monkeypatch, "rebuild", "--store", f"sqlite:///{path}"
            )

    code, _, err = asyncio.run(in_use())
    assert code == 2
    assert "Stop the server that has it open." in err


@asynccontextmanager
async def _opened(path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(str(path), SystemClock())
    try:
        yield store
    finally:
        await store.close()


async def _live(path: Path) -> None:
    async with _opened(path) as store:
        log = EventLog(store)
        first = ThreadStory(log, "t1")
        await first.begin()
        await first.finish(asks_for("call_1"))
        await ThreadStory(log, "t2").begin("run_2")


def _execute(path: Path, sql: str) -> list[tuple[object, ...]]:
    db = sqlite3.connect(path)
    try:
        rows = db.execute(sql).fetchall()
        db.commit()
    finally:
        db.close()
    return rows
