"""Looks at a PostgreSQL store from outside: which version, which tables, what time it is there, how busy.

Changes nothing; whatever a server would refuse at its start is a problem here.
"""

from __future__ import annotations

from collections.abc import Sequence

from farhand.clock import Clock
from farhand.store.draft.listed import RECORDS, unreadable_in
from farhand.store.draft.records import Columns
from farhand.store.facts import Busy, StoreFacts
from farhand.store.postgres.line import Declined, Line, Lost, connect
from farhand.store.postgres.migrate import (
    OLDEST,
    behind_pooler,
    latest_version,
    missing_right,
    stored_version,
)
from farhand.store.postgres.place import Place, place_of
from farhand.store.postgres.pooler import HINT, pooler_fault
from farhand.store.postgres.rights import what_is_wrong

NOT_LET_IN = "Check the address, and that the database is running and lets this user in."


async def look(address: str, clock: Clock) -> StoreFacts:
    place = place_of(address)
    try:
        line = await connect(place)
    except (Lost, ValueError) as error:
        return _unusable(place, error)
    try:
        return await _look(line, place, clock)
    except (Lost, Declined) as error:
        return _unusable(place, error)
    finally:
        await line.close()


async def _look(line: Line, place: Place, clock: Clock) -> StoreFacts:
    asked = clock.now()
    found: Sequence[Columns] = await line.fetch(
        "SELECT current_setting('server_version'), current_setting('server_version_num')::int,"
        " extract(epoch FROM clock_timestamp())::float8"
    )
    name, number, there = found[0]
    # the answer was under way for as long as the question
    behind = (asked + clock.now()) / 2 - there
    what = f"PostgreSQL {name}, {place.name}"
    if number < OLDEST:
        return StoreFacts(what, latest=latest_version(), problem="farhand needs PostgreSQL 13 or newer")
    pooled = await pooler_fault(place)
    if pooled is not None:
        return StoreFacts(what, latest=latest_version(), problem=pooled, hint=HINT)
    wrong = await what_is_wrong(line, place)
    if wrong is not None:
        return StoreFacts(what, latest=latest_version(), problem=wrong.told, hint=wrong.do)
    version = await stored_version(line, place)
    unreadable = unreadable_in(await line.fetch(RECORDS)) if version == latest_version() else ()
    busy = await _busy(line)
    return StoreFacts(what, version, latest_version(), behind, busy=busy, unreadable=unreadable)


async def _busy(line: Line) -> Busy:
    """Of all programs on that server, whoever they are: they share its connections and its one queue."""
    found: Sequence[Columns] = await line.fetch(
        "SELECT current_setting('max_connections')::int"
        " - current_setting('superuser_reserved_connections')::int,"
        # our own, which is gone in a moment, does not count
        " (SELECT sum(numbackends)::int FROM pg_stat_database) - 1, pg_notification_queue_usage()"
    )
    at_most, connections, queue = found[0]
    return Busy(at_most, connections, queue)


def _unusable(place: Place, error: Exception) -> StoreFacts:
    hint = missing_right(str(error), place.schema) or behind_pooler(str(error)) or NOT_LET_IN
    return StoreFacts(
        f"PostgreSQL, {place.name}", latest=latest_version(), problem=str(error).removesuffix("."), hint=hint
    )
