"""Reads of one kind that are asked for in the same moment go to the database in one statement.

A round trip costs this process as much for one row as for ten. What is asked for while a few of them are
under way waits for the next one, like the commits of a writer. Must not know what is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from farhand.errors import Unreadable
from farhand.store.draft.records import Columns, encode
from farhand.store.postgres.line import Row, Unfit
from farhand.store.postgres.lines import Lines

KEYS = 256
"""In one statement: a flood must not make the first one wait for the last."""
UNDER_WAY = 2
"""Statements of one kind: with more of them, fewer would have company."""

R = TypeVar("R")
_Asked: TypeAlias = tuple[tuple[str | None, ...], asyncio.Future[R]]


class AtOnce(Generic[R]):
    """`sql` takes all keys as one JSON text and answers with one row for each key, in their order."""

    def __init__(self, lines: Lines, sql: str, of: Callable[[Columns], R]) -> None:
        self._lines = lines
        self._sql = sql
        self._of = of
        self._asked: list[_Asked[R]] = []
        self._under_way = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def read(self, *key: str | None) -> R:
        waiter: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._asked.append((key, waiter))
        if len(self._asked) == 1 and self._under_way < UNDER_WAY:
            self._under_way += 1
            # without a group: it ends with the last that is asked for, and whoever asks waits for it
            task = asyncio.create_task(self._serve())  # noqa: TID251
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await waiter

    async def _serve(self) -> None:
        """Begins when this turn of the loop is over, with all that was asked for in it."""
        try:
            while self._asked:
                asked, self._asked = self._asked[:KEYS], self._asked[KEYS:]
                await self._read(asked)
        finally:
            # not when the task is over: who asks between the two would wait for ever
            self._under_way -= 1

    async def _read(self, asked: Sequence[_Asked[R]]) -> None:
        try:
            keys = encode([key for key, _ in asked]).decode()
            found = await self._lines.do(lambda line: line.fetch(self._sql, keys))
        # whatever it was, nobody is left waiting
        except Exception as error:  # noqa: BLE001
            await self._fail(asked, error)
            return
        for (_, waiter), row in zip(asked, found, strict=True):
            self._answer(waiter, row)

    async def _fail(self, asked: Sequence[_Asked[R]], error: Exception) -> None:
        if isinstance(error, ValueError) and len(asked) > 1:
            # a key that no database can hold is the fault of one of them
            for each in asked:
                await self._read([each])
            return
        for key, waiter in asked:
            if isinstance(error, Unfit):
                # nothing is equal to NULL: the answer of the statement for what is not there
                await self._read([((None,) * len(key), waiter)])
            else:
                _fail(waiter, error)

    def _answer(self, waiter: asyncio.Future[R], row: Row) -> None:
        """A record that cannot be read fails whoever asked for it alone."""
        if waiter.done():
            return
        try:
            waiter.set_result(self._of(row))
        except ValueError as error:
            _fail(waiter, Unreadable(f"A stored record cannot be read by this version of farhand: {error}."))


def _fail(waiter: asyncio.Future[R], error: Exception) -> None:
    if not waiter.done():
        waiter.set_exception(error)
