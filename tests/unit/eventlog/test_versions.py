"""Two versions of farhand on one store: the older one keeps what it does not know of the newer one's."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from farhand.core.outcome import digest
from farhand.core.state import ThreadState
from farhand.errors import Unreadable
from farhand.eventlog import batch, codec, thread_cache
from farhand.eventlog.codec import encode_snapshot, fold_loaded
from farhand.eventlog.log import EventLog
from farhand.eventlog.threads import Threads
from farhand.store.base import Append, Appended, ThreadRow
from farhand.testing import FakeClock
from tests.unit.core.thread_log import ANN
from tests.unit.eventlog.shared_store import SharedStore, rename

PAINTED = b'{"events":[{"type":"thread-renamed","title":"Hello","colour":"red"}],"outside":[0],"format":1}'


@pytest.fixture
def store(clock: FakeClock) -> SharedStore:
    return SharedStore(clock)


async def _paint(store: SharedStore) -> None:
    """As a newer version does, whose threads have a colour."""
    loaded = await store.load(ANN, "t1")
    append = Append(
        owner=ANN,
        thread_id="t1",
        version=len(loaded.rows),
        at=store.now(),
        body=PAINTED,
        thread=ThreadRow(title="Hello", created_at=0.0, updated_at=0.0),
    )
    assert await store.append([append]) == [Appended()]


@pytest.mark.parametrize("is_cached", [False, True])
async def test_a_thread_that_a_newer_version_has_written_to_gets_no_snapshot_here(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch, is_cached: bool
) -> None:
    monkeypatch.setattr(thread_cache, "SNAPSHOT_BYTES", 1)
    first, threads = Threads(store), Threads(store)
    await first.decide(ANN, "t1", rename("Hi"))
    if is_cached:
        assert await threads.read(ANN, "t1", lambda thread: thread.title) == "Hi"
    await _paint(store)
    if is_cached:
        threads.refresh(ANN, "t1")
        await threads.flush()
    for title in ("One", "Two", "Three"):
        await threads.decide(ANN, "t1", rename(title))
    loaded = await store.load(ANN, "t1")
    assert loaded.snapshot is None
    assert [row.body for row in loaded.rows][1] == PAINTED


async def test_a_purge_keeps_what_a_newer_version_has_written(store: SharedStore, clock: FakeClock) -> None:
    eventlog = EventLog(store)
    await eventlog.decide(ANN, "t1", rename("Hi"))
    await eventlog.decide(ANN, "t2", rename("Hi"))
    await _paint(store)
    clock.advance(10.0)
    await eventlog.purge(before=clock.now())
    assert [row.body for row in (await store.load(ANN, "t1")).rows][1] == PAINTED
    assert (await store.load(ANN, "t2")).rows == (), "others are purged"


async def test_a_snapshot_of_a_newer_version_is_read_and_not_replaced(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_cache, "SNAPSHOT_BYTES", 1)
    with monkeypatch.context() as newer:
        for module in (batch, codec, thread_cache):
            newer.setattr(module, "FORMAT", 1)
        threads = Threads(store)
        for title in ("One", "Two"):
            await threads.decide(ANN, "t1", rename(title))
    written = (await store.load(ANN, "t1")).snapshot
    assert written is not None
    older = Threads(store)
    for title in ("Three", "Four", "Five"):
        await older.decide(ANN, "t1", rename(title))
    loaded = await store.load(ANN, "t1")
    assert loaded.snapshot == written
    state = fold_loaded(ANN, "t1", loaded)
    assert (state.title, state.format) == ("Five", 1)
    with pytest.raises(Unreadable, match="newer version"):
        encode_snapshot(state)


SHAPES = {0: "e3f871580f7b85198d96b4715aacef958100406d94587cd127e328d7af9d18ea"}
"""By format, the digest of the fields of everything that is stored under it."""


def test_the_fields_that_are_stored_change_only_with_the_format() -> None:
    """Until the first release a changed digest replaces that of format 0; from then on `FORMAT` is raised and
    its digest is added."""
    whole, parts = msgspec.json.schema_components((codec.Body, ThreadState), schema_hook=_any_json)
    assert digest([_without_texts(whole), _without_texts(parts)]) == SHAPES[codec.FORMAT]


def _any_json(kind: type) -> dict[str, object]:
    return {"description": kind.__name__, "x-any": True}


def _without_texts(schema: object) -> object:
    """The schema without descriptions: their wording may change."""
    if isinstance(schema, Mapping):
        return {key: _without_texts(value) for key, value in schema.items() if key not in _TEXTS}
    return [_without_texts(each) for each in schema] if isinstance(schema, list | tuple) else schema


_TEXTS = {"description", "title"}
