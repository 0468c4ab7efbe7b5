"""Re-authenticates open streams and sockets periodically, and aborts those that are no longer allowed.

A failing hook counts as a refusal: a stream that was aborted can be resumed, but data that was sent to the
wrong reader cannot be taken back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from farhand.server.auth.authenticator import Authenticator
from farhand.server.streams import OpenStream, StreamRegistry

log = logging.getLogger("farhand.auth")

AT_ONCE = 256
"""Concurrent calls of the hook: all streams at once could overload the service behind it."""
HEAD_START = 0.8
"""The fraction of the promised time after which the hook is called: the rest is for its answer."""
PAUSE_SEC = 1.0


class Reauthenticator:
    def __init__(self, auth: Authenticator, streams: StreamRegistry, now: Callable[[], float]) -> None:
        self._auth = auth
        self._streams = streams
        self._now = now
        self._serving: asyncio.Task[None] | None = None

    def open(self) -> None:
        # without a task group: it runs as long as the app and owns the groups of its checks
        self._serving = asyncio.create_task(self._serve())  # noqa: TID251

    async def close(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])

    async def check_due(self) -> None:
        """One round: checks everything that is due, in batches."""
        due = self._streams.due(self._now())
        for start in range(0, len(due), AT_ONCE):
            async with asyncio.TaskGroup() as group:
                for opened in due[start : start + AT_ONCE]:
                    group.create_task(self._check(opened))

    async def _serve(self) -> None:
        while True:
            await self.check_due()
            due = self._streams.next_due()
            # while nothing is open: whatever opens next is not due before this pause is over
            pause = min(PAUSE_SEC, self._streams.again_after / 4)
            wait = pause if due is None else min(pause, due - self._now())
            await asyncio.sleep(max(0.005, wait))

    async def _check(self, opened: OpenStream) -> None:
        try:
            await self._cut_if_revoked(opened)
        # one stream, or a mistake of ours, must not end the checks of all others
        except Exception:
            log.exception("could not re-authenticate an open stream; it is checked again later")

    async def _cut_if_revoked(self, opened: OpenStream) -> None:
        if opened.is_over:
            # it ended while others were checked, and its request was freed
            return
        if await self._auth.still_accepts(opened.scope, opened.needs, opened.principal):
            return
        if not opened.is_over:
            log.info("a credential is no longer valid: closing its open %s", opened.scope["type"])
            await opened.cut()
