"""A limit of time for something that many tasks do, with one timer for all of them.

Most of what is limited takes no time at all, and a timer for each would cost more than the work. Must not
know what is limited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


class TimeLimit:
    """May be used in several loops in turn, never in two at once."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # Any: what a task returns does not matter here
        self._since: dict[asyncio.Task[Any], float] = {}
        """When each task started, oldest first."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, work: Awaitable[T]) -> T:
        """The result of the work; it is cancelled, and `TimeoutError` raised, if it takes too long."""
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        self._begin(task)
        try:
            return await work
        except asyncio.CancelledError:
            # cancelled by somebody else, or by both
            if task in self._since or task.uncancel():
                raise
            raise TimeoutError from None
        finally:
            self._since.pop(task, None)

    def _begin(self, task: asyncio.Task[Any]) -> None:
        loop = task.get_loop()
        self._since[task] = loop.time()
        if self._timer is None or self._loop is not loop:
            self._loop, self._timer = loop, loop.call_later(self.seconds, self._check, loop)

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        for task, since in list(self._since.items()):
            left = since + self.seconds - loop.time()
            if left > 0:
                self._timer = loop.call_later(left, self._check, loop)
                return
            del self._since[task]
            task.cancel()
