"""The journals of a memory store: each run's events, numbered without gaps."""

from __future__ import annotations

from farhand.core.event import Entry
from farhand.store.memory.undo import Undo


class Journals:
    def __init__(self, undo: Undo) -> None:
        self._undo = undo
        self._entries: dict[str, list[Entry]] = {}

    def keep(self, said: dict[str, list[Entry]]) -> None:
        """What runs have said in a commit that holds, of each in its order."""
        for run_id, entries in said.items():
            journal = self._entries.get(run_id)
            if journal is None:
                # a list of its own: readers are told the other one
                self._entries[run_id] = entries[:]
            else:
                journal += entries

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
