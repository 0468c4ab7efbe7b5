"""Where a SQLite store reads: short answers on the spot, long ones in a thread.

A WAL reader never waits for the writer, and a hop to another thread costs several times what a look-up by key
costs; but a long history may be cold on the disk, so that is read and decoded away from the loop.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from farhand.errors import Broken, StoreDown, Unreadable
from farhand.store.sqlite.file import StoreFile

SHORT = 64
"""Rows that are read on the spot."""

ALL = -1
"""What SQLite calls no limit."""

R = TypeVar("R")
Row = TypeVar("Row")


class Reads:
    def __init__(self, file: StoreFile) -> None:
        self._near = file.connect()
        self._far = file.connect()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="farhand-store-reader")

    def one(self, sql: str, key: tuple[object, ...], of: Callable[[Row], R]) -> R | None:
        try:
            row = self._near.execute(sql, key).fetchone()
            return None if row is None else of(row)
        except (sqlite3.Error, ValueError) as error:
            raise _fault(error) from error

    async def many(
        self, sql: str, key: tuple[object, ...], of: Callable[[Row], R], *, limit: int = ALL
    ) -> list[R]:
        """`sql` ends in `LIMIT ?`."""
        few = SHORT if limit == ALL else min(limit, SHORT)
        found = _fetch(self._near, sql, (*key, few), of)
        if len(found) < SHORT or limit == SHORT:
            return found
        return await self.far(sql, (*key, limit), of)

    async def far(self, sql: str, key: tuple[object, ...], of: Callable[[Row], R]) -> list[R]:
        """What is known to be long, or large."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, _fetch, self._far, sql, key, of)

    def close(self) -> None:
        self._thread.shutdown()
        self._near.close()
        self._far.close()


def _fetch(db: sqlite3.Connection, sql: str, values: tuple[object, ...], of: Callable[[Row], R]) -> list[R]:
    try:
        return [of(row) for row in db.execute(sql, values).fetchall()]
    except (sqlite3.Error, ValueError) as error:
        raise _fault(error) from error


def _fault(error: sqlite3.Error | ValueError) -> Broken:
    if isinstance(error, sqlite3.Error):
        return StoreDown("The store could not be read.", hint="Try again in a moment.")
    # no JSON, not of its shape, or with a word that this version lacks
    return Unreadable(f"A stored record cannot be read by this version of farhand: {error}.")
