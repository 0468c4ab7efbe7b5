"""Looks at a PostgreSQL store from outside: which version, which tables, what time it is there."""

from __future__ import annotations

from collections.abc import Sequence

from farhand.clock import Clock
from farhand.store.draft.records import Columns
from farhand.store.facts import StoreFacts
from farhand.store.postgres.line import Declined, Line, Lost, connect
from farhand.store.postgres.migrate import OLDEST, latest_version, stored_version
from farhand.store.postgres.place import Place, place_of


async def look(address: str, clock: Clock) -> StoreFacts:
    place = place_of(address)
    try:
        line = await connect(place)
    except (Lost, ValueError) as error:
        return StoreFacts(f"PostgreSQL, {place.name}", latest=latest_version(), problem=str(error))
    try:
        return await _look(line, place, clock)
    except (Lost, Declined) as error:
        return StoreFacts(f"PostgreSQL, {place.name}", latest=latest_version(), problem=str(error))
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
    here = (asked + clock.now()) / 2
    problem = None if number >= OLDEST else "farhand needs PostgreSQL 13 or newer"
    version = await stored_version(line, place)
    return StoreFacts(f"PostgreSQL {name}, {place.name}", version, latest_version(), here - there, problem)
