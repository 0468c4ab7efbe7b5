"""The runs of a memory store, with what they say: their journals, and the feeds of their owners.

A commit has its own copies of the runs that it touches, and of what they say. They are kept when it holds, so
there is nothing to take back when it does not.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import count, repeat

from msgspec.structs import replace

from farhand.core.event import TOLD, Entry, Event
from farhand.core.principal import Owner, is_of
from farhand.core.run import Run, RunState
from farhand.store.base import ClaimRun, InsertRun, ParkRun, Why, WriteRun
from farhand.store.memory.feed import Feeds, Saying
from farhand.store.memory.journals import Journals
from farhand.store.memory.threads import ThreadKey, Threads
from farhand.store.memory.undo import Undo
from farhand.store.rules import changed, claimed, is_stray, parked

_TOLD = frozenset(TOLD)


class Runs:
    def __init__(self, undo: Undo, threads: Threads, feeds: Feeds) -> None:
        self.journals = Journals()
        self._undo = undo
        self._threads = threads
        self._feeds = feeds
        self._runs: dict[str, Run] = {}
        self._last_run: dict[ThreadKey, str] = {}

    def __getitem__(self, run_id: str) -> Run:
        return self._runs[run_id]

    def has(self, run_id: str, told: Saying) -> bool:
        """In the commit that is under way."""
        return run_id in told.runs or run_id in self._runs

    def get(self, owner: Owner, run_id: str) -> Run | None:
        run = self._runs.get(run_id)
        return run if run is not None and run.owner == owner else None

    def last(self, key: ThreadKey) -> Run | None:
        run_id = self._last_run.get(key)
        return None if run_id is None else self._runs[run_id]

    def count(self, key: ThreadKey) -> int:
        return sum((run.owner, run.thread_id) == key for run in self._runs.values())

    def count_running(self, tenant: str, subject: str | None) -> int:
        return sum(
            run.state is RunState.RUNNING and is_of(run.owner, tenant, subject) for run in self._runs.values()
        )

    def of_thread(self, key: ThreadKey, told: Saying) -> list[Run]:
        """As they are in the commit that is under way."""
        runs = self._runs | told.runs
        return [run for run in runs.values() if (run.owner, run.thread_id) == key]

    def page(self, owner: Owner, limit: int, after: str | None) -> list[Run]:
        """The newest first."""
        own = [run for run in reversed(self._runs.values()) if run.owner == owner]
        first = next((number for number, run in enumerate(own, 1) if run.run_id == after), 0)
        return own[first : first + limit]

    def stray(self, now: float, skip: Collection[str]) -> list[Run]:
        return [run for run in self._runs.values() if run.run_id not in skip and is_stray(run, now)]

    def insert(self, write: InsertRun, told: Saying) -> Why | None:
        run = write.run
        key = (run.owner, run.thread_id)
        if self.has(run.run_id, told):
            return "exists"
        if key not in self._threads:
            return "missing"
        last = self._last_run.get(key)
        if last is not None and (told.runs.get(last) or self._runs[last]).active:
            return "active"
        self._undo.set(self._last_run, key, run.run_id)
        told.runs[run.run_id] = run
        return None

    def claim(self, write: ClaimRun, told: Saying) -> Why | None:
        run = told.runs.get(write.run_id) or self._runs.get(write.run_id)
        if run is None:
            return "missing"
        after = claimed(run, write, told.at)
        if isinstance(after, str):
            return after
        told.runs[run.run_id] = after
        return None

    def write(self, write: WriteRun, told: Saying) -> Why | None:
        run = told.runs.get(write.run_id) or self._runs.get(write.run_id)
        if run is None:
            return "missing"
        after = changed(run, write, told.at)
        if isinstance(after, str):
            return after
        told.runs[run.run_id] = after
        if write.events:
            self._say(run, write.events, told)
        return None

    def park(self, write: ParkRun, told: Saying) -> Why | None:
        run = told.runs.get(write.run_id) or self._runs.get(write.run_id)
        if run is None:
            return "missing"
        after = parked(run, write)
        if isinstance(after, str):
            return after
        told.runs[run.run_id] = after
        self._say(run, (write.event,), told)
        return None

    def block(self, run_id: str, by: int, told: Saying) -> None:
        """So many more calls, or fewer, have to settle before it can go on."""
        run = told.runs.get(run_id) or self._runs[run_id]
        told.runs[run_id] = replace(run, blockers=run.blockers + by) if by else run

    def keep(self, told: Saying) -> None:
        """The commit holds: what it has written becomes the record."""
        self._runs.update(told.runs)
        for run_id, entries in told.entries.items():
            # a list of its own: readers are told the other one
            self.journals[run_id] += entries
        if told.news:
            self._feeds.keep(told)

    def drop(self, key: ThreadKey, runs: list[Run], told: Saying) -> None:
        """All runs of this thread, which are these."""
        self._undo.drop(self._last_run, key)
        for run in runs:
            self._undo.drop(self._runs, run.run_id)
            self._undo.drop(self.journals, run.run_id)
            told.forget_run(run.run_id)

    def purge(self, ended_before: float) -> None:
        """The journals of runs that ended before then."""
        for run in self._runs.values():
            if run.ended_at is not None and run.ended_at < ended_before:
                self.journals.pop(run.run_id, None)

    def count_old(self, ended_before: float) -> int:
        ended = {run.run_id: run.ended_at for run in self._runs.values() if run.ended_at is not None}
        return sum(at < ended_before and run in self.journals for run, at in ended.items())

    def _say(self, run: Run, events: tuple[Event, ...], told: Saying) -> None:
        entries = told.entries.setdefault(run.run_id, [])
        entries += map(Entry, count(run.last_seq + 1), events, repeat(told.at))
        for event in events:
            if type(event) in _TOLD:
                told.news.append((run.owner, event, run.thread_id, run.run_id))
