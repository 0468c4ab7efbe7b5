"""Keeps background work running: whatever it raises, it is started again.

Owns what is logged of it. Must not know what the work is.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable

from farhand.clock import monotonic
from farhand.errors import Broken

SAME_FAILURE_SEC = 15.0
"""A failure that follows another one sooner is logged for debugging only: the store may be down for hours."""


async def supervise(work: Callable[[], Awaitable[None]], log: logging.Logger, *, pause_sec: float) -> None:
    """Runs the work until it returns or is cancelled. After an error, it starts again in `pause_sec`."""
    failed_at = -math.inf
    while True:
        try:
            return await work()
        except Broken as error:
            now = monotonic()
            level = logging.WARNING if now - failed_at > SAME_FAILURE_SEC else logging.DEBUG
            failed_at = now
            log.log(level, "background task failed; retrying: %s", error)
        # an error in one task must stop neither it, nor the others, nor the server
        except Exception:
            log.exception("background task crashed; restarting it")
        await asyncio.sleep(pause_sec)
