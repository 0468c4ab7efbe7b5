"""What every endpoint shares: how often, how many at once, and how often somebody was told no.

Owns the counts of one app. Must not know who signs in or how.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from farhand.clock import monotonic
from farhand.core.settings import Settings
from farhand.errors import FarhandError
from farhand.faces.base import Rate
from farhand.server.rates import Rates
from farhand.server.recheck import HEAD_START
from farhand.server.streams import Streams


class Traffic:
    def __init__(self, settings: Settings) -> None:
        limits = settings.limits
        self.settings = settings
        self.streams = Streams(limits, again_after=settings.patience.recheck * HEAD_START)
        self.rates: Mapping[Rate, Rates] = {
            "results": Rates("results", per_sec=limits.results_per_sec, burst=limits.results_burst),
            "registrations": Rates(
                "registrations",
                per_sec=limits.registrations_per_min / 60,
                burst=limits.registrations_per_min,
            ),
        }
        self.refusals: Counter[tuple[str, str]] = Counter()
        """How often each face refused something, by the code of the reason."""

    def note(self, face: str, error: FarhandError) -> None:
        self.refusals[face, error.code] += 1

    # not the loop's: asking for the loop is a call to the system, and this is asked with every request
    now = staticmethod(monotonic)
