"""The only module that names a store backend: an address becomes a store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from farhand.clock import Clock, SystemClock
from farhand.errors import BadSetting
from farhand.store.base import Store
from farhand.store.facts import StoreFacts

DEFAULT = "sqlite:///farhand.db"


async def open_store(address: str, clock: Clock | None = None, *, as_is: bool = False) -> Store:
    """`memory:`, `sqlite:///relative.db`, `sqlite:////absolute.db`, or `postgresql://user:password@host/database`.

    A database that several servers share judges time by its own clock, unless one is given. `as_is` opens
    what is there: nothing is made, brought up to date or tidied up, and what is not there is a `BadSetting`.
    """
    scheme, _, rest = address.partition(":")
    if is_shared(address):
        return await _open_postgres(address, clock, as_is=as_is)
    clock = clock or SystemClock()
    if scheme == "memory" and not rest:
        from farhand.store.memory import MemoryStore

        return MemoryStore(clock)
    if scheme == "sqlite" and rest.startswith("///") and len(rest) > 3:
        from farhand.store.sqlite import SqliteStore

        return await SqliteStore.open(rest[3:], clock, as_is=as_is)
    raise _no_address(address)


def is_shared(address: str) -> bool:
    """Whether any number of processes may open this store at once."""
    return address.startswith(("postgresql://", "postgres://"))


def shown(address: str) -> str:
    """The address without its password, for whoever looks at the screen or into a log."""
    return _PASSWORD.sub(r"\1\2", address)


_PASSWORD = re.compile(r"(://[^/@:]*):[^/@]*(@)|(?<=[?&])password=[^&]*&?")


async def look_at_store(address: str) -> StoreFacts:
    """What can be said of it without opening it."""
    if is_shared(address):
        with _driver_needed():
            from farhand.store.postgres.look import look as look_at_database
        return await look_at_database(address, SystemClock())
    if address.startswith("sqlite:///"):
        from farhand.store.sqlite.look import look as look_at_file

        return look_at_file(address.removeprefix("sqlite:///"))
    if address == "memory:":
        return StoreFacts("memory, gone with its process", version=1, latest=1)
    raise _no_address(address)


async def _open_postgres(address: str, clock: Clock | None, *, as_is: bool) -> Store:
    with _driver_needed():
        from farhand.store.postgres import PostgresStore
    return await PostgresStore.open(address, clock, as_is=as_is)


@contextmanager
def _driver_needed() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise BadSetting(
            "A PostgreSQL store needs its driver.", hint="Install it: pip install 'farhand[postgres]'."
        ) from error


def _no_address(address: str) -> BadSetting:
    return BadSetting(
        f"'{address}' is not a store address.",
        hint="Use memory:, sqlite:///file.db (four slashes for an absolute path) or postgresql://host/database.",
    )
