"""The connections that read: a few, shared, each used by one reader at a time.

One that was idle while the database restarted is found to be dead only when it is used: then all idle ones
are given up and the read is tried once more on a new one. While the database cannot be reached, readers are
told so at once instead of each waiting for its own connection to fail. Where it has no room for another one,
they share those that there are. A read has one patience for all of it: for its turn, a connection and the
answer.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from farhand.errors import StoreDown, Unreadable
from farhand.store.draft.records import Columns
from farhand.store.postgres.line import Declined, Full, Line, Lost, Raced, Unfit, connect, is_writable
from farhand.store.postgres.place import Place

log = logging.getLogger("farhand.store")

AT_MOST = 8
READ_SEC = 5.0
"""How long a reader waits: for its turn, then for an answer, on as many connections as that takes."""
AGAIN_SEC = 0.25
"""After how long a database that could not be reached is tried again."""
FULL_SEC = 1.0
"""After how long a database that had no room for another connection is asked for one again."""
QUIET_SEC = 10.0
"""Trouble that comes back sooner is the same trouble: some reads fail and others do not."""
TOGETHER_SEC = 60.0
"""The same for several statements: each has its own patience, too."""
TRIES = 5

BY_INDEX = {"enable_seqscan": "off"}
"""Whatever is read has an index. A plan that is kept must not walk through a table because it was small."""

R = TypeVar("R")


class Lines:
    def __init__(self, place: Place, *, at_most: int = AT_MOST) -> None:
        self._place = place
        self._idle: list[Line] = []
        self._out = 0
        """Those that are not idle: in use, or being made or looked at."""
        self._came_back = asyncio.Event()
        self._full_until = -math.inf
        self._turn = asyncio.Semaphore(at_most)
        self._down_until = 0.0
        self._closed = False
        self._is_silent = False
        """Whether the last that was asked of the database had no answer."""
        self._is_asking = False
        self._is_down = False
        self._failed_at = 0.0

    async def one(self, sql: str, key: tuple[object, ...], of: Callable[[Columns], R]) -> R | None:
        found = await self.many(sql, key, of)
        return found[0] if found else None

    async def many(self, sql: str, key: tuple[object, ...], of: Callable[[Columns], R]) -> list[R]:
        try:
            found = await self.do(lambda line: line.fetch(sql, *key))
        except Unfit:
            return []
        try:
            return [of(row) for row in found]
        except ValueError as error:
            # no JSON, not of its shape, or with a word that this version lacks
            raise Unreadable(
                f"A stored record cannot be read by this version of farhand: {error}."
            ) from error

    async def do(self, work: Callable[[Line], Awaitable[R]]) -> R:
        """Work that may be done twice: a read, or a statement that changes nothing the second time."""
        return await self._do(work, READ_SEC)

    async def check(self) -> None:
        """Raises `StoreDown` unless the database can be read and takes writes."""
        await self.do(_check_writable)

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

        return await self._do(together, TOGETHER_SEC)

    async def close(self) -> None:
        self._closed = True
        for line in self._idle:
            await line.close()
        self._idle.clear()

    async def _do(self, work: Callable[[Line], Awaitable[R]], seconds: float) -> R:
        now = asyncio.get_running_loop().time()
        await self._get_turn()
        try:
            return await self._try(work, now + seconds)
        finally:
            self._turn.release()

    async def _try(self, work: Callable[[Line], Awaitable[R]], until: float) -> R:
        for _ in range(TRIES):
            line, is_fresh = await self._get_line(until)
            line.until = until
            try:
                done = await work(line)
                self._went_well()
                return done
            except Raced:
                continue
            except Declined as error:
                raise self._down(error) from error
            except Lost as error:
                self._forget_idle()
                if line.is_late:
                    self._fell_silent()
                if is_fresh or line.is_late:
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
            async with asyncio.timeout(READ_SEC):
                await self._turn.acquire()
        except TimeoutError as error:
            raise StoreDown("The store is too busy to be read.", hint="Try again in a moment.") from error

    async def _get_line(self, until: float) -> tuple[Line, bool]:
        """And whether it is new. With none of ours to wait for, the database is asked for a while: a
        connection that was just closed has its place there for a moment longer."""
        now = asyncio.get_running_loop().time
        give_up_at = min(until, now() + FULL_SEC)
        while True:
            try:
                return await self._find_line(until)
            except Full as error:
                if not self._out and now() >= give_up_at:
                    raise self._down(error) from error
            if self._out:
                await self._wait_for_line(until)
            else:
                await asyncio.sleep(AGAIN_SEC)

    async def _find_line(self, until: float) -> tuple[Line, bool]:
        """`Full` if none is idle and there is no room for another."""
        self._out += 1
        try:
            line = await self._idle_one()
            if line is not None:
                return line, False
            if self._out > 1 and asyncio.get_running_loop().time() < self._full_until:
                raise Full("the database has no room for more connections")
            return await self._connect(until), True
        except BaseException:
            self._take_back()
            raise

    async def _wait_for_line(self, until: float) -> None:
        self._came_back.clear()
        try:
            async with asyncio.timeout_at(until):
                await self._came_back.wait()
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

    async def _connect(self, until: float = math.inf) -> Line:
        """While the database is silent one asks for all: the others need not find out for themselves."""
        left = until - asyncio.get_running_loop().time()
        if asyncio.get_running_loop().time() < self._down_until or self._is_asking or left <= 0:
            raise StoreDown("The store does not answer.", hint="Try again in a moment.")
        self._is_asking = self._is_silent
        try:
            line = await connect(self._place, settings=BY_INDEX, seconds=left)
        except Full as error:
            self._found_full(error)
            raise
        except (Lost, ValueError) as error:
            self._fell_silent()
            raise self._down(error) from error
        finally:
            self._is_asking = False
        self._is_silent = False
        return line

    def _found_full(self, error: Full) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._full_until > QUIET_SEC:
            log.warning(
                "the database has no room for more connections, so reads wait for each other: %s", error
            )
        self._full_until = now + FULL_SEC

    def _fell_silent(self) -> None:
        self._is_silent = True
        self._down_until = asyncio.get_running_loop().time() + AGAIN_SEC

    def _keep(self, line: Line) -> None:
        if self._closed or line.is_closed:
            line.cut()
        else:
            line.until = math.inf
            self._idle.append(line)
        self._take_back()

    def _take_back(self) -> None:
        self._out -= 1
        self._came_back.set()

    def _forget_idle(self) -> None:
        for line in self._idle:
            line.cut()
        self._idle.clear()

    def _went_well(self) -> None:
        if self._is_down and asyncio.get_running_loop().time() - self._failed_at > QUIET_SEC:
            self._is_down = False

    def _down(self, error: Exception) -> StoreDown:
        """Said once, until all has gone well for a while."""
        log.log(logging.DEBUG if self._is_down else logging.WARNING, "the store could not be read: %s", error)
        self._is_down = True
        self._failed_at = asyncio.get_running_loop().time()
        return StoreDown("The store could not be read.", hint="Try again in a moment.")


async def _check_writable(line: Line) -> None:
    """`Lost` if it is not: another connection may find the database that took over."""
    if not await is_writable(line):
        line.cut()
        raise Lost("the database takes no writes; it is a replica, or was made read-only")
