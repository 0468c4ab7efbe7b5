"""Logs in memory, for tests and for programs that need nothing kept. A dictionary of lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from farhand.clock import Clock
from farhand.core.call import Call, Phase
from farhand.core.principal import Owner
from farhand.core.run import ENDED
from farhand.store.log.base import (
    Append,
    Appended,
    AppendResult,
    CallKey,
    FeedRow,
    FoundCall,
    Lease,
    Loaded,
    Moved,
    OutOfTime,
    Row,
    ThreadFound,
    ThreadRow,
)

Key = tuple[Owner, str]


class _Thread(Struct):
    version: int = 0
    row: ThreadRow | None = None
    rows: list[Row] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    snapshot: bytes | None = None
    snapshot_version: int = 0
    lease: Lease | None = None


class MemoryLogStore:
    is_shared = False

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._threads: dict[Key, _Thread] = {}
        self._feeds: dict[Owner, list[FeedRow]] = {}
        self._last_no = 0

    def now(self) -> float:
        return self._clock.now()

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        return [self._append(each) for each in appends]

    async def load(self, owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        thread = self._threads.get((owner, thread_id), _Thread())
        start = thread.snapshot_version if after is None else after
        rows = tuple([row for row in thread.rows if row.version > start])
        if after is not None:
            return Loaded(rows)
        return Loaded(rows, thread.snapshot, thread.snapshot_version)

    async def find_call(self, owner: Owner, kind: CallKey, value: str) -> FoundCall | None:
        for found in self._calls():
            if found.owner == owner and key_of(found.call, kind) == value:
                return found
        return None

    async def open_calls(
        self,
        *,
        owner: Owner | None = None,
        client_id: str | None = None,
        due_before: float | None = None,
        limit: int = 1000,
    ) -> list[FoundCall]:
        found = [
            each
            for each in self._calls()
            if each.call.phase is not Phase.SETTLED
            and owner in (None, each.owner)
            and client_id in (None, each.call.client_id)
            and (due_before is None or (each.call.deadline or due_before) < due_before)
        ]
        if due_before is None:
            found.sort(key=lambda each: each.call.opened_at)
        else:
            found.sort(key=lambda each: each.call.deadline or 0.0)
        return found[:limit]

    async def threads(
        self, owner: Owner, *, limit: int, after: tuple[float, str] | None = None
    ) -> list[ThreadFound]:
        found = [each for each in self._found() if each.owner == owner]
        found.sort(key=lambda each: (each.row.updated_at, each.thread_id), reverse=True)
        return [each for each in found if after is None or (each.row.updated_at, each.thread_id) < after][
            :limit
        ]

    async def strays(self, *, worker: str, limit: int) -> list[ThreadFound]:
        now = self.now()
        found = [each for each in self._found() if can_go_on(each.row) and self._leased(each) <= now]
        return found[:limit]

    async def renew(self, worker: str, until: float) -> None:
        for thread in self._threads.values():
            if thread.lease is not None and thread.lease.worker == worker:
                thread.lease = Lease(worker, until)

    async def feed(self, owner: Owner, *, after: int, limit: int) -> list[FeedRow]:
        return [each for each in self._feeds.get(owner, []) if each.no > after][:limit]

    async def delete(self, owner: Owner, thread_id: str, version: int) -> bool:
        thread = self._threads.get((owner, thread_id))
        if thread is None or thread.version != version:
            return False
        del self._threads[owner, thread_id]
        feed = self._feeds.get(owner, [])
        self._feeds[owner] = [each for each in feed if each.thread_id != thread_id]
        return True

    async def purge(self, *, before: float) -> int:
        removed = 0
        for (owner, thread_id), thread in self._threads.items():
            kept = [row for row in thread.rows if row.at >= before or row.version > thread.snapshot_version]
            gone = {row.version for row in thread.rows} - {row.version for row in kept}
            removed += len(gone)
            thread.rows = kept
            thread.calls = {
                call.call_id: call for call in thread.calls.values() if (call.settled_at or before) >= before
            }
            feed = self._feeds.get(owner, [])
            self._feeds[owner] = [
                each for each in feed if each.thread_id != thread_id or each.row.version not in gone
            ]
        return removed

    async def close(self) -> None:
        return

    def _append(self, append: Append) -> AppendResult:
        key = (append.owner, append.thread_id)
        thread = self._threads.get(key) or _Thread()
        if thread.version != append.version:
            return Moved(thread.version)
        now = self.now()
        if not is_in_time(append, now):
            return OutOfTime(now)
        if append.body:
            self._threads[key] = thread
            self._write(thread, append)
        return Appended()

    def _write(self, thread: _Thread, append: Append) -> None:
        thread.version += 1
        row = Row(thread.version, append.at, append.body)
        thread.rows.append(row)
        thread.row = append.thread or thread.row
        thread.calls.update({call.call_id: call for call in append.calls})
        if append.lease is not None:
            thread.lease = append.lease if append.lease.worker else None
        if append.snapshot is not None:
            thread.snapshot, thread.snapshot_version = append.snapshot, thread.version
        if append.in_feed:
            self._last_no += 1
            feed = self._feeds.setdefault(append.owner, [])
            feed.append(FeedRow(self._last_no, append.thread_id, row))

    def _calls(self) -> Iterator[FoundCall]:
        for (owner, thread_id), thread in self._threads.items():
            for call in thread.calls.values():
                yield FoundCall(owner, thread_id, call)

    def _found(self) -> Iterator[ThreadFound]:
        for (owner, thread_id), thread in self._threads.items():
            if thread.row is not None:
                yield ThreadFound(owner, thread_id, thread.version, thread.row)

    def _leased(self, found: ThreadFound) -> float:
        """Until when; 0 if nobody holds it."""
        lease = self._threads[found.owner, found.thread_id].lease
        return 0.0 if lease is None else lease.until


def is_in_time(append: Append, now: float) -> bool:
    is_late = append.not_after is not None and now >= append.not_after
    is_early = append.not_before is not None and now < append.not_before
    return not is_late and not is_early


def can_go_on(row: ThreadRow) -> bool:
    """Whether the run is somebody's to advance: not ended, and not parked for an answer."""
    is_active = row.run_state is not None and row.run_state not in ENDED
    return is_active and not (row.is_parked and row.is_blocked)


def key_of(call: Call, kind: CallKey) -> str | None:
    match kind:
        case "call":
            return call.call_id
        case "approval":
            return None if call.approval is None else call.approval.approval_id
        case "request":
            return None if call.request is None else call.request.request_id
