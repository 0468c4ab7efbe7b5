"""The connections that read: a few, shared, each used by one reader at a time.

One that was idle while the database restarted is found to be dead only when it is used: then all idle ones
are given up and the read is tried once more on a new one. While the database cannot be reached, readers are
told so at once instead of each waiting for its own connection to fail.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from farhand.errors import StoreDown, Unreadable
from farhand.store.draft.records import Columns
from farhand.store.postgres.line import Declined, Line, Lost, Raced, connect
from farhand.store.postgres.place import Place

log = logging.getLogger("farhand.store")

AT_MOST = 8
TURN_SEC = 5.0
"""How long a reader waits for its turn."""
AGAIN_SEC = 0.25
"""After how long a database that could not be reached is tried again."""
TRIES = 5

R = TypeVar("R")


class Lines:
    def __init__(self, place: Place, *, at_most: int = AT_MOST) -> None:
        self._place = place
        self._idle: list[Line] = []
        self._turn = asyncio.Semaphore(at_most)
        self._down_until = 0.0
        self._closed = False
        self._is_down = False

    async def one(self, sql: str, key: tuple[object, ...], of: Callable[[Columns], R]) -> R | None:
        found = await self.many(sql, key, of)
        return found[0] if found else None

    async def many(self, sql: str, key: tuple[object, ...], of: Callable[[Columns], R]) -> list[R]:
        found = await self.do(lambda line: line.fetch(sql, *key))
        try:
            return [of(row) for row in found]
        except ValueError as error:
            # no JSON, not of its shape, or with a word that this version lacks
            raise Unreadable(
                f"A stored record cannot be read by this version of farhand: {error}."
            ) from error

    async def do(self, work: Callable[[Line], Awaitable[R]]) -> R:
        """Work that may be done twice: a read, or a statement that changes nothing the second time."""
        await self._get_turn()
        try:
            return await self._try(work)
        finally:
            self._turn.release()

    async def transact(self, work: Callable[[Line], Awaitable[R]]) -> R:
        """The same for several statements that belong together."""

        async def together(line: Line) -> R:
            await line.run("BEGIN")
            try:
                done = await work(line)
                await line.run("COMMIT")
            except BaseException:
                # the connection goes with the half of the work
                line.cut()
                raise
            return done

        return await self.do(together)

    async def close(self) -> None:
        self._closed = True
        for line in self._idle:
            await line.close()
        self._idle.clear()

    async def _try(self, work: Callable[[Line], Awaitable[R]]) -> R:
        for _ in range(TRIES):
            line = await self._idle_one()
            is_fresh = line is None
            line = line or await self._connect()
            try:
                done = await work(line)
                self._is_down = False
                return done
            except Raced:
                continue
            except Declined as error:
                raise self._down(error) from error
            except Lost as error:
                self._forget_idle()
                if is_fresh:
                    raise self._down(error) from error
            finally:
                self._keep(line)
        raise StoreDown("The store is too busy.", hint="Try again in a moment.")

    async def _get_turn(self) -> None:
        if self._closed:
            raise StoreDown("The store is closed.")
        if not self._turn.locked():
            await self._turn.acquire()
            return
        try:
            async with asyncio.timeout(TURN_SEC):
                await self._turn.acquire()
        except TimeoutError as error:
            raise StoreDown("The store is too busy to be read.", hint="Try again in a moment.") from error

    async def _idle_one(self) -> Line | None:
        """The one that was used last, if it is still there: else none of them may be."""
        if not self._idle:
            return None
        line = self._idle.pop()
        if await line.is_alive():
            return line
        self._forget_idle()
        return None

    async def _connect(self) -> Line:
        now = asyncio.get_running_loop().time
        if now() < self._down_until:
            raise StoreDown("The store does not answer.", hint="Try again in a moment.")
        try:
            return await connect(self._place)
        except (Lost, ValueError) as error:
            self._down_until = now() + AGAIN_SEC
            raise self._down(error) from error

    def _keep(self, line: Line) -> None:
        if self._closed or line.is_closed:
            line.cut()
        else:
            self._idle.append(line)

    def _forget_idle(self) -> None:
        for line in self._idle:
            line.cut()
        self._idle.clear()

    def _down(self, error: Exception) -> StoreDown:
        """Said once, until something could be read again."""
        log.log(logging.DEBUG if self._is_down else logging.WARNING, "the store could not be read: %s", error)
        self._is_down = True
        return StoreDown("The store could not be read.", hint="Try again in a moment.")
