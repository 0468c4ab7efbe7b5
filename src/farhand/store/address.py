"""The only module that names a store backend: an address becomes a store."""

from __future__ import annotations

from farhand.clock import Clock, SystemClock
from farhand.errors import BadSetting
from farhand.store.base import Store

DEFAULT = "sqlite:///farhand.db"


async def open_store(address: str, clock: Clock | None = None) -> Store:
    """`memory:`, or `sqlite:///relative.db`, or `sqlite:////absolute.db`."""
    clock = clock or SystemClock()
    scheme, _, rest = address.partition(":")
    if scheme == "memory" and not rest:
        from farhand.store.memory import MemoryStore

        return MemoryStore(clock)
    if scheme == "sqlite" and rest.startswith("///") and len(rest) > 3:
        from farhand.store.sqlite import SqliteStore

        return await SqliteStore.open(rest[3:], clock)
    raise BadSetting(
        f"'{address}' is not a store address.",
        hint="Use memory: or sqlite:///file.db (four slashes for an absolute path).",
    )
