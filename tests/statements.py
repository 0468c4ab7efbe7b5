"""Counts the statements sent to PostgreSQL: each is a round trip, with its cost on both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from farhand.store.base import CallFilter
from farhand.store.postgres import batch, notify, queries
from farhand.store.postgres.connection import Connection

NAMES = {
    batch.VERSIONS: "versions",
    queries.LOAD: "load",
    queries.FIND_TOOL: "tool",
    **{sql: f"find {kind}" for kind, sql in queries.FIND_CALL.items()},
    **{sql: f"count {what}" for what, sql in queries.COUNT.items()},
}
SWEEPS = {
    queries.open_calls_query(which)[0]
    for which in (CallFilter(needs_worker=True), CallFilter(is_client=True), CallFilter(due_before=0.0))
}
BY_THE_CLOCK = frozenset(
    {
        notify.SEND,
        notify.END_STOPPED,
        queries.CLAIMABLE,
        queries.RESERVE_CLAIMABLE,
        queries.RENEW,
        queries.ABSENT_CLIENTS,
        *SWEEPS,
    }
)
"""What is asked now and then, whoever makes a trip."""


@contextmanager
def counted_statements() -> Iterator[Counter[str]]:
    """Of all stores of this process."""
    asked: Counter[str] = Counter()
    fetch, execute = Connection.fetch, Connection.execute

    async def counted_fetch(
        connection: Connection, statement: str, *values: object, **how: float | None
    ) -> list[object]:
        if statement not in BY_THE_CLOCK:
            is_write = "INSERT INTO log " in statement
            asked["write" if is_write else NAMES.get(statement, statement)] += 1
        found: list[object] = await fetch(connection, statement, *values, **how)
        return found

    async def counted_execute(connection: Connection, statement: str, **how: float | None) -> None:
        asked[statement] += 1
        await execute(connection, statement, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "fetch", counted_fetch)
        patch.setattr(Connection, "execute", counted_execute)
        yield asked
