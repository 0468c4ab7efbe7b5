"""The runs of a memory store, with what they say: their journals, and the feeds of their owners."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from farhand.core.event import Event
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.store.base import ClaimRun, InsertRun, ParkRun, Why, WriteRun
from farhand.store.memory.feed import Feeds
from farhand.store.memory.journals import Journals
from farhand.store.memory.threads import ThreadKey, Threads
from farhand.store.memory.undo import Undo
from farhand.store.rules import changed, claimed, is_stray, parked
from farhand.store.told import Told


class Runs:
    def __init__(self, undo: Undo, threads: Threads, feeds: Feeds) -> None:
        self.journals = Journals(undo)
        self._undo = undo
        self._threads = threads
        self._feeds = feeds
        self._runs: dict[str, Run] = {}
        self._last_run: dict[ThreadKey, str] = {}

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._runs

    def __getitem__(self, run_id: str) -> Run:
        return self._runs[run_id]

    def get(self, owner: Owner, run_id: str) -> Run | None:
        run = self._runs.get(run_id)
        return run if run is not None and run.owner == owner else None

    def last(self, key: ThreadKey) -> Run | None:
        run_id = self._last_run.get(key)
        return None if run_id is None else self._runs[run_id]

    def of_thread(self, key: ThreadKey) -> list[Run]:
        return [run for run in self._runs.values() if (run.owner, run.thread_id) == key]

    def page(self, owner: Owner, limit: int, after: str | None) -> list[Run]:
        """The newest first."""
        own = [run for run in reversed(self._runs.values()) if run.owner == owner]
        first = next((number for number, run in enumerate(own, 1) if run.run_id == after), 0)
        return own[first : first + limit]

    def stray(self, now: float, skip: Collection[str]) -> list[Run]:
        return [run for run in self._runs.values() if run.run_id not in skip and is_stray(run, now)]

    def insert(self, write: InsertRun, told: Told) -> Why | None:
        run = write.run
        key = (run.owner, run.thread_id)
        if run.run_id in self._runs:
            return "exists"
        if key not in self._threads:
            return "missing"
        last = self._last_run.get(key)
        if last is not None and self._runs[last].active:
            return "active"
        self._undo.set(self._last_run, key, run.run_id)
        self._put(run, told)
        return None

    def claim(self, write: ClaimRun, told: Told) -> Why | None:
        run = self._runs.get(write.run_id)
        if run is None:
            return "missing"
        after = claimed(run, write, told.at)
        if isinstance(after, str):
            return after
        self._put(after, told)
        return None

    def write(self, write: WriteRun, told: Told) -> Why | None:
        run = self._runs.get(write.run_id)
        if run is None:
            return "missing"
        after = changed(run, write, told.at)
        if isinstance(after, str):
            return after
        self._append(run, write.events, told)
        self._put(after, told)
        return None

    def park(self, write: ParkRun, told: Told) -> Why | None:
        run = self._runs.get(write.run_id)
        if run is None:
            return "missing"
        after = parked(run, write)
        if isinstance(after, str):
            return after
        self._append(run, (write.event,), told)
        self._put(after, told)
        return None

    def block(self, run_id: str | None, by: int, told: Told) -> None:
        """So many more calls, or fewer, have to settle before it can go on."""
        if run_id is None:
            return
        run = self._runs[run_id]
        self._put(replace(run, blockers=run.blockers + by) if by else run, told)

    def drop(self, key: ThreadKey, runs: list[Run], told: Told) -> None:
        """All runs of this thread, which are these."""
        self._undo.drop(self._last_run, key)
        for run in runs:
            self._undo.drop(self._runs, run.run_id)
            self.journals.drop(run.run_id)
            told.forget_run(run.run_id)

    def purge(self, ended_before: float) -> None:
        """The journals of runs that ended before then."""
        for run in self._runs.values():
            if run.ended_at is not None and run.ended_at < ended_before:
                self.journals.purge(run.run_id)

    def count_old(self, ended_before: float) -> int:
        ended = {run.run_id: run.ended_at for run in self._runs.values() if run.ended_at is not None}
        return sum(at < ended_before and run in self.journals for run, at in ended.items())

    def _append(self, run: Run, events: tuple[Event, ...], told: Told) -> None:
        if not events:
            return
        added = self.journals.append(run, events, told.at)
        if self._feeds.tell_run(run, events, told.at):
            told.feeds.add(run.owner)
        told.entries.setdefault(run.run_id, []).extend(added)

    def _put(self, run: Run, told: Told) -> None:
        self._undo.set(self._runs, run.run_id, run)
        told.runs[run.run_id] = run
