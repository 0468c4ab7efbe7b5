"""After a crash every call of an active run is found, although none of its rows had been written."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from farhand.errors import StoreDown
from farhand.eventlog.log import EventLog
from farhand.store.base import CallFilter, Lookups, Store
from farhand.store.sqlite import SqliteStore
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.core.thread_builder import asks_for
from tests.unit.core.thread_log import ANN
from tests.unit.eventlog.thread_story import ThreadStory


async def _crashed(folder: Path) -> Path:
    """The file of a server that ended without a word, in the middle of a run with an open call."""
    store = await SqliteStore.open(str(folder / "before.db"), FakeClock())
    story = ThreadStory(EventLog(store))
    await story.begin()
    await story.finish(asks_for("call_1"), text="one moment")
    for suffix in ("", "-wal"):
        shutil.copy(folder / f"before.db{suffix}", folder / f"after.db{suffix}")
    assert (await store.open_calls(CallFilter(owner=ANN)))[0].call.call_id == "call_1"
    await store.close()
    return folder / "after.db"


@requirement("store:kill")
async def test_calls_and_active_runs_are_found_after_a_crash(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(await _crashed(tmp_path)), FakeClock())
    assert await store.find_call(ANN, "call", "call_1") is None, "held runs write no rows"
    eventlog = EventLog(store)
    await eventlog.recover()
    found = await store.find_call(ANN, "call", "call_1")
    assert found is not None
    assert found.call == await eventlog.get_call(ANN, "call_1")
    assert [each.call for each in await store.open_calls(CallFilter(owner=ANN))] == [found.call]
    assert [run.run_id for run in await store.runs(ANN, limit=9)] == ["run_1"]
    assert await store.find_run(ANN, "run_1") is not None
    await eventlog.close()


async def test_a_recovery_that_the_store_interrupts_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqliteStore.open(str(await _crashed(tmp_path)), FakeClock())
    eventlog = EventLog(store)
    with monkeypatch.context() as patch:
        patch.setattr(store, "rebuild", _full_disk)
        with pytest.raises(StoreDown):
            await eventlog.recover()
    await eventlog.recover()
    assert await store.find_call(ANN, "call", "call_1") is not None
    await eventlog.close()


async def _full_disk(lookups: Lookups, *, dry_run: bool = False) -> int | None:
    raise StoreDown("The store could not write (the disk is full).")


async def test_a_store_that_was_closed_has_every_row(tmp_path: Path) -> None:
    await _crashed(tmp_path)
    store = await SqliteStore.open(str(tmp_path / "before.db"), FakeClock())
    assert await store.find_call(ANN, "call", "call_1") is not None
    assert await store.find_run(ANN, "run_1") is not None
    await store.close()


async def test_a_log_that_cannot_be_read_does_not_keep_a_server_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = await _crashed(tmp_path)
    store = await SqliteStore.open(str(path), FakeClock())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE log SET body = ?", (b"no JSON",))
    with caplog.at_level(logging.WARNING, "farhand.eventlog"):
        await EventLog(store).recover()
    assert "the look-ups of thread t1 are not rebuilt" in caplog.text
    await store.close()


async def test_where_processes_share_a_store_there_is_nothing_to_recover(
    story: ThreadStory, store: Store
) -> None:
    await story.begin()
    await story.finish(asks_for("call_1"), text="one moment")
    before = await store.runs(ANN, limit=9)
    await story.log.recover()
    assert await store.runs(ANN, limit=9) == before
