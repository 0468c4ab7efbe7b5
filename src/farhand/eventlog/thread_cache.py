"""The states of threads that this process keeps, with their sizes and the last rows of their runs.

Bounded, and never needed: a state that is dropped is folded from the log again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from farhand.core.position import Entry
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.state import ThreadState
from farhand.eventlog.codec import FORMAT, Body
from farhand.store.base import Row

Key: TypeAlias = tuple[Owner, str]
RunEntries: TypeAlias = dict[str, list[Entry]]
"""The events of one append that belong to runs, by run."""

ROWS_KEPT = 64
"""Rows of a run that are kept with its thread's state, for readers that come a moment later."""
STATE_BYTES = 6 * 1024
"""An estimate of what the objects of a cached thread take beside the bytes of its log: a thread with one
parked call takes about 8 KiB together (`make bench ARGS=p7`)."""
SNAPSHOT_BYTES = 64 * 1024
"""A thread gets a snapshot once its rows since the last one take this many bytes, and as many as that
snapshot."""


class CachedThread:
    """A thread's state, with its size in the cache, what was added since its last snapshot, and the last rows
    of its run."""

    __slots__ = (
        "is_stale",
        "key",
        "last_at",
        "rows",
        "rows_after",
        "rows_at",
        "size",
        "snapshot_size",
        "state",
        "tail_size",
    )

    def __init__(self, key: Key, state: ThreadState, *, snapshot_size: int, tail_size: int) -> None:
        self.key = key
        self.state = state
        self.snapshot_size = snapshot_size
        self.tail_size = tail_size
        self.size = STATE_BYTES + snapshot_size + tail_size
        self.rows: list[RunEntries] = []
        """The entries of the rows after version `rows_after`, by run."""
        self.rows_after = state.version
        self.rows_at = 0.0
        """When the first of these rows was appended."""
        self.is_stale = False
        """Whether another process has appended since; what is decided on this state would be refused."""
        self.last_at: float | None = None
        """When its last row was appended, None for a thread that does not exist: it differs for another
        thread with the same name."""

    @property
    def needs_snapshot(self) -> bool:
        is_large = self.tail_size >= SNAPSHOT_BYTES and self.tail_size >= self.snapshot_size
        return is_large and self.state.format <= FORMAT

    def keep_rows(self, rows: Sequence[Row], bodies: Sequence[Body]) -> None:
        """Keeps the rows of an active run after the thread was loaded, if all of them were loaded."""
        run = self.state.active_run
        if run is None:
            return
        own = [(row.at, body) for row, body in zip(rows, bodies, strict=True) if row.version > run.since]
        if len(own) == self.state.version - run.since <= ROWS_KEPT:
            self.rows_after = run.since
            self.rows = [body.entries(at) for at, body in own]
            self.rows_at = own[0][0] if own else 0.0

    def grow(
        self, entries: dict[str, list[Entry]], size: int, *, at: float, snapshot: bytes | None = None
    ) -> int:
        """Adds a stored append with these entries of runs; returns by how much the thread's size grew."""
        self.last_at = at
        run = self.state.run
        if len(self.rows) >= ROWS_KEPT or (run is not None and run.since >= self.rows_after + len(self.rows)):
            # nobody reads an older run from here, nor the whole of a long one
            self.forget_rows()
        if not self.rows:
            self.rows_at = at
        self.rows.append(entries)
        before = self.size
        self.tail_size += size
        if snapshot is not None:
            self.snapshot_size, self.tail_size = len(snapshot), 0
        self.size = STATE_BYTES + self.snapshot_size + self.tail_size
        return self.size - before

    def forget_rows(self) -> None:
        self.rows_after += len(self.rows)
        self.rows.clear()

    def entries_of(self, run: Run) -> list[Entry] | None:
        """The events of this run; None unless all of its rows up to its last known event are here."""
        if run.since < self.rows_after:
            return None
        found: list[Entry] = []
        for entries in self.rows:
            found += entries.get(run.run_id, ())
        return found if found and found[-1].seq >= run.last_seq else None


class ThreadCache:
    """By thread, the least recently used first; at most `limit` bytes, but one state always stays."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._threads: OrderedDict[Key, CachedThread] = OrderedDict()

    def __contains__(self, key: Key) -> bool:
        return key in self._threads

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._threads))

    def get(self, key: Key) -> CachedThread | None:
        return self._threads.get(key)

    def is_stale(self, key: Key) -> bool:
        cached = self._threads.get(key)
        return cached is not None and cached.is_stale

    def put(self, cached: CachedThread) -> None:
        assert cached.key not in self._threads, "a thread has one state"
        self._threads[cached.key] = cached
        self.size += cached.size

    def use(self, key: Key) -> None:
        self._threads.move_to_end(key)

    def grow(
        self,
        cached: CachedThread,
        entries: RunEntries,
        size: int,
        *,
        at: float,
        snapshot: bytes | None = None,
    ) -> None:
        """Adds a stored append to a state, which may have been dropped while that was stored or read."""
        grown = cached.grow(entries, size, at=at, snapshot=snapshot)
        if self._threads.get(cached.key) is cached:
            self.size += grown

    def drop(self, cached: CachedThread) -> bool:
        """False if it was dropped before."""
        if self._threads.get(cached.key) is not cached:
            return False
        del self._threads[cached.key]
        self.size -= cached.size
        return True

    def forget_rows(self, *, before: float) -> None:
        """Those of runs with a row that a purge may have removed; all others stay, since freeing the rows of
        every thread at once would block the process."""
        for cached in self._threads.values():
            if cached.rows_at < before:
                cached.forget_rows()

    def shrink(self, *, in_use: Collection[Key]) -> list[Key]:
        """Drops the least recently used states, except for those in use; returns which."""
        dropped: list[Key] = []
        while self.size > self._limit and len(self._threads) > 1:
            # those in use were used last, so the search ends at once
            key = next((each for each in self._threads if each not in in_use), None)
            if key is None:
                break
            self.drop(self._threads[key])
            dropped.append(key)
        return dropped
