"""Runs the lifespans of faces: entered when the app starts, left when it stops.

Each in a task of its own: a task group has to be left by the task that entered it, and an app may be started
by a request and stopped by another task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from farhand.faces.base import Face

log = logging.getLogger("farhand.server")


@asynccontextmanager
async def face_lifespans(faces: Iterable[Face]) -> AsyncIterator[None]:
    """Raises what a face raised on entering; a later crash is logged and does not affect the others."""
    lifespans = [_Lifespan(face) for face in faces if face.serving is not None]
    try:
        for lifespan in lifespans:
            await lifespan.begin()
        yield
    finally:
        for lifespan in reversed(lifespans):
            await lifespan.end()


class _Lifespan:
    def __init__(self, face: Face) -> None:
        self._face = face
        self._entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        # without a task group: it runs as long as the app
        self._task = asyncio.create_task(self._run())  # noqa: TID251
        await self._entered

    async def end(self) -> None:
        if self._task is None:
            return
        self._is_over.set()
        if not self._entered.done():
            self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        assert self._face.serving is not None, "only those that have one"
        try:
            async with self._face.serving():
                self._entered.set_result(None)
                await self._is_over.wait()
        # whatever a face raises must not stop the others
        except Exception as error:
            if self._entered.done():
                log.exception("the background tasks of face %s crashed", self._face.name)
            else:
                self._entered.set_exception(error)
