"""State that all endpoints of an app share: limits of time and rate, open streams, and counts of refusals.

Must not know how callers are authenticated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from farhand.clock import monotonic
from farhand.core.settings import Settings
from farhand.errors import FarhandError
from farhand.faces.base import RateLimit, TimeLimits
from farhand.server.rate_limiter import RateLimiter
from farhand.server.reauth import HEAD_START
from farhand.server.streams import StreamRegistry
from farhand.wire.time_limit import TimeLimit


class AppState:
    def __init__(self, settings: Settings) -> None:
        limits = settings.limits
        self.settings = settings
        self.times = TimeLimits(
            body=TimeLimit(limits.body_within_sec),
            stall=TimeLimit(limits.stalled_after_sec),
            keep_alive=settings.timeouts.keep_alive,
        )
        self.streams = StreamRegistry(limits, again_after=settings.timeouts.recheck * HEAD_START)
        self.rates: Mapping[RateLimit, RateLimiter] = {
            "results": RateLimiter("results", per_sec=limits.results_per_sec, burst=limits.results_burst),
            "registrations": RateLimiter(
                "registrations",
                per_sec=limits.registrations_per_min / 60,
                burst=limits.registrations_per_min,
            ),
        }
        self.refusals: Counter[tuple[str, str]] = Counter()
        """How often each face refused something, by the code of the reason."""

    def count_refusal(self, face: str, error: FarhandError) -> None:
        self.refusals[face, error.code] += 1

    # not the loop's clock: this is read with every request, and getting the running loop costs more
    now = staticmethod(monotonic)
