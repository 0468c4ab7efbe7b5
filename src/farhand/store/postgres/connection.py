"""The address of a database, one connection to it, and its clock.

The only importer of the driver: its errors become four of ours. A command that is not answered in time ends
its connection: a half-open connection looks like a slow one, and its state is unknown.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

# it has no types; this is its only importer, and what leaves this module is typed
import asyncpg  # type: ignore[import-untyped]
from msgspec import Struct

from farhand.clock import Clock
from farhand.errors import BadSetting

DEFAULT_SCHEMA = "farhand"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,50}")


class DatabaseAddress(Struct, frozen=True):
    """`dsn` may hold a password and is never shown; `name` may be."""

    dsn: str
    schema: str
    name: str

    @property
    def channel(self) -> str:
        """Notifications reach the whole database: each store has its own channel."""
        return f"farhand_{self.schema}"


def parse_address(address: str) -> DatabaseAddress:
    """`postgresql://user:password@host:port/database?schema=name`; everything but the scheme is optional."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        # not the parser's message: it may quote part of the password
        raise _bad(_UNREADABLE) from None
    query = parse_qsl(parts.query, keep_blank_values=True)
    if "@" in parts.path or parts.fragment or any("@" in key for key, _ in query):
        raise _bad(_UNREADABLE)
    schema = next((value for key, value in query if key == "schema"), DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema):
        raise _bad("its schema must be a short name of lower-case letters, digits and _")
    rest = urlencode([(key, value) for key, value in query if key != "schema"])
    # with its slashes even if no host is named: the driver requires them
    dsn = f"postgresql://{parts.netloc}{parts.path}" + (f"?{rest}" if rest else "")
    host = parts.netloc.rpartition("@")[2] or dict(query).get("host", "")
    return DatabaseAddress(dsn, schema, f"{host}{parts.path} (schema {schema})")


_UNREADABLE = "cannot tell where its host starts; in a password, write / ? # @ : as %2F %3F %23 %40 %3A"


def _bad(why: str) -> BadSetting:
    return BadSetting(
        f"The store address cannot be used: {why}.",
        hint="Use postgresql://user:password@host/database, optionally with ?schema=name.",
    )


log = logging.getLogger("farhand.store")

# the type of a driver's row follows from the selected columns
Columns: TypeAlias = Any
R = TypeVar("R")

CONNECT_SEC = 5.0
COMMAND_SEC = 8.0
CLOSE_SEC = 2.0
IDLE_SEC = 3.0
"""After this much silence a connection is checked before use."""
ALIVE_SEC = 1.0
"""How long the answer to that may take."""

BY_INDEX = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}
"""Every read has an index, and finds the rows of its keys one by one. A cached plan must not scan a table
because it once was small."""

BY_KEY = {**BY_INDEX, "plan_cache_mode": "force_generic_plan"}
"""Statements of appends are few: they are planned once, for tables of any size."""

_SETTINGS = {
    "application_name": "farhand",
    # all in milliseconds: below our own timeouts, so that the database says which statement was slow
    "statement_timeout": "6000",
    "lock_timeout": "4000",
    # a process that is suspended in the middle of a transaction must not keep its rows from the others
    "idle_in_transaction_session_timeout": "4000",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    # a suspended process still acknowledges: without this the database would wait for it forever
    "tcp_user_timeout": "15000",
    "jit": "off",
}


class ConnectionLost(Exception):
    """The connection is gone, or none could be made."""


class TooManyConnections(ConnectionLost):
    """The database accepts no more connections."""


class TransactionConflict(Exception):
    """Another transaction was faster: read again, and try again."""


class DuplicateRow(TransactionConflict):
    """A unique index refused the row. Usually another transaction inserted it first; if a retry fails too,
    the tables are inconsistent."""


class StatementFailed(Exception):
    """The database is reachable but did not execute it: too slow, locked, out of space."""


class Unstorable(ValueError):
    """No record can hold such a text, so none is found by it."""


class Connection:
    """Created by `connect`."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._used_at = asyncio.get_running_loop().time()
        self._timed_out = False
        self.deadline = math.inf
        """When its current user's time is up, by the loop's clock, whatever it runs."""

    @property
    def is_closed(self) -> bool:
        return bool(self._connection.is_closed())

    @property
    def timed_out(self) -> bool:
        """Whether it was closed because the database did not answer."""
        return self._timed_out

    async def fetch(self, sql: str, *values: object, seconds: float | None = None) -> list[Columns]:
        found: list[Columns] = await self._in_time(self._connection.fetch(sql, *values), seconds)
        return found

    async def execute(self, sql: str, *, seconds: float | None = None) -> None:
        """One or several statements, without parameters."""
        await self._in_time(self._connection.execute(sql), seconds)

    async def listen(self, channel: str, receive: Callable[[str], None]) -> None:
        await self._in_time(
            self._connection.add_listener(channel, lambda _connection, _pid, _channel, text: receive(text))
        )

    async def is_alive(self) -> bool:
        """Checks, after a long silence: a connection that a firewall dropped looks like any other."""
        if self.is_closed:
            return False
        if asyncio.get_running_loop().time() - self._used_at < IDLE_SEC:
            return True
        try:
            await self.ping()
        except (ConnectionLost, StatementFailed):
            self.abort()
            return False
        return True

    async def ping(self) -> None:
        await self._in_time(self._connection.fetchval("SELECT 1"), ALIVE_SEC)

    def abort(self) -> None:
        """Immediately, without a clean shutdown."""
        self._connection.terminate()

    async def close(self) -> None:
        try:
            await self._connection.close(timeout=CLOSE_SEC)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self.abort()

    async def _in_time(self, work: Awaitable[R], seconds: float | None = None) -> R:
        loop = asyncio.get_running_loop()
        # no `asyncio.timeout`: it costs as much as the rest of a short command
        timer = loop.call_at(
            min(loop.time() + (seconds or COMMAND_SEC), self.deadline), self._abort_on_timeout
        )
        try:
            answer = await work
        except asyncio.CancelledError:
            # the answer is still to come, and nothing is left to read it
            self.abort()
            raise
        except AttributeError as error:
            if not self.is_closed:
                raise
            # the driver raises unspecific errors for a connection that it lost between two of its own
            # commands
            raise self._translate(error) from error
        except _ALL as error:
            raise self._translate(error) from error
        finally:
            timer.cancel()
        self._used_at = loop.time()
        return answer

    def _abort_on_timeout(self) -> None:
        self._timed_out = True
        self.abort()

    def _translate(self, error: Exception) -> Exception:
        if self._timed_out:
            return ConnectionLost("the database did not answer in time")
        if isinstance(error, _UNFIT):
            kind = Unstorable if isinstance(error, _NO_TEXT) else ValueError
            return kind(f"the database cannot hold this: {error}")
        if isinstance(error, _CONFLICTS):
            is_duplicate = isinstance(error, asyncpg.UniqueViolationError)
            return DuplicateRow(str(error)) if is_duplicate else TransactionConflict(str(error))
        if self.is_closed or isinstance(error, _LOST):
            self.abort()
            return ConnectionLost(str(error) or type(error).__name__)
        return StatementFailed(str(error))


async def connect(
    database: DatabaseAddress, *, settings: Mapping[str, str] | None = None, seconds: float | None = None
) -> Connection:
    """Raises `ConnectionLost` if the database cannot be reached now, `ValueError` if this address can never
    work."""
    limit = min(seconds or CONNECT_SEC, CONNECT_SEC)
    try:
        async with asyncio.timeout(limit):
            connection = await _finish_connecting(
                asyncpg.connect(
                    database.dsn,
                    timeout=limit,
                    server_settings={**_SETTINGS, **(settings or {}), "search_path": database.schema},
                )
            )
    except _WRONG as error:
        raise ValueError(str(error)) from error
    except asyncpg.TooManyConnectionsError as error:
        raise TooManyConnections(str(error)) from error
    except (TimeoutError, *_ALL) as error:
        raise ConnectionLost(_plain_text(error) or "the database did not answer in time") from error
    return Connection(connection)


async def _finish_connecting(connecting: Awaitable[asyncpg.Connection]) -> asyncpg.Connection:
    """A caller that is cancelled waits for the connection and drops it: interrupted half-way, the driver
    leaves an error behind that nobody can catch."""
    # it is waited for here, whatever happens
    task = asyncio.ensure_future(connecting)  # noqa: TID251
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=CLOSE_SEC)
        if task.done() and not task.cancelled() and task.exception() is None:
            task.result().terminate()
        task.cancel()
        raise


async def is_writable(connection: Connection) -> bool:
    """False on a replica, and if the database was made read-only, by an operator or because its disk is
    full."""
    [row] = await connection.fetch(
        "SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'"
    )
    return bool(row[0])


def _plain_text(error: Exception) -> str:
    """The operating system's message without errno and address: the caller knows the address."""
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number is not None and number > 0 else str(error)


_ALL = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
_WRONG = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.ClientConfigurationError,
)
_UNFIT = (asyncpg.DataError, asyncpg.exceptions.PostgresSyntaxError)
# a NUL, or a letter that the encoding of the database lacks
_NO_TEXT = (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError)
_CONFLICTS = (asyncpg.UniqueViolationError, asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
_LOST = (
    OSError,
    asyncpg.InterfaceError,
    # the database has announced between two commands that the session ends, and the end has not arrived yet
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    # a standby that took over as read-only, or the old primary: another connection may find the right one
    asyncpg.ReadOnlySQLTransactionError,
)


WINDOW_SEC = 30.0

NOW = "coalesce({0}::float8, extract(epoch FROM clock_timestamp())::float8)"
"""For statements: the database's time, unless this parameter overrides it."""


class DatabaseClock:
    """`clock` comes from tests that control the time; then the database gets the time from here."""

    def __init__(self, monotonic: Callable[[], float], clock: Clock | None = None) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._ahead: float | None = None
        self._ahead_before: float | None = None
        self._since = monotonic()

    @property
    def override(self) -> float | None:
        """The time that the database uses instead of its own."""
        return None if self._clock is None else self._clock.now()

    def now(self) -> float:
        if self._clock is not None:
            return self._clock.now()
        known = [ahead for ahead in (self._ahead, self._ahead_before) if ahead is not None]
        assert known, "the database was asked for its time when the store was opened"
        return self._monotonic() + max(known)

    def monotonic(self) -> float:
        """The time to pass to `update`."""
        return self._monotonic()

    def update(self, at: float, *, asked_at: float) -> None:
        """The database has just reported this time; it was asked for it at `asked_at`."""
        here = self._monotonic()
        known = [ahead for ahead in (self._ahead, self._ahead_before) if ahead is not None]
        if known and max(known) > at - asked_at:
            # it cannot be that far ahead: its clock was set back
            self._ahead = self._ahead_before = None
        if here - self._since > WINDOW_SEC:
            self._ahead_before, self._ahead, self._since = self._ahead, None, here
        ahead = at - here
        self._ahead = ahead if self._ahead is None else max(self._ahead, ahead)
