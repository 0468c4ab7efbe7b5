"""One connection to the database. The only importer of the driver: its errors become three of ours.

A command that is not answered in time ends its connection: half a connection looks like a slow one, and
nobody can tell what state it was left in.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

# it comes without types; this is its only importer, and what leaves this module is typed
import asyncpg  # type: ignore[import-untyped]

from farhand.store.postgres.place import Place

log = logging.getLogger("farhand.store")

Row: TypeAlias = Sequence[object]
R = TypeVar("R")

CONNECT_SEC = 5.0
COMMAND_SEC = 8.0
CLOSE_SEC = 2.0
IDLE_SEC = 3.0
"""After so much silence a connection is asked whether it still is one."""
ALIVE_SEC = 1.0
"""How long the answer to that may take."""

_SETTINGS = {
    "application_name": "farhand",
    # all in milliseconds: below our own patience, so that the database says which statement was slow
    "statement_timeout": "6000",
    "lock_timeout": "4000",
    # whoever is stopped in the middle of a transaction must not keep its rows from the others
    "idle_in_transaction_session_timeout": "4000",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    # whoever is stopped still acknowledges: without this the database waits for it for ever
    "tcp_user_timeout": "15000",
    "jit": "off",
}


class Lost(Exception):
    """The connection is gone, or none could be made."""


class Full(Lost):
    """The database has no room for one more connection."""


class Raced(Exception):
    """Another transaction was faster: look again, and try again."""


class Declined(Exception):
    """The database is there and did not do it: too slow, locked, out of space."""


class Unfit(ValueError):
    """No record can hold such a text, so none is found by it."""


class Line:
    """Made by `connect`."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._used_at = asyncio.get_running_loop().time()
        self._is_late = False
        self.until = math.inf
        """When whoever uses it has no patience left, whatever is asked."""

    @property
    def is_closed(self) -> bool:
        return bool(self._connection.is_closed())

    @property
    def was_used_lately(self) -> bool:
        return asyncio.get_running_loop().time() - self._used_at < IDLE_SEC

    @property
    def is_late(self) -> bool:
        """Whether it was given up because the database was silent."""
        return self._is_late

    @property
    def is_in_transaction(self) -> bool:
        return not self.is_closed and bool(self._connection.is_in_transaction())

    @property
    def notifies_at_commit(self) -> bool:
        """Before version 15 a session woke the listeners only when it was out of every transaction."""
        return bool(self._connection.get_server_version() >= (15,))

    async def fetch(self, sql: str, *values: object, seconds: float | None = None) -> list[Row]:
        found: list[Row] = await self._in_time(self._connection.fetch(sql, *values), seconds)
        return found

    async def run(self, sql: str, *, seconds: float | None = None) -> None:
        """One or several statements, without values."""
        await self._in_time(self._connection.execute(sql), seconds)

    async def listen(self, channel: str, heard: Callable[[str], None]) -> None:
        await self._in_time(
            self._connection.add_listener(channel, lambda _line, _pid, _channel, text: heard(text))
        )

    async def is_alive(self) -> bool:
        """Asks, if it was silent for long: one that a firewall forgot looks like any other."""
        if self.is_closed:
            return False
        if self.was_used_lately:
            return True
        try:
            await self.ask()
        except (Lost, Declined):
            self.cut()
            return False
        return True

    async def ask(self) -> None:
        """For a sign of life, and soon."""
        await self._in_time(self._connection.fetchval("SELECT 1"), ALIVE_SEC)

    def cut(self) -> None:
        """At once, without a farewell."""
        self._connection.terminate()

    async def close(self) -> None:
        try:
            await self._connection.close(timeout=CLOSE_SEC)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self.cut()

    async def _in_time(self, work: Awaitable[R], seconds: float | None = None) -> R:
        loop = asyncio.get_running_loop()
        # no `asyncio.timeout`: it costs as much as the rest of a short command
        late = loop.call_at(min(loop.time() + (seconds or COMMAND_SEC), self.until), self._cut_late)
        try:
            answer = await work
        except asyncio.CancelledError:
            # the answer is still to come, and nobody is left to read it
            self.cut()
            raise
        except AttributeError as error:
            if not self.is_closed:
                raise
            # the driver stumbles over a connection that it lost between two commands of its own
            raise self._plain(error) from error
        except _ALL as error:
            raise self._plain(error) from error
        finally:
            late.cancel()
        self._used_at = loop.time()
        return answer

    def _cut_late(self) -> None:
        """Whoever waits is told that the connection is closed."""
        self._is_late = True
        self.cut()

    def _plain(self, error: Exception) -> Exception:
        if self._is_late:
            return Lost("the database did not answer in time")
        if isinstance(error, _UNFIT):
            kind = Unfit if isinstance(error, _NO_TEXT) else ValueError
            return kind(f"the database cannot hold this: {error}")
        if isinstance(error, _RACED):
            return Raced(str(error))
        if self.is_closed or isinstance(error, _LOST):
            self.cut()
            return Lost(str(error) or type(error).__name__)
        return Declined(str(error))


async def connect(
    place: Place, *, settings: Mapping[str, str] | None = None, seconds: float | None = None
) -> Line:
    """`Lost` if the database cannot be reached now, `ValueError` if it never will with this address."""
    patience = min(seconds or CONNECT_SEC, CONNECT_SEC)
    try:
        async with asyncio.timeout(patience):
            connection = await _whole(
                asyncpg.connect(
                    place.dsn,
                    timeout=patience,
                    server_settings={**_SETTINGS, **(settings or {}), "search_path": place.schema},
                )
            )
    except _WRONG as error:
        raise ValueError(str(error)) from error
    except asyncpg.TooManyConnectionsError as error:
        raise Full(str(error)) from error
    except (TimeoutError, *_ALL) as error:
        raise Lost(_plainly(error) or "the database did not answer in time") from error
    return Line(connection)


async def _whole(connecting: Awaitable[asyncpg.Connection]) -> asyncpg.Connection:
    """Whoever is cancelled meanwhile waits for the connection and lets it go: interrupted half-way, the
    driver leaves an error behind that nobody can catch."""
    # it is waited for here, whatever happens
    made = asyncio.ensure_future(connecting)  # noqa: TID251
    try:
        return await asyncio.shield(made)
    except asyncio.CancelledError:
        await asyncio.wait([made], timeout=CLOSE_SEC)
        if made.done() and not made.cancelled() and made.exception() is None:
            made.result().terminate()
        made.cancel()
        raise


async def is_writable(line: Line) -> bool:
    """Not on a replica, nor where an operator or a full disk made the database read-only."""
    [row] = await line.fetch(
        "SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'"
    )
    return bool(row[0])


def _plainly(error: Exception) -> str:
    """Without the number and the address that the system's words come with: who reads it has named it."""
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
_RACED = (asyncpg.UniqueViolationError, asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
_LOST = (
    OSError,
    asyncpg.InterfaceError,
    # between two commands the database has said that the session ends, and its end has not arrived yet
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    # a standby that took over as read-only, or the old primary: another connection may find the right one
    asyncpg.ReadOnlySQLTransactionError,
)
