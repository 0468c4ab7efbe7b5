"""Runs blocking work beside the event loop, in threads that may be given up.

The threads are daemons: a function that hangs for ever keeps neither the others nor the end of the process
waiting. (The pool of anyio joins its threads when the interpreter ends.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

AT_ONCE = 256

T = TypeVar("T")

_room: RunVar[CapacityLimiter] = RunVar("farhand.tools.threads")


async def in_thread(work: Callable[[], T]) -> T:
    """What `work` returns; it must not raise. Cancelled, it is left to itself and its room is free again."""
    async with _limiter():
        return await _started(work)


def _limiter() -> CapacityLimiter:
    # one per event loop: a limiter cannot wake tasks of another
    limiter = _room.get(None)
    if limiter is None:
        limiter = CapacityLimiter(AT_ONCE)
        _room.set(limiter)
    return limiter


def _started(work: Callable[[], T]) -> asyncio.Future[T]:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def report(value: T) -> None:
        if not done.cancelled():
            done.set_result(value)

    def body() -> None:
        value = context.run(work)
        # a loop that is closed has nobody left who could want the value
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(report, value)

    Thread(target=body, name="farhand tool", daemon=True).start()
    return done
