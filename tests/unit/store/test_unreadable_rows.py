"""A record that this version cannot read is left out of lists and named; it hides no other."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from farhand.core.client import Client
from farhand.core.run import RunState
from farhand.errors import Unreadable
from farhand.store import records
from farhand.store.base import CallFilter, Store
from farhand.store.open import inspect_store, open_store
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN, StoreFixture

SPOILED = ("thread t2", "call call_2", "run run_2", "client odd")


async def test_lists_leave_out_what_cannot_be_read_and_are_full_anyway(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records._named.clear()
    store = await _spoiled(path)
    try:
        with caplog.at_level(logging.ERROR, "farhand.store"):
            for _ in range(2):
                await _check_lists(store)
        messages = [record.getMessage() for record in caplog.records]
        names = [message.partition(" cannot")[0] for message in messages if "left out of lists" in message]
        assert sorted(names) == sorted(SPOILED), "each once"
    finally:
        await store.close()


async def test_what_cannot_be_read_is_named_by_doctor(path: Path) -> None:
    store = await _spoiled(path)
    await store.close()
    facts = await inspect_store(f"sqlite:///{path}")
    assert set(facts.unreadable) == set(SPOILED)


async def test_whoever_asks_for_one_is_told_that_it_cannot_be_read(path: Path) -> None:
    store = await _spoiled(path)
    for asked in (
        store.find_call(ANN, "call", "call_2"),
        store.find_run(ANN, "run_2"),
    ):
        with pytest.raises(Unreadable, match="cannot be read by this version"):
            await asked
    # another client may have the names of its tools: nobody can tell
    new = Client(owner=ANN, client_id="new", tools=(), grace_sec=5.0, registered_at=0.0)
    with pytest.raises(Unreadable):
        await store.clients.put(new)
    # the log is as it was, and the thread continues
    assert len((await store.load(ANN, "t2")).rows) == 1
    await store.close()


async def test_a_tool_of_another_version_is_told_of_where_it_is_asked_for(path: Path) -> None:
    store = await open_store(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO tools VALUES ('v1', ?)", (b'{"name": 1}',))
    with pytest.raises(Unreadable):
        await store.find_tool("v1")
    await store.close()


async def _check_lists(store: Store) -> None:
    assert [each.thread_id for each in await store.threads(ANN, limit=2)] == ["t3", "t1"]
    assert [run.run_id for run in await store.runs(ANN, limit=2)] == ["run_3", "run_1"]
    # the page after one that cannot be read
    assert [run.run_id for run in await store.runs(ANN, limit=5, after="run_2")] == ["run_1"]
    assert [each.call.call_id for each in await store.open_calls(CallFilter(owner=ANN), limit=2)] == [
        "call_1",
        "call_3",
    ]
    assert {each.client_id for each in await store.clients.all(ANN)} == {"even", "third"}
    assert {each.client_id for each in await store.clients.all()} == {"even", "third"}
    claimable = await store.claimable(limit=2)
    assert [each.thread_id for each in claimable] == ["t1", "t3"]


async def _spoiled(path: Path) -> Store:
    """Three of each; the one in the middle cannot be read."""
    clock = FakeClock()
    store = await open_store(f"sqlite:///{path}", clock)
    fixture = StoreFixture(store, clock)
    for no in (1, 2, 3):
        clock.advance(1)
        await fixture.append(
            f"t{no}",
            thread=fixture.parked(f"run_{no}", run_state=RunState.RUNNING),
            calls=(fixture.new_call(f"call_{no}"),),
            runs=(fixture.new_run(f"run_{no}"),),
        )
    for name in ("even", "odd", "third"):
        await store.clients.put(Client(owner=ANN, client_id=name, tools=(), grace_sec=5.0, registered_at=0.0))
    with closing(sqlite3.connect(path)) as db, db:
        for spoiled in SPOILED:
            kind, name = spoiled.split()
            db.execute(f"UPDATE {kind}s SET record = ? WHERE {kind}_id = ?", (b"no JSON", name))
    return store
