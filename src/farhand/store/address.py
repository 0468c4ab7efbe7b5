"""The only module that names a store backend: an address becomes a store."""

from __future__ import annotations

import re

from farhand.clock import Clock, SystemClock
from farhand.errors import BadSetting
from farhand.store.base import Store

DEFAULT = "sqlite:///farhand.db"


async def open_store(address: str, clock: Clock | None = None) -> Store:
    """`memory:`, `sqlite:///relative.db`, `sqlite:////absolute.db`, or `postgresql://user:password@host/database`.

    A database that several servers share judges time by its own clock, unless one is given.
    """
    scheme, _, rest = address.partition(":")
    if is_shared(address):
        return await _open_postgres(address, clock)
    clock = clock or SystemClock()
    if scheme == "memory" and not rest:
        from farhand.store.memory import MemoryStore

        return MemoryStore(clock)
    if scheme == "sqlite" and rest.startswith("///") and len(rest) > 3:
        from farhand.store.sqlite import SqliteStore

        return await SqliteStore.open(rest[3:], clock)
    raise BadSetting(
        f"'{address}' is not a store address.",
        hint="Use memory:, sqlite:///file.db (four slashes for an absolute path) or postgresql://host/database.",
    )


def is_shared(address: str) -> bool:
    """Whether any number of processes may open this store at once."""
    return address.startswith(("postgresql://", "postgres://"))


def shown(address: str) -> str:
    """The address without its password, for whoever looks at the screen or into a log."""
    return _PASSWORD.sub(r"\1\2", address)


_PASSWORD = re.compile(r"(://[^/@:]*):[^/@]*(@)|(?<=[?&])password=[^&]*&?")


async def _open_postgres(address: str, clock: Clock | None) -> Store:
    try:
        from farhand.store.postgres import PostgresStore
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise BadSetting(
            "A PostgreSQL store needs its driver.", hint="Install it: pip install 'farhand[postgres]'."
        ) from error
    return await PostgresStore.open(address, clock)
