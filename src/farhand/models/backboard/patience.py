"""How often Backboard is asked again when it is busy: its library never does so by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from farhand.models.backboard.client import WHO, Busy
from farhand.models.delays import LONGEST_WAIT_SEC, busy, tell_delay

T = TypeVar("T")

log = logging.getLogger("farhand.models")

MAX_RETRIES = 2
_FIRST_WAIT_SEC = 0.5


async def patiently(ask: Callable[[], Awaitable[T]], max_retries: int) -> T:
    """What comes of asking; after so many tries, or if it wants to be left alone for long, its fault."""
    tried = 0
    while True:
        try:
            return await ask()
        except Busy as refused:
            asked_for = refused.wait_sec
            wait = _FIRST_WAIT_SEC * 2**tried if asked_for is None else asked_for
            if tried >= max_retries or wait > LONGEST_WAIT_SEC:
                raise refused.fault from refused
            tell_delay(_told(refused, asked_for))
        tried += 1
        await asyncio.sleep(wait)


def _told(refused: Busy, asked_for: float | None) -> str:
    if refused.status is None:
        log.info("%s could not be reached; it is asked again", WHO)
        return "The model could not be reached; it is asked again."
    log.info("%s is busy (%d); it is asked again", WHO, refused.status)
    return busy(asked_for)
