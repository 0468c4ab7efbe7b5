"""Registrations, and which of the registered clients have a stream, in whichever process.

A registration changes under a lock of its owner, together with what the owner's feed is told of it. The
streams table has the newest stream of each client, and until when it is known to be there: a process says so
again before that time is over; one that dies says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from farhand.core.client import Client
from farhand.core.principal import Owner
from farhand.store.base import CLIENTS_CHANGED, owner_key
from farhand.store.postgres.batch import columns
from farhand.store.postgres.connection import NOW, Columns, Connection, DatabaseClock
from farhand.store.postgres.notify import FeedWriter
from farhand.store.postgres.pool import Pool
from farhand.store.presence import Absence, Seat
from farhand.store.records import decode_client, decode_listed, next_registration


class PostgresClients:
    def __init__(self, pool: Pool, clock: DatabaseClock, feed: FeedWriter) -> None:
        self._pool = pool
        self._clock = clock
        self._feed = feed

    async def all(self, owner: Owner | None = None) -> list[Client]:
        key = (None, None) if owner is None else (owner.tenant, owner.subject)
        rows = await self._pool.fetch(CLIENTS, *key)
        found = [decode_listed(decode_client, body, kind="client", name=name) for name, _, body in rows]
        return [client for client in found if client is not None]

    async def put(self, client: Client, notice: bytes = b"") -> Literal["put", "moved", "name_taken"]:
        async def put(connection: Connection) -> Literal["put", "moved", "name_taken"]:
            stored = await self._lock(connection, client.owner)
            before = stored.pop(client.client_id, None)
            record = next_registration(client, before, [other for _, other in stored.values()])
            if isinstance(record, str):
                return record
            await connection.fetch(PUT, *_key(client), client.version, record)
            await self._tell(connection, client.owner, notice)
            return "put"

        return await self._pool.transact(put)

    async def drop(
        self, client: Client, notice: bytes = b"", *, if_away: bool = False
    ) -> Literal["dropped", "moved", "here"]:
        async def drop(connection: Connection) -> Literal["dropped", "moved", "here"]:
            stored = await self._lock(connection, client.owner)
            if client.client_id not in stored or stored[client.client_id][0] != client.version:
                return "moved"
            if if_away and await connection.fetch(LOCK_STREAM, *_key(client), self._clock.override):
                return "here"
            await connection.fetch(DROP, *_key(client))
            await self._tell(connection, client.owner, notice)
            return "dropped"

        return await self._pool.transact(drop)

    async def _lock(self, connection: Connection, owner: Owner) -> dict[str, tuple[int, bytes]]:
        """The owner's clients. Nobody else can take a name between the look and the write."""
        await connection.fetch(LOCK, owner.tenant, owner.subject)
        rows = await connection.fetch(CLIENTS, owner.tenant, owner.subject)
        return {name: (version, body) for name, version, body in rows}

    async def _tell(self, connection: Connection, owner: Owner, body: bytes) -> None:
        if body:
            await self._feed.write(connection, owner, body)
        await self._feed.notify(connection, (CLIENTS_CHANGED, owner_key(owner)))


class PostgresStreams:
    def __init__(self, pool: Pool, clock: DatabaseClock) -> None:
        self._pool = pool
        self._clock = clock

    async def arrive(self, owner: Owner, client_id: str, *, lease_sec: float) -> Seat:
        key = (owner.tenant, owner.subject, client_id)
        [row] = await self._pool.fetch(ARRIVE, *key, self._clock.override, lease_sec)
        return Seat(owner, client_id, row[0])

    async def stay(self, seats: Sequence[Seat], *, lease_sec: float) -> list[Seat]:
        if not seats:
            return []
        keys = [(seat.owner.tenant, seat.owner.subject, seat.client_id, seat.number) for seat in seats]
        rows = await self._pool.fetch(STAY, *columns(keys, 4), self._clock.override, lease_sec)
        kept = {tuple(row) for row in rows}
        return [seat for seat, key in zip(seats, keys, strict=True) if key not in kept]

    async def leave(self, seat: Seat) -> None:
        key = (seat.owner.tenant, seat.owner.subject, seat.client_id, seat.number)
        await self._pool.fetch(LEAVE, *key, self._clock.override)

    async def expect(self, owner: Owner, client_id: str) -> None:
        await self._pool.fetch(EXPECT, owner.tenant, owner.subject, client_id, self._clock.override)

    async def is_here(self, owner: Owner, client_id: str) -> bool:
        key = (owner.tenant, owner.subject, client_id)
        return bool(await self._pool.fetch(HERE, *key, self._clock.override))

    async def absent(self) -> list[Absence]:
        return [_absence_of(row) for row in await self._pool.fetch(ABSENT, self._clock.override)]


def _key(client: Client) -> tuple[str, str, str]:
    return client.owner.tenant, client.owner.subject, client.client_id


def _absence_of(row: Columns) -> Absence:
    return Absence(Owner(row[0], row[1]), row[2], row[3])


LOCK = """
    SELECT pg_advisory_xact_lock(
        hashtextextended(format('clients of %s %s %s', current_schema(), $1::text, $2::text), 0))
"""

CLIENTS = """
    SELECT client_id, version, body FROM clients WHERE $1::text IS NULL OR (tenant = $1 AND subject = $2)
    ORDER BY tenant, subject, client_id
"""

PUT = """
    INSERT INTO clients (tenant, subject, client_id, version, body) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant, subject, client_id)
        DO UPDATE SET version = excluded.version, body = excluded.body
"""

LOCK_STREAM = f"""
    SELECT 1 FROM streams
    WHERE tenant = $1 AND subject = $2 AND client_id = $3 AND here_until > {NOW.format("$4")} FOR UPDATE
"""

DROP = "DELETE FROM clients WHERE tenant = $1 AND subject = $2 AND client_id = $3"

ARRIVE = f"""
    INSERT INTO streams (tenant, subject, client_id, stream_no, here_until)
    VALUES ($1, $2, $3, 1, {NOW.format("$4")} + $5::float8)
    ON CONFLICT (tenant, subject, client_id)
        DO UPDATE SET stream_no = streams.stream_no + 1, here_until = excluded.here_until
    RETURNING stream_no
"""

STAY = f"""
    UPDATE streams SET here_until = {NOW.format("$5")} + $6::float8
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
        AS seat (tenant, subject, client_id, stream_no)
    WHERE streams.tenant = seat.tenant AND streams.subject = seat.subject
        AND streams.client_id = seat.client_id AND streams.stream_no = seat.stream_no
    RETURNING streams.tenant, streams.subject, streams.client_id, streams.stream_no
"""

LEAVE = f"""
    UPDATE streams SET here_until = {NOW.format("$5")}
    WHERE tenant = $1 AND subject = $2 AND client_id = $3 AND stream_no = $4
"""

EXPECT = f"""
    INSERT INTO streams (tenant, subject, client_id, stream_no, here_until)
    VALUES ($1, $2, $3, 0, {NOW.format("$4")})
    ON CONFLICT (tenant, subject, client_id)
        DO UPDATE SET here_until = greatest(streams.here_until, excluded.here_until)
"""

HERE = f"""
    SELECT 1 FROM streams
    WHERE tenant = $1 AND subject = $2 AND client_id = $3 AND here_until > {NOW.format("$4")}
"""

# one that nobody ever expected has been away for longer than any grace period
ABSENT = f"""
    SELECT tenant, subject, client_id, coalesce(moment - here_until, 1e9)::float8
    FROM clients
        LEFT JOIN streams USING (tenant, subject, client_id)
        CROSS JOIN (SELECT {NOW.format("$1")} AS moment) AS now
    WHERE here_until IS NULL OR here_until <= moment
"""
