"""The journals of a memory store: each run's events, numbered without gaps."""

from __future__ import annotations

from farhand.core.event import Entry, Event
from farhand.core.run import Run
from farhand.store.memory.undo import Undo


class Journals:
    def __init__(self, undo: Undo) -> None:
        self._undo = undo
        self._entries: dict[str, list[Entry]] = {}

    def append(self, run: Run, events: tuple[Event, ...], now: float) -> list[Entry]:
        added = [Entry(seq, event, now) for seq, event in enumerate(events, run.last_seq + 1)]
        self._undo.extend(self._entries.setdefault(run.run_id, []), added)
        return added

    def read(self, run_id: str, after: int, limit: int) -> list[Entry]:
        journal = self._entries.get(run_id, [])
        # after a purge the journal begins with a later event than the first
        skipped = journal[0].seq - 1 if journal else 0
        return journal[max(0, after - skipped) :][:limit]

    def drop(self, run_id: str) -> None:
        self._undo.drop(self._entries, run_id)

    def __contains__(self, run_id: str) -> bool:
        return bool(self._entries.get(run_id))

    def purge(self, run_id: str) -> None:
        self._entries.pop(run_id, None)
