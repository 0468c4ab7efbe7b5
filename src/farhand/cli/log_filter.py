"""Keeps peers from filling the log: uvicorn's warnings about bad requests pass once a minute."""

from __future__ import annotations

import logging
from math import inf

REPEAT_AFTER_SEC = 60.0


class OncePerMinute(logging.Filter):
    """Drops a warning if the same one passed within the last minute. Errors always pass."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        text = record.getMessage()
        if record.created - self._passed_at.get(text, -inf) < REPEAT_AFTER_SEC:
            return False
        self._passed_at[text] = record.created
        return True


_FILTER = OncePerMinute()


def limit_uvicorn_warnings() -> None:
    """Its few warnings are always the same: too many connections, not HTTP, an unsupported upgrade."""
    logging.getLogger("uvicorn.error").addFilter(_FILTER)
