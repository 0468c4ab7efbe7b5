"""An address becomes a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from farhand.errors import BadSetting
from farhand.store.address import open_store
from farhand.store.memory import MemoryStore
from farhand.store.sqlite import SqliteStore


async def test_memory_is_a_store_that_is_gone_with_the_process() -> None:
    store = await open_store("memory:")
    assert isinstance(store, MemoryStore)
    assert store.now() > 1_700_000_000


async def test_three_slashes_are_a_file_here_and_four_a_file_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for address, file in (("sqlite:///here.db", "here.db"), (f"sqlite:///{tmp_path}/there.db", "there.db")):
        store = await open_store(address)
        assert isinstance(store, SqliteStore)
        await store.close()
        assert (tmp_path / file).is_file()


@pytest.mark.parametrize("address", ["", "memory:x", "sqlite:", "sqlite:///", "sqlite://a.db", "redis://x"])
async def test_anything_else_is_a_clear_error(address: str) -> None:
    with pytest.raises(BadSetting, match="not a store address"):
        await open_store(address)
