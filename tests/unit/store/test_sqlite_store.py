"""What is specific to the SQLite store; the laws of all stores cover the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from farhand.core.principal import Owner
from farhand.errors import StoreDown
from farhand.store.base import Appended, Lease
from farhand.store.sqlite import SqliteStore, writer
from farhand.store.sqlite import store as store_module
from farhand.store.sqlite.file import StoreFile, open_file
from farhand.store.sqlite.store import SMALL_BYTES
from farhand.store.sqlite.writer import WriteConnection
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN, LEASE_SEC, OPEN_URL, StoreFixture


async def test_a_large_thread_is_read_in_a_thread_of_its_own_and_is_the_same(
    sqlite: SqliteStore, fixture: StoreFixture
) -> None:
    for no in range(4):
        await fixture.append(body=bytes([no]) * SMALL_BYTES, snapshot=b"{}" if no == 1 else None)
    loaded = await sqlite.load(ANN, "t1")
    assert (loaded.snapshot_version, [row.body[0] for row in loaded.rows]) == (2, [2, 3])
    assert [row.version for row in (await sqlite.load(ANN, "t1", after=3)).rows] == [4]


async def test_a_lease_may_change_without_a_word_of_the_thread(
    sqlite: SqliteStore, fixture: StoreFixture
) -> None:
    await fixture.append(thread=fixture.running())
    assert await fixture.claimable_ids() == ["t1"]
    await fixture.append(thread=None, lease=Lease("w1", fixture.clock.now() + LEASE_SEC))
    assert await fixture.claimable_ids() == []
    await fixture.append(thread=None, lease=Lease("", 0.0))
    assert await fixture.claimable_ids() == ["t1"]


async def test_what_the_writer_remembers_is_bounded_and_looked_up_again(
    sqlite: SqliteStore, fixture: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_CACHED_ROWS", 2)
    monkeypatch.setattr(store_module, "TOOLS_AT_HAND", 2)
    tools = [replace(OPEN_URL, name=f"tool_{no}") for no in range(5)]
    for _ in range(2):
        for no, tool in enumerate(tools):
            owner = Owner("acme", f"s{no}")
            await fixture.append(owner=owner, tools=(tool,), feed=1)
            assert await sqlite.find_tool(tool.version) == tool
            assert await sqlite.find_tool(tool.version) == tool
    for no in range(5):
        assert await sqlite.feed_span(Owner("acme", f"s{no}")) == (1, 2)
    assert len(sqlite._writing._feeds) <= 3


async def test_feed_numbers_that_are_forgotten_to_save_memory_are_not_given_twice_in_one_append(
    sqlite: SqliteStore, fixture: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_CACHED_ROWS", 1)
    bob = Owner("acme", "bob")
    appends = [
        fixture.new_append("t1", feed=1),
        fixture.new_append("t2", owner=bob, feed=1),
        fixture.new_append("t3", feed=1),
    ]
    assert await sqlite.append(appends) == [Appended()] * 3
    assert await sqlite.feed_span(ANN) == (1, 2)
    assert await sqlite.feed_span(bob) == (1, 1)


async def test_a_store_without_room_is_not_ready(
    sqlite: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sqlite.check()
    monkeypatch.setattr(StoreFile, "has_space", lambda file: False)
    with pytest.raises(StoreDown, match="the disk is full"):
        await sqlite.check()


async def test_a_store_that_cannot_be_tidied_up_at_start_is_let_go_of(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(writing: WriteConnection) -> None:
        writing.db.execute("INSERT INTO nowhere VALUES (1)")

    monkeypatch.setattr(store_module, "_tidy_up", fails)
    with pytest.raises(StoreDown):
        await SqliteStore.open(str(path), clock)
    # nobody holds the lock
    open_file(str(path)).close()
