"""A store in memory, lost with its process: for tests, and for programs that need no persistence.

`memory_tables.py` has its calls, feeds, files and clients. Nothing here awaits, so nobody sees a partial
write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import islice

from msgspec import Struct, field

from farhand.clock import Clock, SystemClock
from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.tool import Tool
from farhand.store.base import (
    Append,
    Appended,
    AppendResult,
    CallFilter,
    CallKey,
    ClientStore,
    Counted,
    FeedRow,
    FileStore,
    FoundCall,
    FoundThread,
    HintListener,
    Lease,
    Loaded,
    Lookups,
    Moved,
    OutOfTime,
    PurgeCount,
    RequestTaken,
    Row,
    ThreadKey,
    ThreadRow,
)
from farhand.store.guards import (
    Difference,
    Totals,
    can_go_on,
    difference,
    is_call_kept,
    is_current,
    is_in_time,
    is_open,
    is_run_kept,
    is_running,
)
from farhand.store.memory_tables import MemoryCalls, MemoryClients, MemoryFeeds, MemoryFiles, drop_all
from farhand.store.presence import Streams


class _Thread(Struct):
    owner: Owner
    thread_id: str
    row: ThreadRow
    version: int = 0
    last_at: float | None = None
    rows: list[Row] = field(default_factory=list)
    size: int = 0
    snapshot: bytes | None = None
    snapshot_version: int = 0
    lease: Lease | None = None
    calls: set[str] = field(default_factory=set)
    runs: set[str] = field(default_factory=set)

    @property
    def found(self) -> FoundThread:
        return FoundThread(self.owner, self.thread_id, self.version, self.row)

    @property
    def purged_to(self) -> int:
        """The version up to which rows may be removed."""
        kept_from = self.row.kept_from
        return self.snapshot_version if kept_from is None else min(kept_from, self.snapshot_version)


class MemoryStore:
    is_shared: bool = False
    streams: Streams | None = None

    def __init__(self, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        self.now: Callable[[], float] = clock.now
        self._totals = Totals()
        self._threads: dict[Owner, dict[str, _Thread]] = {}
        self._going: dict[ThreadKey, _Thread] = {}
        """Threads whose run a worker could advance."""
        self._runs: dict[Owner, dict[str, Run]] = {}
        self._tools: dict[str, Tool] = {}
        self._calls = MemoryCalls()
        self._feeds = MemoryFeeds()
        self._files = MemoryFiles(clock)
        self.files: FileStore = self._files
        self.clients: ClientStore = MemoryClients(self._feeds, clock)

    async def check(self) -> None:
        """It is always available."""

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        return [self._append(each) for each in appends]

    async def load(self, owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        thread = self._find(owner, thread_id)
        if thread is None:
            return Loaded(())
        start = thread.snapshot_version if after is None else after
        rows = tuple([row for row in thread.rows if row.version > start])
        if after is not None:
            return Loaded(rows)
        if thread.snapshot is None:
            return Loaded(rows)
        return Loaded(rows, thread.snapshot, thread.snapshot_version, thread.last_at)

    async def find_call(self, owner: Owner, kind: CallKey, value: str) -> FoundCall | None:
        return self._calls.find(owner, kind, value)

    async def open_calls(self, which: CallFilter, *, limit: int = 1000) -> list[FoundCall]:
        return self._calls.list_open(which)[:limit]

    async def threads(
        self, owner: Owner, *, limit: int, after: tuple[float, str] | None = None
    ) -> list[FoundThread]:
        threads = self._threads.get(owner, {}).values()
        places = {(thread.row.updated_at, thread.thread_id): thread for thread in threads}
        page = sorted((place for place in places if after is None or place < after), reverse=True)[:limit]
        return [places[place].found for place in page]

    async def find_run(self, owner: Owner, run_id: str) -> Run | None:
        return self._runs.get(owner, {}).get(run_id)

    async def runs(self, owner: Owner, *, limit: int, after: str | None = None) -> list[Run]:
        runs = self._runs.get(owner, {})
        last = None if after is None else runs.get(after)
        found = [run for run in runs.values() if last is None or _start_order(run) < _start_order(last)]
        return sorted(found, key=_start_order, reverse=True)[:limit]

    async def find_tool(self, version: str) -> Tool | None:
        return self._tools.get(version)

    async def count(self, what: Counted, tenant: str, subject: str | None = None) -> int:
        return self._totals.get(what, tenant, subject)

    async def claimable(
        self, *, limit: int, skip: Collection[str] = (), reserve_sec: float = 0.0, worker: str = ""
    ) -> list[FoundThread]:
        now = self.now()
        free = (each for each in self._going.values() if _is_claimable(each, now, worker))
        found = list(islice((each for each in free if each.row.run_id not in skip), limit))
        if reserve_sec > 0:
            for thread in found:
                thread.lease = Lease("", now + reserve_sec)
        return [thread.found for thread in found]

    async def renew(self, worker: str, until: float) -> None:
        lease = Lease(worker, until)
        for thread in self._going.values():
            if thread.lease is not None and thread.lease.worker == worker:
                thread.lease = lease

    async def add_to_feed(self, owner: Owner, body: bytes, thread_id: str | None = None) -> None:
        self._feeds.add(owner, body, at=self.now(), thread_id=thread_id)

    async def feed(self, owner: Owner, *, after: int, limit: int) -> list[FeedRow]:
        return self._feeds.after(owner, after, limit)

    async def feed_span(self, owner: Owner) -> tuple[int, int]:
        return self._feeds.span(owner)

    async def delete(self, owner: Owner, thread_id: str, version: int) -> bool:
        thread = self._find(owner, thread_id)
        if thread is None or thread.version != version:
            return False
        del self._threads[owner][thread_id]
        self._going.pop((owner, thread_id), None)
        running, open_calls = is_running(thread.row), thread.row.open_calls
        self._totals.add(owner, threads=-1, running=-running, open_calls=-open_calls, size=-thread.size)
        drop_all(self._calls, owner, thread.calls)
        for run_id in thread.runs:
            self._runs[owner].pop(run_id, None)
        self._feeds.drop_thread(owner, thread_id)
        self._files.drop_thread(owner, thread_id)
        return True

    async def without_snapshot(self, *, before: float, limit: int) -> list[ThreadKey]:
        found = (
            (thread.owner, thread.thread_id)
            for thread in self._all()
            if thread.snapshot_version < thread.version and thread.rows[-1].at < before
        )
        return list(islice(found, limit))

    async def put_snapshot(
        self, owner: Owner, thread_id: str, version: int, body: bytes, *, at: float
    ) -> None:
        thread = self._find(owner, thread_id)
        if thread is None or thread.snapshot_version >= version:
            return
        if any((row.version, row.at) == (version, at) for row in thread.rows):
            thread.snapshot, thread.snapshot_version = body, version

    async def purge(self, *, before: float, dry_run: bool = False) -> PurgeCount:
        old = PurgeCount(
            calls=len(self._old_calls(before)),
            runs=len(self._ended(before)),
            feed_entries=self._feeds.count_old(before),
            files=self._files.count_old(before),
        )
        if dry_run:
            return old
        for found in self._old_calls(before):
            self._calls.drop(found.owner, found.call.call_id)
            self._threads[found.owner][found.thread_id].calls.discard(found.call.call_id)
        for run in self._ended(before):
            del self._runs[run.owner][run.run_id]
            self._threads[run.owner][run.thread_id].runs.discard(run.run_id)
        for thread in self._all():
            self._purge_rows(thread, before)
        self._feeds.purge(before)
        self._files.purge(before)
        return old

    async def thread_keys(self, *, limit: int, after: ThreadKey | None = None) -> list[ThreadKey]:
        keys = sorted((thread.owner, thread.thread_id) for thread in self._all())
        return [key for key in keys if after is None or key > after][:limit]

    async def rebuild(self, lookups: Lookups, *, dry_run: bool = False) -> int | None:
        thread = self._find(lookups.owner, lookups.thread_id)
        if thread is None or thread.version != lookups.version:
            return None
        calls, runs = self._differing_calls(thread, lookups), self._differing_runs(thread, lookups)
        is_listed_otherwise = thread.row != lookups.thread
        if not dry_run:
            self._show(thread, lookups.thread)
            drop_all(self._calls, thread.owner, calls.drop)
            for call in calls.put.values():
                self._calls.take_request(thread.owner, call)
                self._calls.put(FoundCall(thread.owner, thread.thread_id, call))
            thread.calls = (thread.calls - set(calls.drop)) | calls.put.keys()
            for run_id in runs.drop:
                del self._runs[thread.owner][run_id]
            self._runs.setdefault(thread.owner, {}).update(runs.put)
            thread.runs = (thread.runs - set(runs.drop)) | runs.put.keys()
        return is_listed_otherwise + len(calls) + len(runs)

    def listen(self, listener: HintListener) -> None:
        """No other process writes."""

    def notify(self, topic: str, item: str) -> None:
        """No other process reads."""

    async def close(self) -> None:
        """There is nothing to release."""

    def _append(self, append: Append) -> AppendResult:
        thread = self._find(append.owner, append.thread_id)
        version, last_at = (0, None) if thread is None else (thread.version, thread.last_at)
        if not is_current(append, version, last_at):
            return Moved(version)
        now = self.now()
        if not is_in_time(append, now):
            return OutOfTime(now)
        if self._calls.is_taken(append):
            return RequestTaken()
        if append.body:
            self._write(thread or self._begin(append), append)
        return Appended()

    def _begin(self, append: Append) -> _Thread:
        assert append.thread is not None, "the first append says how the thread is listed"
        row = append.thread
        thread = _Thread(append.owner, append.thread_id, row)
        self._threads.setdefault(append.owner, {})[append.thread_id] = thread
        self._totals.add(append.owner, threads=1, running=is_running(row), open_calls=row.open_calls)
        return thread

    def _write(self, thread: _Thread, append: Append) -> None:
        thread.version += 1
        thread.last_at = append.at
        thread.size += len(append.body)
        thread.rows.append(Row(thread.version, append.at, append.body))
        self._totals.add(append.owner, size=len(append.body))
        if append.lease is not None:
            thread.lease = append.lease if append.lease.worker else None
        if append.snapshot is not None:
            thread.snapshot, thread.snapshot_version = append.snapshot, thread.version
        if append.thread is not None:
            self._show(thread, append.thread)
        self._put_records(thread, append)
        self._files.bind(append.owner, append.thread_id, append.files)
        if append.feed:
            self._feeds.add(
                append.owner,
                append.body,
                at=append.at,
                count=append.feed,
                thread_id=append.thread_id,
                version=thread.version,
            )

    def _show(self, thread: _Thread, row: ThreadRow) -> None:
        self._totals.add(
            thread.owner,
            running=is_running(row) - is_running(thread.row),
            open_calls=row.open_calls - thread.row.open_calls,
        )
        thread.row = row
        key = (thread.owner, thread.thread_id)
        if can_go_on(row):
            self._going[key] = thread
        else:
            # a run that cannot continue has no lease
            thread.lease = None
            self._going.pop(key, None)

    def _differing_calls(self, thread: _Thread, lookups: Lookups) -> Difference[Call]:
        found = [self._calls.find(thread.owner, "call", call_id) for call_id in thread.calls]
        stored = {each.call.call_id: each.call for each in found if each is not None}
        wanted = [call for call in lookups.calls if not self._calls.is_request_lost(thread.owner, call)]
        return difference(
            stored,
            {call.call_id: call for call in wanted},
            kept={call.call_id for call in wanted if is_call_kept(lookups, call)},
            still_open={call_id for call_id, call in stored.items() if is_open(call)},
            is_whole=lookups.is_whole,
        )

    def _differing_runs(self, thread: _Thread, lookups: Lookups) -> Difference[Run]:
        runs = self._runs.get(thread.owner, {})
        stored = {run_id: runs[run_id] for run_id in thread.runs if run_id in runs}
        return difference(
            stored,
            {run.run_id: run for run in lookups.runs},
            kept={run.run_id for run in lookups.runs if is_run_kept(lookups, run)},
            still_open={run_id for run_id, run in stored.items() if run.ended_at is None},
            is_whole=lookups.is_whole,
        )

    def _put_records(self, thread: _Thread, append: Append) -> None:
        for call in append.calls:
            self._calls.put(FoundCall(append.owner, append.thread_id, call))
            thread.calls.add(call.call_id)
        for run in append.runs:
            self._runs.setdefault(append.owner, {})[run.run_id] = run
            thread.runs.add(run.run_id)
        for tool in append.tools:
            self._tools[tool.version] = tool

    def _purge_rows(self, thread: _Thread, before: float) -> None:
        kept = [row for row in thread.rows if row.at >= before or row.version > thread.purged_to]
        if len(kept) == len(thread.rows):
            return
        size = sum(len(row.body) for row in kept) + len(thread.snapshot or b"")
        self._totals.add(thread.owner, size=size - thread.size)
        thread.rows, thread.size = kept, size

    def _old_calls(self, before: float) -> list[FoundCall]:
        """Except those of active runs."""
        settled = self._calls.settled_before(before)
        rows = [self._threads[each.owner][each.thread_id].row for each in settled]
        return [
            each
            for each, row in zip(settled, rows, strict=True)
            if row.kept_from is None or row.run_id != each.call.run_id
        ]

    def _ended(self, before: float) -> list[Run]:
        return [
            run
            for runs in self._runs.values()
            for run in runs.values()
            if run.ended_at is not None and run.ended_at < before
        ]

    def _all(self) -> list[_Thread]:
        return [thread for threads in self._threads.values() for thread in threads.values()]

    def _find(self, owner: Owner, thread_id: str) -> _Thread | None:
        return self._threads.get(owner, {}).get(thread_id)


def _is_claimable(thread: _Thread, now: float, worker: str) -> bool:
    lease = thread.lease
    if worker:
        return lease is not None and lease.worker == worker
    return lease is None or lease.until <= now


def _start_order(run: Run) -> tuple[float, str]:
    return run.started_at, run.run_id
