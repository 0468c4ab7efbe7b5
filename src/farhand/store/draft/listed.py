"""Rows of a list: one that this version cannot read is left out and named in the log; the others are there.

A row is read alone elsewhere: then nothing is left out, and whoever asks is told that it cannot be read.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from farhand.core.call import Call
from farhand.core.client import Client
from farhand.core.run import Run
from farhand.core.thread import Thread, Used
from farhand.store.draft.records import Columns, body_of_call, body_of_client, body_of_thread, run_of

log = logging.getLogger("farhand.store")

R = TypeVar("R")
P = TypeVar("P")

REMEMBERED = 1_000
_named: set[tuple[str, str]] = set()


def listed_thread(row: Columns) -> tuple[Used, Thread | None]:
    """Of body, thread_id and updated_at; with its place in the list, readable or not."""
    return Used(row[2], row[1]), _or_none("thread", row[1], body_of_thread, row)


def listed_run(row: Columns) -> tuple[str, Run | None]:
    return row[1], _or_none("run", row[1], run_of, row)


def listed_call(row: Columns) -> Call | None:
    """Of body and call_id; None for one that cannot be read."""
    return _or_none("call", row[1], body_of_call, row)


def listed_client(row: Columns) -> Client | None:
    """Of body and client_id."""
    return _or_none("client", row[1], body_of_client, row)


def readable(found: Iterable[R | None]) -> list[R]:
    return [each for each in found if each is not None]


RECORDS = """
    SELECT 'thread', thread_id, body FROM threads
    UNION ALL SELECT 'call', call_id, body FROM calls
    UNION ALL SELECT 'client', client_id, body FROM clients
"""
"""What a list may leave out, for `unreadable_in`; runs have columns alone."""

_READ: dict[str, Callable[[Columns], object]] = {
    "thread": body_of_thread,
    "call": body_of_call,
    "client": body_of_client,
}


def unreadable_in(rows: Iterable[Columns]) -> tuple[str, ...]:
    """The names of those, of rows as `RECORDS` has them, that cannot be read."""
    return tuple(f"{kind} {name}" for kind, name, body in rows if not _can_be_read(_READ[kind], (body,)))


def _can_be_read(of: Callable[[Columns], object], row: Columns) -> bool:
    try:
        of(row)
    except ValueError:
        return False
    return True


async def whole_page(
    limit: int, after: P, read: Callable[[P, int], Awaitable[list[tuple[P, R | None]]]]
) -> list[R]:
    """So many that can be read, or all there are: a page that is short is taken for the last one."""
    kept: list[R] = []
    while len(kept) < limit:
        wanted = limit - len(kept)
        found = await read(after, wanted)
        kept += readable(each for _, each in found)
        if len(found) < wanted:
            break
        after = found[-1][0]
    return kept


def _or_none(kind: str, name: str, of: Callable[[Columns], R], row: Columns) -> R | None:
    try:
        return of(row)
    except ValueError:
        _say_once(kind, name)
        return None


def _say_once(kind: str, name: str) -> None:
    """Not with every list that it is left out of."""
    if (kind, name) in _named:
        return
    if len(_named) >= REMEMBERED:
        _named.clear()
    _named.add((kind, name))
    log.error("%s %s cannot be read by this version of farhand and is left out of lists", kind, name)
