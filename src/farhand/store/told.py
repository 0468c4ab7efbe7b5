"""One commit as watchers hear of it, once it is durable: those of this process and those of others."""

from __future__ import annotations

from msgspec import Struct, field

from farhand.core.call import Call
from farhand.core.event import Entry
from farhand.core.principal import Owner
from farhand.core.run import Run


class Told(Struct):
    """`at` is the store's time of the commit. `runs` has every run that was touched; only one that said
    something has entries. A call that was opened is among `calls` only if a registered client is asked."""

    at: float
    calls: list[Call] = field(default_factory=list)
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    feeds: set[Owner] = field(default_factory=set)
    claimed: list[str] = field(default_factory=list)
    """Runs that somebody held, and may still believe so."""
    clients: set[Owner] = field(default_factory=set)
    """Owners whose registrations changed."""
    begun: bool = False
    """Whether a thread was inserted that was not there before."""

    def forget_run(self, run_id: str) -> None:
        self.runs.pop(run_id, None)
        self.entries.pop(run_id, None)
