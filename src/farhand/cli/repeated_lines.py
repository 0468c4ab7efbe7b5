"""Keeps peers from filling the log: what uvicorn warns of for each bad request is said once a minute."""

from __future__ import annotations

import logging
from math import inf

AGAIN_AFTER_SEC = 60.0


class OncePerMinute(logging.Filter):
    """Lets a warning pass unless the same one has passed in the last minute. Errors always pass."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        text = record.getMessage()
        if record.created - self._passed_at.get(text, -inf) < AGAIN_AFTER_SEC:
            return False
        self._passed_at[text] = record.created
        return True


_FILTER = OncePerMinute()


def quieten_uvicorn() -> None:
    """Its warnings are few and always the same: full, not HTTP, an upgrade to something else."""
    logging.getLogger("uvicorn.error").addFilter(_FILTER)
