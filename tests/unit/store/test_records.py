"""Records of look-up rows: what another version wrote is tolerated, kept, or named."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from farhand.core.client import Client
from farhand.errors import Unreadable
from farhand.store import records
from farhand.store.sqlite import SqliteStore
from farhand.testing import FakeClock
from farhand.testing.store_laws.clients import new_client
from farhand.testing.store_laws.fixture import ANN, StoreFixture

NEWER = {"shape": {"of": "a newer farhand"}, "weight": 1.0}


async def test_fields_of_a_newer_version_are_tolerated_and_kept_through_every_change(
    path: Path, clock: FakeClock
) -> None:
    store = await SqliteStore.open(str(path), clock)
    fixture = StoreFixture(store, clock)
    client = new_client(fixture, "notes", "read")
    assert await store.clients.put(client) == "put"
    call = fixture.new_call()
    await fixture.append(calls=(call,), runs=(fixture.new_run(),))
    with closing(sqlite3.connect(path)) as db, db:
        for table in ("clients", "calls", "runs", "threads"):
            [(record,)] = db.execute(f"SELECT record FROM {table}").fetchall()
            newer = msgspec.json.encode(msgspec.json.decode(record) | NEWER)
            db.execute(f"UPDATE {table} SET record = ?", (newer,))

    found = await store.find_call(ANN, "call", "call_1")
    assert found is not None
    assert found.call == call
    assert len(await store.threads(ANN, limit=9)) == len(await store.runs(ANN, limit=9)) == 1
    assert await store.clients.all() == [client]
    assert await store.clients.put(replace(client, version=2)) == "put"
    with closing(sqlite3.connect(path)) as db:
        [(record,)] = db.execute("SELECT record FROM clients").fetchall()
    stored = msgspec.json.decode(record)
    assert {name: stored[name] for name in NEWER} == NEWER
    assert stored["version"] == 2
    await store.close()


def test_an_unknown_field_is_not_lost_when_there_is_none() -> None:
    client = Client(owner=ANN, client_id="notes", tools=(), grace_sec=5.0, registered_at=0.0)
    body = records.encode(client)
    assert records.unknown_in(body, Client) == {}
    assert records.encode_with({}, client) == body
    assert records.unknown_in(b"no JSON", Client) == {}


def test_one_that_cannot_be_read_is_named_once_and_not_remembered_forever(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    records._named.clear()
    monkeypatch.setattr(records, "MAX_NAMED", 2)
    for name in ("t1", "t1", "t2", "t3"):
        assert records.decode_or_skip(records.decode_thread, b"{}", kind="thread", name=name) is None
    assert [message.split()[1] for message in caplog.messages] == ["t1", "t2", "t3"]
    assert len(records._named) == 1
    with pytest.raises(Unreadable, match="cannot be read by this version of farhand"):
        records.decode_or_raise(records.decode_call, b'{"phase": "flying"}')
