"""Ends the streams of an app when its host process receives a signal to stop.

Servers such as uvicorn shut an app down only after all its streams have ended, and a held stream ends only
when the app drains. So the app handles the signal first, then calls the previous handler. Owns the handlers
it installed; must not know what draining does.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from types import FrameType
from typing import TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], object]

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class HostSignals:
    def __init__(self, drain: Callable[[], Awaitable[None]]) -> None:
        self._drain = drain
        self._asked = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._installed: dict[signal.Signals, tuple[Handler, Handler]] = {}
        """By signal: our handler and the previous one."""

    def open(self) -> None:
        """Only in the main thread, and only where the server has installed handlers of its own.

        The default action leaves no time to drain, and Python's KeyboardInterrupt may not stop the process.
        """
        if self._watching is not None or threading.current_thread() is not threading.main_thread():
            return
        # a new one, since the app may be restarted in another event loop
        self._asked = asyncio.Event()
        for number in SIGNALS:
            before = signal.getsignal(number)
            if callable(before) and before is not signal.default_int_handler:
                self._install(number, before)
        # without a task group: it runs as long as the app
        self._watching = asyncio.create_task(self._watch())  # noqa: TID251

    async def close(self) -> None:
        """Restores the previous handlers. Waits for a drain in progress, which has its own time limit."""
        for number, (ours, before) in self._installed.items():
            # a handler that was installed later stays; ours only calls the previous one from now on
            if signal.getsignal(number) is ours:
                signal.signal(number, before)
        self._installed = {}
        watching, self._watching = self._watching, None
        if watching is None:
            return
        if not self._asked.is_set():
            watching.cancel()
        await asyncio.wait([watching])

    def _install(self, number: signal.Signals, before: Handler) -> None:
        ours = partial(self._handle, asyncio.get_running_loop(), before)
        signal.signal(number, ours)
        self._installed[number] = (ours, before)

    def _handle(
        self, loop: asyncio.AbstractEventLoop, before: Handler, number: int, frame: FrameType | None
    ) -> None:
        if self._watching is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._asked.set)
        before(number, frame)

    async def _watch(self) -> None:
        await self._asked.wait()
        await self._drain()
