"""Asks again, for whatever stays open, whether its sign-in still holds; cuts what does not.

A hook that fails is a no: a stream that was cut can be resumed, one that was not can't be called back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from farhand.server.door import Door
from farhand.server.streams import Open, Streams

log = logging.getLogger("farhand.door")

AT_ONCE = 256
"""Questions to the hook at the same time: all streams at once would be a flood elsewhere."""
HEAD_START = 0.8
"""Of the promised time, after which the question is asked: the rest is for the answer."""
PAUSE_SEC = 1.0


class Recheck:
    def __init__(self, door: Door, streams: Streams, now: Callable[[], float]) -> None:
        self._door = door
        self._streams = streams
        self._now = now
        self._serving: asyncio.Task[None] | None = None

    def open(self) -> None:
        # the one task without a group: it owns the group that the questions live in
        self._serving = asyncio.create_task(self._serve())  # noqa: TID251

    async def close(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])

    async def ask_all_due(self) -> None:
        """One round: everything that is due by now, a few at a time."""
        due = self._streams.due(self._now())
        for start in range(0, len(due), AT_ONCE):
            async with asyncio.TaskGroup() as group:
                for opened in due[start : start + AT_ONCE]:
                    group.create_task(self._ask(opened))

    async def _serve(self) -> None:
        while True:
            await self.ask_all_due()
            due = self._streams.next_due()
            # while nothing is open, whatever opens next is not due before this pause is over
            pause = min(PAUSE_SEC, self._streams.again_after / 4)
            wait = pause if due is None else min(pause, due - self._now())
            await asyncio.sleep(max(0.005, wait))

    async def _ask(self, opened: Open) -> None:
        if await self._door.still_admits(opened.scope, opened.needs, opened.principal):
            return
        if not opened.is_over:
            log.info("a sign-in ended: its open %s is closed", opened.scope["type"])
            await opened.cut()
