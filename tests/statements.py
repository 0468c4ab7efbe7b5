"""Counts what is asked of PostgreSQL: each of these is a round trip, with its cost here and there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from farhand.store.postgres import bell, gather, heard, sql, stopped, written
from farhand.store.postgres.line import Line

NAMES = {
    gather.GATHER: "gather",
    written.WRITE: "write",
    written.UPDATE_RUNS: "runs",
    heard.NEWS: "news",
    sql.MESSAGES: "messages",
    sql.CALL: "call",
    sql.COUNT_OPEN: "count open",
    sql.TOOL: "tool",
    sql.RUN: "run",
    sql.CALLS_OF_RUN: "calls of run",
}
BY_THE_CLOCK = frozenset({bell.SAY, stopped.END_STOPPED, sql.DUE, sql.STRAY_RUNS, sql.RESERVE_STRAYS})
"""What is asked now and then, whoever makes a trip."""


@contextmanager
def counted_statements() -> Iterator[Counter[str]]:
    """Of all stores of this process."""
    asked: Counter[str] = Counter()
    fetch, run = Line.fetch, Line.run

    async def counted_fetch(line: Line, statement: str, *values: object, **how: float | None) -> list[object]:
        if statement not in BY_THE_CLOCK:
            asked[NAMES.get(statement, statement)] += 1
        found: list[object] = list(await fetch(line, statement, *values, **how))
        return found

    async def counted_run(line: Line, statement: str, **how: float | None) -> None:
        asked[statement] += 1
        await run(line, statement, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Line, "fetch", counted_fetch)
        patch.setattr(Line, "run", counted_run)
        yield asked
