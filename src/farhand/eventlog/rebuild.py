"""Rebuilds the look-up rows of threads from their logs, one thread after the other.

Other processes may append meanwhile: a thread that changes while it is read is read again. The log, the
feed numbers and the leases are never changed: a log cannot reproduce the latter two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from farhand.core.call import Call, Phase
from farhand.core.event import CallOpened, CallStep, Event, RunStarted, ThreadChange
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.state import RunProgress, ThreadState
from farhand.errors import Unreadable
from farhand.eventlog.batch import Changes, begin_changes, thread_row
from farhand.eventlog.codec import decode_body, fold_loaded
from farhand.store.base import Append, Loaded, Lookups, Moved, Row, Store
from farhand.store.guards import key_of

THREADS_PER_PAGE = 500
REBUILD_ATTEMPTS = 20
"""How often a thread that others append to is read before it is skipped."""
ALL_ROWS = -1
"""Before the first version, so that a wrong version in a damaged look-up row does not matter."""


class LeftOut(Struct, frozen=True):
    """A thread whose look-up rows were not rebuilt, and why."""

    owner: Owner
    thread_id: str
    reason: str


class Rebuilt(Struct):
    """`rows` is the number of look-up rows that differed from the log."""

    threads: int = 0
    rows: int = 0
    left_out: list[LeftOut] = field(default_factory=list)


async def rebuild(
    store: Store,
    *,
    before: float,
    dry_run: bool = False,
    progress: Callable[[Rebuilt], None] = lambda rebuilt: None,
) -> Rebuilt:
    """Rebuilds every thread. What ended `before` this time is not restored: a purge may have removed it."""
    rebuilt = Rebuilt()
    after: tuple[Owner, str] | None = None
    while page := await store.thread_keys(limit=THREADS_PER_PAGE, after=after):
        for owner, thread_id in page:
            rebuilt.threads += 1
            try:
                rebuilt.rows += await rebuild_thread(store, owner, thread_id, before=before, dry_run=dry_run)
            except Unreadable as error:
                rebuilt.left_out.append(LeftOut(owner, thread_id, error.message))
        progress(rebuilt)
        after = page[-1]
    return rebuilt


async def rebuild_thread(
    store: Store, owner: Owner, thread_id: str, *, before: float, dry_run: bool = False
) -> int:
    """How many look-up rows differed. Raises `Unreadable` if its log cannot be read."""
    for attempt in range(REBUILD_ATTEMPTS):
        loaded = await store.load(owner, thread_id)
        kept = (await store.load(owner, thread_id, after=ALL_ROWS)).rows
        tail = tuple([row for row in kept if row.version > loaded.snapshot_version])
        is_empty = not kept and loaded.snapshot is None
        if is_empty and await _is_gone(store, owner, thread_id):
            return 0
        if is_empty or not _follow(tail, loaded.snapshot_version):
            if attempt < REBUILD_ATTEMPTS - 1:
                # a purge, or a new thread with its id, may have come between two reads
                continue
            raise Unreadable("Its log is empty." if is_empty else "Rows of its log are missing.")
        folded = fold_lookups(owner, thread_id, replace(loaded, rows=tail), kept)
        lookups = await _resolve(store, folded, before=before)
        changed = await store.rebuild(lookups, dry_run=dry_run)
        if changed is not None:
            return changed
    raise Unreadable("It kept changing while it was read; try again.")


async def _is_gone(store: Store, owner: Owner, thread_id: str) -> bool:
    """False for a thread that exists."""
    [result] = await store.append([Append(owner=owner, thread_id=thread_id, version=0, at=store.now())])
    return not isinstance(result, Moved)


def _follow(rows: Sequence[Row], version: int) -> bool:
    """Whether they are the rows after this version, without a gap."""
    return [row.version for row in rows] == list(range(version + 1, version + 1 + len(rows)))


# ------------------------------------------------------------------------------------------------- the fold


class Folded(Struct):
    """The calls and runs according to the log. For a run whose start was purged the rows are nearly complete:
    its calls (`unsure_calls`) may lack their place in a step, and if it is the last one (`last_run`) it may
    have continued a little after it ended."""

    state: ThreadState
    calls: dict[str, Call]
    runs: dict[str, Run]
    is_whole: bool
    unsure_calls: set[str]
    last_run: Run | None


def fold_lookups(owner: Owner, thread_id: str, loaded: Loaded, kept: Sequence[Row]) -> Folded:
    """`kept` are all rows in the log, `loaded` the snapshot and the rows after it."""
    state = fold_loaded(owner, thread_id, replace(loaded, rows=()))
    tail = LogReplay(state, is_complete=True)
    for row in loaded.rows:
        tail.add(row)
    replay = LogReplay(ThreadState(owner=owner, thread_id=thread_id), is_complete=False)
    for row in kept:
        replay.add(row)
    is_whole = _follow(kept, 0) and len(kept) == state.version
    exact = tail.calls | state.calls
    calls = _possible_calls(replay.calls | exact, state)
    runs = _possible_runs(tail.runs | replay.runs, state)
    last = state.run_record()
    return Folded(
        state=state,
        calls=calls,
        runs=runs,
        is_whole=is_whole,
        unsure_calls=(replay.unsure_calls & calls.keys()) - exact.keys(),
        last_run=None if last is None or last.run_id in runs else last,
    )


def _possible_calls(calls: dict[str, Call], state: ThreadState) -> dict[str, Call]:
    """The state has every open call: any other was settled in a row that is not kept. A request id is free
    again once its call is purged: the last call has it."""
    holders: dict[str, Call] = {}
    for call in calls.values():
        request_id = key_of(call, "request")
        if request_id is not None:
            first = holders.setdefault(request_id, call)
            holders[request_id] = call if call.opened_at >= first.opened_at else first
    return {
        call_id: call
        for call_id, call in calls.items()
        if (call.phase is Phase.SETTLED or call_id in state.calls)
        and holders.get(key_of(call, "request") or "", call) is call
    }


def _possible_runs(runs: dict[str, Run], state: ThreadState) -> dict[str, Run]:
    active = None if state.active_run is None else state.active_run.run_id
    return {run_id: run for run_id, run in runs.items() if not run.active or run_id == active}


class LogReplay:
    """Collects the records of calls and runs from rows of a log, starting anywhere: events of a call that was
    opened before them are skipped, and a run that started before them is not recorded."""

    def __init__(self, thread: ThreadState, *, is_complete: bool) -> None:
        """`is_complete` if the state has everything before these rows: then nothing is skipped."""
        self.calls: dict[str, Call] = {}
        self.runs: dict[str, Run] = {}
        self.unsure_calls: set[str] = set()
        self._started_before: set[str] = set()
        """Runs whose start is not in these rows."""
        self._thread = thread
        self._is_complete = is_complete

    def add(self, row: Row) -> None:
        body = decode_body(row)
        if row.version != self._thread.version + 1:
            # what happened in between is unknown
            owner, thread_id = self._thread.owner, self._thread.thread_id
            self._thread = ThreadState(owner=owner, thread_id=thread_id, version=row.version - 1)
        run = self._thread.run
        if run is None and body.run_id is not None:
            # enough of it for the calls that it opens from here on
            run = RunProgress(run_id=body.run_id, user_message_id=None, started_at=row.at)
            self._thread.run = run
            self._started_before.add(run.run_id)
        changes = begin_changes(self._thread)
        if run is not None and run.run_id == body.run_id:
            # includes skipped events
            run.seq = body.seq
        for place, event in enumerate(body.events):
            if self._is_known(event):
                self._apply(changes, event, row)
            elif place not in body.outside and self._thread.run is not None:
                self._thread.run.seq += 1
        self._thread.version += 1
        self._collect(changes)

    def _collect(self, changes: Changes) -> None:
        for run_id, run in changes.runs.items():
            if run_id not in self._started_before:
                self.runs[run_id] = run
        for call_id, call in changes.calls.items():
            self.calls[call_id] = call
            if call.run_id in self._started_before:
                self.unsure_calls.add(call_id)

    def _is_known(self, event: Event) -> bool:
        """Whether the state has what the event refers to."""
        if self._is_complete or isinstance(event, RunStarted | ThreadChange):
            return True
        if isinstance(event, CallStep):
            return event.call_id in self._thread.calls
        if isinstance(event, CallOpened) and event.is_direct:
            return True
        return self._thread.run is not None

    def _apply(self, changes: Changes, event: Event, row: Row) -> None:
        try:
            changes.apply((event,), row.at)
        # the event does not follow from the rows before it: one was damaged, or another version wrote it
        except (AssertionError, LookupError) as error:
            raise Unreadable(f"Row {row.version} of a thread's log makes no sense: {error}") from error


# --------------------------------------------------------------------------- what the rows alone do not say


async def _resolve(store: Store, folded: Folded, *, before: float) -> Lookups:
    calls, runs = dict(folded.calls), dict(folded.runs)
    for call_id in folded.unsure_calls:
        calls[call_id] = await _stored_call(store, calls[call_id])
    if folded.last_run is not None:
        runs[folded.last_run.run_id] = await _stored_run(store, folded.last_run)
    return Lookups(
        owner=folded.state.owner,
        thread_id=folded.state.thread_id,
        version=folded.state.version,
        thread=thread_row(folded.state),
        calls=tuple(calls.values()),
        runs=tuple(runs.values()),
        is_whole=folded.is_whole,
        before=before,
    )


async def _stored_call(store: Store, call: Call) -> Call:
    """The stored call if it differs only in its number."""
    try:
        found = await store.find_call(call.owner, "call", call.call_id)
    except Unreadable:
        return call
    if found is None or replace(found.call, number=call.number) != call:
        return call
    return found.call


async def _stored_run(store: Store, run: Run) -> Run:
    """The stored run if it is the same run and ended at the same time."""
    try:
        found = await store.find_run(run.owner, run.run_id)
    except Unreadable:
        return run
    if found is None or (found.thread_id, found.ended_at) != (run.thread_id, run.ended_at):
        return run
    return found
