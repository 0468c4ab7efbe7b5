"""Which clients have a stream, in whichever process: the newest one of each, and until when it is known to be
there. Whoever has a stream says so again before that time is over; who dies says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from farhand.core.principal import Owner
from farhand.store.draft.records import Columns, number_of
from farhand.store.postgres.hours import Hours
from farhand.store.postgres.lines import Lines
from farhand.store.streams import Absence, Seat


class PostgresStreams:
    def __init__(self, lines: Lines, hours: Hours) -> None:
        self._lines = lines
        self._hours = hours

    async def arrive(self, owner: Owner, client_id: str, *, lease_sec: float) -> Seat:
        key = (owner.tenant, owner.subject, client_id, self._hours.told, lease_sec)
        [number] = await self._lines.many(ARRIVE, key, number_of)
        return Seat(owner, client_id, number)

    async def stay(self, seats: Sequence[Seat], *, lease_sec: float) -> list[Seat]:
        keys = [(seat.owner.tenant, seat.owner.subject, seat.client_id, seat.number) for seat in seats]
        if not keys:
            return []
        columns = [list(column) for column in zip(*keys, strict=True)]
        kept = await self._lines.many(STAY, (*columns, self._hours.told, lease_sec), _seat_of)
        return [seat for seat in seats if seat not in kept]

    async def leave(self, seat: Seat) -> None:
        key = (seat.owner.tenant, seat.owner.subject, seat.client_id, seat.number, self._hours.told)
        await self._lines.many(LEAVE, key, number_of)

    async def expect(self, owner: Owner, client_id: str) -> None:
        key = (owner.tenant, owner.subject, client_id, self._hours.told)
        await self._lines.many(EXPECT, key, number_of)

    async def is_here(self, owner: Owner, client_id: str) -> bool:
        key = (owner.tenant, owner.subject, client_id, self._hours.told)
        return bool(await self._lines.many(HERE, key, number_of))

    async def absent(self) -> list[Absence]:
        return await self._lines.many(ABSENT, (self._hours.told,), _absence_of)


def _seat_of(row: Columns) -> Seat:
    return Seat(Owner(row[0], row[1]), row[2], row[3])


def _absence_of(row: Columns) -> Absence:
    return Absence(Owner(row[0], row[1]), row[2], row[3])


ARRIVE = """
    INSERT INTO streams (tenant, subject, client_id, stream_no, here_until)
    VALUES ($1, $2, $3, 1, coalesce($4::float8, extract(epoch FROM clock_timestamp())::float8) + $5::float8)
    ON CONFLICT (tenant, subject, client_id)
        DO UPDATE SET stream_no = streams.stream_no + 1, here_until = excluded.here_until
    RETURNING stream_no
"""

STAY = """
    UPDATE streams
    SET here_until = coalesce($5::float8, extract(epoch FROM clock_timestamp())::float8) + $6::float8
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
        AS seat (tenant, subject, client_id, stream_no)
    WHERE streams.tenant = seat.tenant AND streams.subject = seat.subject
        AND streams.client_id = seat.client_id AND streams.stream_no = seat.stream_no
    RETURNING streams.tenant, streams.subject, streams.client_id, streams.stream_no
"""

LEAVE = """
    UPDATE streams SET here_until = coalesce($5::float8, extract(epoch FROM clock_timestamp())::float8)
    WHERE tenant = $1 AND subject = $2 AND client_id = $3 AND stream_no = $4 RETURNING stream_no
"""

EXPECT = """
    INSERT INTO streams (tenant, subject, client_id, stream_no, here_until)
    VALUES ($1, $2, $3, 0, coalesce($4::float8, extract(epoch FROM clock_timestamp())::float8))
    ON CONFLICT (tenant, subject, client_id)
        DO UPDATE SET here_until = greatest(streams.here_until, excluded.here_until)
    RETURNING stream_no
"""

HERE = """
    SELECT 1 FROM streams WHERE tenant = $1 AND subject = $2 AND client_id = $3
        AND here_until > coalesce($4::float8, extract(epoch FROM clock_timestamp())::float8)
"""

# one that nobody ever expected has been away for longer than any grace
ABSENT = """
    SELECT tenant, subject, client_id, coalesce(moment - here_until, 1e9)::float8
    FROM clients
        LEFT JOIN streams USING (tenant, subject, client_id)
        CROSS JOIN
            (SELECT coalesce($1::float8, extract(epoch FROM clock_timestamp())::float8) AS moment) AS now
    WHERE here_until IS NULL OR here_until <= moment
"""
