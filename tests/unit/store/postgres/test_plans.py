"""How frequent reads are planned: once, and by an index, however small the tables were at that moment."""

from __future__ import annotations

import pytest

from farhand.store.postgres import PostgresStore, heard, sql
from farhand.store.postgres.line import Line
from farhand.testing.store_laws.given import Given
from tests.requirement import requirement

FREQUENT = {
    "messages": (sql.MESSAGES, '[["acme", "ann", "t1"]]'),
    "run": (sql.RUN, '[["acme", "ann", "?"]]'),
    "call": (sql.CALL, '[["acme", "ann", "?"]]'),
    "count open": (sql.COUNT_OPEN, '[["acme", "ann", "t1"]]'),
    "calls of run": (sql.CALLS_OF_RUN, '[["acme", "ann", "?", "1"]]'),
    "tool": (sql.TOOL, '[["?"]]'),
    "news": (heard.NEWS, '{"runs": ["?"], "calls": ["?"], "grown": [["?", 1]]}'),
}
COUNTED = "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement = $1"


@requirement("postgres:planned-once")
@pytest.mark.parametrize("name", FREQUENT)
async def test_a_frequent_read_is_planned_once(given: Given, postgres: PostgresStore, name: str) -> None:
    await given.call(await given.run())
    statement, values = _asked(name)

    async def read_often(line: Line) -> tuple[object, ...]:
        for _ in range(12):
            await line.fetch(statement, *values)
        [row] = await line.fetch(COUNTED, statement)
        return tuple(row)

    # the database itself tries a few times whether plans for the very values are better
    assert await postgres._lines.do(read_often) == (7, 5)


@requirement("postgres:planned-once")
@pytest.mark.parametrize("name", FREQUENT)
async def test_a_plan_that_is_kept_walks_through_no_table_because_it_was_small(
    given: Given, postgres: PostgresStore, name: str
) -> None:
    await given.call(await given.run())
    statement, values = _asked(name)

    async def plan_of(line: Line) -> str:
        await line.run("ANALYZE threads, messages, runs, calls, events, tools")
        await line.run("SET plan_cache_mode = force_generic_plan")
        rows = await line.fetch(f"EXPLAIN {statement}", *values)
        line.cut()
        return "\n".join(str(row[0]) for row in rows)

    plan = await postgres._lines.do(plan_of)
    assert "Index" in plan
    assert "Seq Scan" not in plan
    assert "Hash" not in plan


def _asked(name: str) -> tuple[str, tuple[object, ...]]:
    statement, keys = FREQUENT[name]
    return statement, (keys, 100) if name == "news" else (keys,)
