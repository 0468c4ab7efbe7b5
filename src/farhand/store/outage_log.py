"""Logs an outage of a store once, though each request may fail, and once that it is over.

Must not know what has failed.
"""

from __future__ import annotations

import logging

from farhand.clock import monotonic

QUIET_SEC = 10.0
"""An outage is over after so long without a failure: on a full disk, some small writes succeed."""


class OutageLog:
    def __init__(self, log: logging.Logger, recovered: str) -> None:
        """`recovered` is logged with the first success after the outage."""
        self._log = log
        self._recovered = recovered
        self._failed_at: float | None = None
        """The last failure of an outage."""

    def note_failure(self, message: str, *args: object, trace: Exception | None = None) -> None:
        """An unexpected error, with a `trace`, is always logged."""
        is_known = self._failed_at is not None and trace is None
        self._failed_at = monotonic()
        self._log.log(logging.DEBUG if is_known else logging.WARNING, message, *args, exc_info=trace)

    def note_success(self) -> None:
        if self._failed_at is not None and monotonic() - self._failed_at > QUIET_SEC:
            self._failed_at = None
            # at the level of the failure, so that both are shown or neither
            self._log.warning(self._recovered)
