"""The only module that names a store backend: opens the store at an address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from farhand.clock import Clock, SystemClock
from farhand.errors import BadSetting, not_installed
from farhand.store.base import Store
from farhand.store.health import StoreHealth

DEFAULT = "sqlite:///farhand.db"


async def open_store(address: str, clock: Clock | None = None, *, as_is: bool = False) -> Store:
    """`memory:`, `sqlite:///relative.db`, `sqlite:////absolute.db`, or
    `postgresql://user:password@host/database`.

    A shared database judges time by its own clock, unless `clock` is set. `as_is` opens what exists: nothing
    is created, upgraded or cleaned up, and a missing store raises `BadSetting`.
    """
    check_address(address)
    if is_shared(address):
        return await _open_postgres(address, clock, as_is=as_is)
    clock = clock or SystemClock()
    if address == "memory:":
        from farhand.store.memory import MemoryStore

        return MemoryStore(clock)
    from farhand.store.sqlite import SqliteStore

    return await SqliteStore.open(address.removeprefix(_FILE), clock, as_is=as_is)


def is_shared(address: str) -> bool:
    """Whether any number of processes may open this store at once."""
    return address.startswith(("postgresql://", "postgres://"))


def check_address(address: str) -> None:
    """Raises `BadSetting` for an address of an unknown kind of store."""
    if not (is_shared(address) or _is_file(address) or address == "memory:"):
        raise _no_address(address)


# `object`: not every caller checks types
def check_store(store: object) -> None:
    """Raises `BadSetting` for what is neither an address of a known kind nor a `Store`."""
    if isinstance(store, str):
        check_address(store)
    elif isinstance(store, type) or not hasattr(store, "append"):
        raise BadSetting(f"store must be an address such as sqlite:///file.db, or a Store, not {store!r}.")


def redact_password(address: str) -> str:
    """The address without its password, for screens and logs.

    However it is written: an unencoded password may contain any character, so everything before the last @ is
    the user and the password, and what does not look like hosts and a database is left out.
    """
    if _PLAIN.fullmatch(address):
        return address
    scheme, _, rest = address.partition("://")
    if not _NAME.fullmatch(scheme):
        return "…"
    user, at, place = rest.rpartition("@")
    place, _, query = place.partition("?")
    name = user.partition(":")[0]
    # a ? before the last @ may be part of a password, or the @ part of one in the query: they cannot be
    # distinguished
    if not _NAME.fullmatch(name) or not _PLACE.fullmatch(place) or "?" in user:
        return f"{scheme}://…"
    harmless = "&".join(each for each in query.split("&") if _HARMLESS.fullmatch(each))
    return f"{scheme}://{name}{at}{place}" + (f"?{harmless}" if harmless else "")


_PLAIN = re.compile(r"sqlite:///.*|(?:(?:memory|sqlite):)?[^@:?=]*", re.DOTALL)
_NAME = re.compile(r"[\w.+-]*")
_PLACE = re.compile(r"(?:[\w.,%-]|:\d|\[[0-9a-fA-F:.]*\])*(?:/[^\s:@#]*)?")
"""Hosts with their ports, and a database: a colon before anything but a port may precede a password.

The colon takes one digit, a name the others: with two ways to match a digit, matching could take forever.
"""
_HARMLESS = re.compile(r"(?!.*pass)[a-z_]+=[^#]*")


async def inspect_store(address: str) -> StoreHealth:
    """The store's health, without opening it."""
    check_address(address)
    if is_shared(address):
        with _driver_needed():
            from farhand.store.postgres.schema import inspect_database
        return await inspect_database(address, SystemClock())
    if _is_file(address):
        from farhand.store.sqlite.file import inspect_file

        return inspect_file(address.removeprefix(_FILE))
    return StoreHealth("memory, gone with its process", version=1, latest=1)


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
        raise not_installed("PostgreSQL stores", "postgres") from error


_FILE = "sqlite:///"


def _is_file(address: str) -> bool:
    return address.startswith(_FILE) and address != _FILE


def _no_address(address: str) -> BadSetting:
    hint = "Use memory:, sqlite:///file.db (four slashes for an absolute path) or postgresql://host/database."
    dialect, plus, _ = address.partition("://")[0].partition("+")
    if plus and dialect in ("postgresql", "postgres", "sqlite"):
        # SQLAlchemy names its driver there
        hint = f"Leave out what follows `{dialect}` before `://`: farhand chooses the driver itself."
    return BadSetting(f"'{redact_password(address)}' is not a store address.", hint=hint)
