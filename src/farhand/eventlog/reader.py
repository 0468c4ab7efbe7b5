"""The events of one run, from any position: first what is stored, then what is published, without a gap.

A reader subscribes before it reads, so nothing falls in between; it looks at the log when it was told nothing
for a while, or when its queue overflowed, so a lost notification costs at most one look.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from farhand.core.log import Event, RunStarted
from farhand.core.principal import Owner
from farhand.core.state import RunProgress, ThreadState
from farhand.eventlog.pubsub import Published, Subscription
from farhand.eventlog.threads import Threads

RECHECK_SEC = 2.0


class NumberedEvent(Struct, frozen=True, gc=False):
    """An event of a run. The numbers have no gaps."""

    seq: int
    at: float
    event: Event


class RunView(Struct, frozen=True, gc=False):
    """Where a run is in its thread: after which version its rows begin, and whether it goes on."""

    since: int
    last_seq: int
    is_active: bool


class LogReader:
    """Made by `reading`."""

    def __init__(
        self, threads: Threads, key: tuple[Owner, str], run_id: str, after: int, news: Subscription
    ) -> None:
        self.seq = after
        """The number of the last event that was given out."""
        self._threads = threads
        self._owner, self._thread_id = key
        self._run_id = run_id
        self._news = news
        self._version = -1
        """The last row that was looked at; none yet."""
        self._is_behind = True

    async def next(self, seconds: float = RECHECK_SEC) -> list[NumberedEvent] | None:
        """The next events; none if nothing happened for so long; None when the run has ended and all of it
        was given out."""
        if not self._is_behind:
            is_told = await self._news.wait(seconds)
            self._is_behind = not is_told or self._news.overflowed
            news = self._news.take()
            if not self._is_behind:
                return self._follow(news)
        return await self._look()

    async def _look(self) -> list[NumberedEvent] | None:
        self._news.overflowed = False
        self._news.take()
        run = await self._threads.read(self._owner, self._thread_id, self._view)
        if run is None:
            return None
        start = run.since if self._version < 0 else self._version
        rows = await self._threads.rows(self._owner, self._thread_id, after=start)
        self._is_behind = False
        events = self._follow(rows)
        return events or (None if self._is_over(run) else [])

    def _is_over(self, run: RunView) -> bool:
        return not run.is_active and self.seq >= run.last_seq

    def _view(self, thread: ThreadState) -> RunView | None:
        run: RunProgress | None = thread.run
        if run is None or run.run_id != self._run_id:
            return None
        return RunView(run.since, run.seq, run.is_active)

    def _follow(self, rows: list[Published]) -> list[NumberedEvent]:
        """What of these rows is new to this reader; a hole among them is looked up in the log."""
        fresh: list[NumberedEvent] = []
        for row in rows:
            if self._version >= 0 and row.version <= self._version:
                continue
            if self._version >= 0 and row.version != self._version + 1:
                self._is_behind = True
                break
            self._version = row.version
            fresh += [each for each in events_in(row, self._run_id) if each.seq > self.seq]
        if fresh:
            self.seq = fresh[-1].seq
        return fresh


def events_in(row: Published, run_id: str) -> list[NumberedEvent]:
    """The events of this run in one append, numbered. One run may end in it and the next one begin."""
    found: list[NumberedEvent] = []
    current, seq = row.body.run_id, row.body.seq
    for place, event in enumerate(row.body.events):
        if place in row.body.outside:
            continue
        if isinstance(event, RunStarted):
            current, seq = event.run_id, 0
        seq += 1
        if current == run_id:
            found.append(NumberedEvent(seq, row.at, event))
    return found


@asynccontextmanager
async def reading(
    threads: Threads, owner: Owner, thread_id: str, run_id: str, *, after: int = 0
) -> AsyncIterator[LogReader]:
    """A reader of the thread's last run, after the event of this number."""
    with threads.broker.subscribe(owner, thread_id) as news:
        yield LogReader(threads, (owner, thread_id), run_id, after, news)
