"""LISTEN and NOTIFY: hints between the processes that share a database. Only the store is the record.

A live connection loses no notification, so the listening connection is pinged twice a second; and since a
connection may be alive and receive nothing, it must receive its own notifications. Until it does, the
listener is called with an empty topic once a second: check everything.

PostgreSQL keeps every notification until the slowest listener has taken it, and when its queue is full nobody
can commit. A suspended process takes nothing; the network ends its connection where it is TCP all the way,
and behind a proxy or on a local socket the other processes do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import TypeAlias

import msgspec

from farhand.core.principal import Owner
from farhand.errors import Broken
from farhand.store.base import FEED_GREW, HintListener, owner_key
from farhand.store.postgres.connection import (
    NOW,
    Connection,
    ConnectionLost,
    DatabaseAddress,
    DatabaseClock,
    StatementFailed,
    TransactionConflict,
    connect,
)
from farhand.store.postgres.pool import Pool
from farhand.supervisor import supervise

log = logging.getLogger("farhand.store")

Hint: TypeAlias = tuple[str, str]
"""A topic, and what happened there."""
LOOK_AT_EVERYTHING: Hint = ("", "")

PAYLOAD_BYTES = 7_600
"""The limit of a notification: PostgreSQL accepts less than 8,000 bytes."""
MAX_PAYLOADS = 16
"""With more keys than this, the others are told to check everything."""
PING_SEC = 0.5
SELF_TEST_SEC = 2.0
ECHO_SEC = 1.0
"""How long our own notification may take."""
RECHECK_SEC = 1.0
RETRY_SEC = 0.25
MAX_UNSENT_HINTS = 10_000
"""Hints that wait for a connection."""

LISTENER = "farhand-listener"
"""The connection's application name: it is idle by design, and should not be terminated for it."""
STOPPED_SEC = 15.0
"""A listener pings twice a second: one that has not for this long is not running."""
SWEEP_SEC = 10.0
"""How often to look for stopped listeners."""

SEND = "SELECT pg_notify($1, note) FROM unnest($2::text[]) AS note"

END_STOPPED = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = $1 AND datname = current_database() AND usename = current_user
        AND wait_event = 'ClientWrite'
        AND state_change < clock_timestamp() - $2::float8 * interval '1 second'
"""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[str, list[Hint]]).decode


class Notifier:
    def __init__(self, database: DatabaseAddress, pool: Pool, sender: str) -> None:
        self.is_listening = False
        """Whether there is a connection that receives."""
        self._database = database
        self._pool = pool
        self._sender = sender
        self._listener: HintListener | None = None
        self._unsent: list[Hint] = []
        self._wanted = asyncio.Event()
        self._echo = asyncio.Event()
        """Set when our own notification was received."""
        self._is_disconnected = asyncio.Event()
        self._test_at = 0.0
        self._sweep_at = 0.0
        self._is_logged = False

    def listen(self, listener: HintListener) -> None:
        self._listener = listener

    def send(self, hint: Hint) -> None:
        """To all other processes, soon, without a stored record."""
        if len(self._unsent) >= MAX_UNSENT_HINTS:
            self._unsent = [LOOK_AT_EVERYTHING]
        self._unsent.append(hint)
        self._wanted.set()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for loop in (self._listen, self._recheck_while_disconnected):
                    group.create_task(supervise(loop, log, pause_sec=RETRY_SEC))
        finally:
            self.is_listening = False

    async def _listen(self) -> None:
        while True:
            try:
                await self._listen_until_lost()
            except (ConnectionLost, StatementFailed, TransactionConflict, ValueError, TimeoutError) as error:
                reason = str(error) or type(error).__name__
                level = logging.DEBUG if self._is_logged else logging.WARNING
                log.log(level, "not receiving notifications from other servers: %s", reason)
                self._is_logged = True
            finally:
                self.is_listening = False
                self._is_disconnected.set()
            await asyncio.sleep(RETRY_SEC)

    async def _recheck_while_disconnected(self) -> None:
        """Not while the database is down: then a waiter should keep waiting instead of failing."""
        while True:
            await self._is_disconnected.wait()
            with suppress(Broken):
                await self._pool.fetch("SELECT 1")
                self._tell(LOOK_AT_EVERYTHING)
            await asyncio.sleep(RECHECK_SEC)

    async def _listen_until_lost(self) -> None:
        connection = await connect(self._database, settings={"application_name": LISTENER})
        try:
            await connection.listen(self._database.channel, self._receive)
            self._test_at = self._sweep_at = 0.0
            await self._work(connection)
            # what was sent before this moment is only in the store
            self._tell(LOOK_AT_EVERYTHING)
            self._is_disconnected.clear()
            self.is_listening, self._is_logged = True, False
            while not connection.is_closed:
                await self._pause()
                await self._work(connection)
        finally:
            connection.abort()

    async def _work(self, connection: Connection) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._sweep_at:
            # before anything is sent: nothing can be while the queue is full
            self._sweep_at = now + SWEEP_SEC
            await self._end_stopped(connection)
        if self._unsent or now >= self._test_at:
            self._test_at = now + SELF_TEST_SEC
            await self._send(connection)
        else:
            await connection.ping()

    async def _end_stopped(self, connection: Connection) -> None:
        if count := await end_stopped(connection):
            log.warning("terminated %d listeners of stopped servers that held up all notifications", count)

    async def _send(self, connection: Connection) -> None:
        """Sends what waits, or an empty notification; this connection must receive it."""
        hints, self._unsent = self._unsent, []
        notes = payloads(self._sender, hints) or [_payload(self._sender, [])]
        self._echo.clear()
        try:
            await connection.fetch(SEND, self._database.channel, notes, seconds=ECHO_SEC)
        except BaseException:
            self._unsent = hints + self._unsent
            raise
        try:
            async with asyncio.timeout(ECHO_SEC):
                await self._echo.wait()
        except TimeoutError as error:
            raise ConnectionLost(
                "our own NOTIFY did not arrive; LISTEN does not work through a transaction pooler"
            ) from error

    async def _pause(self) -> None:
        self._wanted.clear()
        if self._unsent:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(PING_SEC):
                await self._wanted.wait()

    def _receive(self, text: str) -> None:
        # without parsing the rest: a process that sends much receives all of it again
        if text.startswith(f'["{self._sender}",'):
            self._echo.set()
            return
        try:
            _, hints = _decode(text)
        except msgspec.DecodeError:
            # perhaps from a newer version
            hints = [LOOK_AT_EVERYTHING]
        for hint in hints:
            self._tell(hint)

    def _tell(self, hint: Hint) -> None:
        if self._listener is None:
            return
        try:
            self._listener(*hint)
        # called by the driver: an error of one listener must not end the connection of all
        except Exception:
            log.exception("a listener failed on a notification")


async def end_stopped(connection: Connection) -> int:
    """Terminates the listeners of this database and this user that block the queue; returns how many there
    were. A process that continues later finds its connection closed, and opens a new one."""
    return len(await connection.fetch(END_STOPPED, LISTENER, STOPPED_SEC))


def payloads(sender: str, hints: Iterable[Hint]) -> list[str]:
    """Each hint once, in as few notifications as possible."""
    limit = PAYLOAD_BYTES - len(_payload(sender, []))
    notes: list[str] = []
    parts: list[bytes] = []
    size = 0
    for hint in dict.fromkeys(hints):
        part = _encode(hint)
        if len(part) > limit:
            return [_payload(sender, [_encode(LOOK_AT_EVERYTHING)])]
        if size + len(part) > limit:
            notes.append(_payload(sender, parts))
            parts, size = [], 0
        parts.append(part)
        size += len(part) + 1
    if parts:
        notes.append(_payload(sender, parts))
    return notes if len(notes) <= MAX_PAYLOADS else [_payload(sender, [_encode(LOOK_AT_EVERYTHING)])]


def _payload(sender: str, parts: list[bytes]) -> str:
    return (b'["%s",[%s]]' % (sender.encode(), b",".join(parts))).decode()


class FeedWriter:
    def __init__(self, channel: str, sender: str, clock: DatabaseClock) -> None:
        self._channel = channel
        self._sender = sender
        self._clock = clock

    async def write(
        self, connection: Connection, owner: Owner, body: bytes, thread_id: str | None = None
    ) -> None:
        key = (owner.tenant, owner.subject)
        await connection.fetch(ADD_TO_FEED, *key, body, thread_id, self._clock.override)
        await self.notify(connection, (FEED_GREW, owner_key(owner)))

    async def notify(self, connection: Connection, hint: Hint) -> None:
        """Sent when the transaction commits."""
        await connection.fetch(SEND, self._channel, payloads(self._sender, [hint]))


ADD_TO_FEED = f"""
    WITH feed_end AS (
        INSERT INTO feeds (tenant, subject, last) VALUES ($1, $2, 1)
        ON CONFLICT (tenant, subject) DO UPDATE SET last = feeds.last + 1 RETURNING last
    )
    INSERT INTO feed (tenant, subject, no, count, at, thread_id, body)
    SELECT $1, $2, last, 1, {NOW.format("$5")}, $4, $3 FROM feed_end
"""
