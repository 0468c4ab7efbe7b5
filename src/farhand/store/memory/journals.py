"""The journals of a memory store: each run's events, numbered without gaps."""

from __future__ import annotations

from collections import defaultdict

from farhand.core.event import Entry


class Journals(defaultdict[str, list[Entry]]):
    """By run; of those that said something, until they are purged."""

    def __init__(self) -> None:
        super().__init__(list)

    def read(self, run_id: str, after: int, limit: int) -> list[Entry]:
        journal = self.get(run_id, [])
        # after a purge the journal begins with a later event than the first
        skipped = journal[0].seq - 1 if journal else 0
        return journal[max(0, after - skipped) :][:limit]
