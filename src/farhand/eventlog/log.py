"""The log of every thread, as agent, calls and clients use it: decide, read, find, subscribe.

A thread is read from its cached state; lists and finders read the store's look-up tables. Owns which
subscribers an append is published to. Must not know what is decided.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

from farhand.core.call import Call, Phase
from farhand.core.event import Notice
from farhand.core.position import Entry, News, first_after
from farhand.core.principal import Owner
from farhand.core.run import Run, RunState
from farhand.core.state import ThreadState, ToolPermission
from farhand.core.thread import ListedThread, Message, Thread, ThreadCursor
from farhand.core.tool import Executor, Tool
from farhand.errors import Unreadable
from farhand.eventlog.batch import Changes
from farhand.eventlog.codec import calls_in, encode_notice, encode_snapshot, entries_in, fold_loaded
from farhand.eventlog.feed import read_feed
from farhand.eventlog.pubsub import (
    CLIENT_CALLS,
    DIRECT_CALLS,
    READING,
    Broker,
    RemoteReaders,
    client_topic,
    feed_topic,
    freed_topic,
    resting_topic,
    thread_topic,
)
from farhand.eventlog.rebuild import rebuild_thread
from farhand.eventlog.thread_cache import Key
from farhand.eventlog.threads import Threads
from farhand.store.base import (
    CLIENTS_CHANGED,
    FEED_GREW,
    THREAD_MOVED,
    Append,
    CallFilter,
    ClientStore,
    FileStore,
    FoundCall,
    Moved,
    PurgeCount,
    Store,
    owner_of,
    thread_of,
)
from farhand.store.presence import Streams

log = logging.getLogger("farhand.eventlog")

A = TypeVar("A")
T = TypeVar("T")
ReadRun: TypeAlias = Callable[[Owner, str, Callable[[ThreadState], Run | None]], Awaitable[Run | None]]

RECHECK_SEC = 2.0
"""Other processes' hints may be lost: a subscriber checks the log after this many seconds of silence."""
THREAD_KEYS_CACHED = 32_768
"""Some 400 bytes each. One that is missing costs a look-up by key."""
TOOLS = 1_000
SNAPSHOTS_AT_ONCE = 100
ALL_RUNS = 1_000_000


class EventLog(Threads):
    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.broker = Broker(recheck=RECHECK_SEC, notify=store.notify) if store.is_shared else Broker()
        self.expect: Callable[[Call], None] = lambda call: None
        """Called for every call that got a deadline here: a hint for `Deadlines`."""
        self.on_run: Callable[[Run, bool], None] = lambda run, is_own: None
        """Called for every run that started, parked, resumed or ended, and for a parked one that no longer
        waits; the flag says whether this process appended it."""
        self.on_unconfirmed: Callable[[Key, Run | None], None] = lambda key, run: None
        """Called for a thread whose last append may not be stored, with its run as that append would leave
        it; where other processes write too, only if this process claimed the run with it."""
        self.is_active: Callable[[str], bool] = lambda run_id: False
        """Whether this process advances the run with this id."""
        self._remote = RemoteReaders(self.broker)
        self._thread_keys: OrderedDict[str, Key] = OrderedDict()
        """The threads of runs, calls and approvals, by id: the most recent ones."""
        self._tools: dict[str, Tool] = {}
        self._is_recovered = False
        store.listen(self._on_hint)

    @property
    def files(self) -> FileStore:
        return self.store.files

    @property
    def clients(self) -> ClientStore:
        return self.store.clients

    @property
    def streams(self) -> Streams | None:
        return self.store.streams

    def now(self) -> float:
        return self.store.now()

    async def check(self) -> None:
        """Raises `StoreDown` while the store cannot be read or written."""
        await self.store.check()

    async def serve(self) -> None:
        """In a shared store, announces which runs are read here. Runs until cancelled."""
        await self._remote.serve()

    async def recover(self) -> None:
        """At start: writes the look-up rows of runs that were active when the previous process ended. A
        single-process store otherwise writes them when a run parks or ends."""
        if self.is_shared or self._is_recovered:
            return
        for found in await self.store.claimable(limit=ALL_RUNS):
            try:
                await rebuild_thread(self.store, found.owner, found.thread_id, before=self.now())
            except Unreadable as error:
                log.warning("the look-ups of thread %s are not rebuilt: %s", found.thread_id, error)
        # only now: if the store fails, the next attempt starts from the beginning
        self._is_recovered = True

    async def close(self) -> None:
        """Stores what waits, then closes the store."""
        await self.flush()
        await self.store.close()

    async def add_notice(self, owner: Owner, notice: Notice, thread_id: str | None = None) -> None:
        """Adds a notice to the owner's feed that is in no thread's log."""
        await self.store.add_to_feed(owner, encode_notice(notice), thread_id)
        self.broker.publish(feed_topic(owner), None)

    async def delete(self, owner: Owner, thread_id: str) -> bool:
        """Removes the thread; False while a run is active in it, or if it does not exist."""
        while True:
            try:
                seen = await self.read(owner, thread_id, lambda thread: (thread.version, thread.active_run))
            except Unreadable as error:
                # it can still be removed: nothing can advance its run
                log.warning("deleting thread %s, which cannot be read: %s", thread_id, error)
                seen = await self._stored_version(owner, thread_id), None
            version, active = seen
            if version == 0 or active is not None:
                return False
            if await self.store.delete(owner, thread_id, version):
                self.forget(owner, thread_id)
                return True
            self.forget(owner, thread_id)

    async def _stored_version(self, owner: Owner, thread_id: str) -> int:
        never = Append(owner=owner, thread_id=thread_id, version=-1, at=self.now())
        [moved] = await self.store.append([never])
        assert isinstance(moved, Moved), "no thread is at a negative version"
        return moved.version

    # ---------------------------------------------------------------------------------------------- threads

    async def get_thread(self, owner: Owner, thread_id: str) -> Thread | None:
        return await self.read(owner, thread_id, ThreadState.record)

    async def allowed_in(self, owner: Owner, thread_id: str) -> list[ToolPermission]:
        """What a person allowed for the whole thread, oldest first."""
        return await self.read(
            owner, thread_id, lambda thread: sorted(thread.allowed.values(), key=lambda each: each.at)
        )

    async def threads_of(
        self, owner: Owner, *, limit: int, after: ThreadCursor | None = None
    ) -> list[ListedThread]:
        """Most recently used first."""
        found = await self.store.threads(owner, limit=limit, after=after)
        return [
            ListedThread(
                owner=owner,
                thread_id=each.thread_id,
                title=each.row.title,
                created_at=each.row.created_at,
                updated_at=each.row.updated_at,
                run_state=each.row.run_state,
                open_calls=each.row.open_calls,
                runs=each.row.runs,
            )
            for each in found
        ]

    async def count_threads(self, owner: Owner) -> int:
        return await self.store.count("threads", owner.tenant, owner.subject)

    async def count_running(self, tenant: str, subject: str | None = None) -> int:
        return await self.store.count("running", tenant, subject)

    async def stored_bytes(self, tenant: str, subject: str | None = None) -> int:
        return await self.store.count("bytes", tenant, subject)

    async def count_open_of_tenant(self, tenant: str) -> int:
        return await self.store.count("open_calls", tenant)

    async def messages(self, owner: Owner, thread_id: str) -> list[Message]:
        return await self.read(owner, thread_id, lambda thread: list(thread.messages))

    # ------------------------------------------------------------------------------------------------- runs

    async def last_run(self, owner: Owner, thread_id: str) -> Run | None:
        return await self.read(owner, thread_id, ThreadState.run_record)

    async def get_run(self, owner: Owner, run_id: str) -> Run | None:
        return await self._find_run(owner, run_id, self.read)

    async def get_recent_run(self, owner: Owner, run_id: str) -> Run | None:
        """Like `get_run`, with the limits of `read_recent`."""
        return await self._find_run(owner, run_id, self.read_recent)

    async def _find_run(self, owner: Owner, run_id: str, read: ReadRun) -> Run | None:
        thread_key = self._thread_keys.get(run_id)
        if thread_key is not None and thread_key[0] != owner:
            return None
        found = None
        if thread_key is None:
            found = await self.store.find_run(owner, run_id)
            if found is None:
                return None
            thread_key = (owner, found.thread_id)
        last = await read(*thread_key, ThreadState.run_record)
        if last is not None and last.run_id == run_id:
            return last
        # another run has started in its thread since: the look-up row says how this one ended
        return found or await self.store.find_run(owner, run_id)

    async def runs(self, owner: Owner, *, limit: int, after: str | None = None) -> list[Run]:
        """Of all threads, most recently started first."""
        return await self.store.runs(owner, limit=limit, after=after)

    async def entries(self, run: Run, *, after: int = 0) -> list[Entry]:
        """The run's events in the log after the event with this number."""
        entries = self.recent_entries(run)
        if entries is None:
            loaded = await self.store.load(run.owner, run.thread_id, after=run.since)
            entries = entries_in(loaded.rows, run.run_id)
        return entries[first_after(entries, after) :]

    # ------------------------------------------------------------------------------------------------ calls

    async def find_call(self, owner: Owner, call_id: str) -> FoundCall | None:
        return await self.store.find_call(owner, "call", call_id)

    async def thread_of_call(self, owner: Owner, call_id: str) -> str | None:
        """The thread of a call, or of an approval, by its id."""
        thread_key = self._thread_keys.get(call_id)
        if thread_key is not None:
            return thread_key[1] if thread_key[0] == owner else None
        found = await self.store.find_call(
            owner, "approval" if call_id.startswith("apr_") else "call", call_id
        )
        return None if found is None else found.thread_id

    async def get_call(self, owner: Owner, call_id: str) -> Call | None:
        thread_key = self._thread_keys.get(call_id)
        if thread_key is not None and thread_key[0] == owner:
            call = await self.read(*thread_key, lambda thread: thread.calls.get(call_id))
            if call is not None:
                return call
        found = await self.store.find_call(owner, "call", call_id)
        return None if found is None else found.call

    async def get_call_of_approval(self, owner: Owner, approval_id: str) -> Call | None:
        """The call that this approval belongs to, answered or not."""
        thread_key = self._thread_keys.get(approval_id)
        if thread_key is not None and thread_key[0] == owner:
            call = await self.read(*thread_key, lambda thread: thread.call_of_approval(approval_id))
            if call is not None:
                return call
        found = await self.store.find_call(owner, "approval", approval_id)
        return None if found is None else found.call

    async def get_requested(self, owner: Owner, request_id: str) -> Call | None:
        """The call that a program made under this request id."""
        found = await self.store.find_call(owner, "request", request_id)
        return None if found is None else found.call

    async def calls_of(self, owner: Owner, run_id: str, step: int | None = None) -> list[Call]:
        """The calls of a run, in the order they were opened."""
        run = await self.get_run(owner, run_id)
        if run is None:
            return []
        calls = await self.read(owner, run.thread_id, lambda thread: _calls_of(thread, run_id))
        if calls is None:
            rows = await self.store.load(owner, run.thread_id, after=run.since)
            calls = calls_in(run, rows.rows)
        return [call for call in calls if step in (None, call.step)]

    async def open_calls(self, owner: Owner, thread_id: str | None = None) -> list[Call]:
        """Not settled, oldest first."""
        if thread_id is not None:
            return await self.read(owner, thread_id, ThreadState.open_calls)
        return _by_age(await self.store.open_calls(CallFilter(owner=owner), limit=100_000))

    async def client_calls(self, owner: Owner, client_id: str) -> list[Call]:
        """This client's calls: not settled, oldest first."""
        return _by_age(
            await self.store.open_calls(CallFilter(owner=owner, client_id=client_id), limit=10_000)
        )

    async def calls_for_clients(self) -> list[Call]:
        """Calls for clients of all owners, including clients that have left: not settled, oldest first."""
        return [each.call for each in await self.store.open_calls(CallFilter(is_client=True), limit=100_000)]

    async def direct_calls(self) -> list[Call]:
        """Calls of all owners without a run that a worker has to look after: to be started or in flight, with
        a caller that may be gone, or settled and not reported yet."""
        found = await self.store.open_calls(CallFilter(needs_worker=True), limit=100_000)
        return [each.call for each in found]

    async def due(self, *, before: float, limit: int) -> list[Call]:
        """Open calls whose deadline is before this time, earliest first."""
        return [each.call for each in await self.store.open_calls(CallFilter(due_before=before), limit=limit)]

    async def get_tool(self, version: str) -> Tool | None:
        """The tool as it was when a call of this version was opened."""
        # a version never changes, so a cached copy is as good as the stored one
        tool = self._tools.get(version) or await self.store.find_tool(version)
        if tool is not None:
            if len(self._tools) >= TOOLS:
                self._tools.clear()
            self._tools[version] = tool
        return tool

    # ------------------------------------------------------------------------------------------ feed, purge

    async def feed(self, owner: Owner, *, after: int = 0, limit: int = 500) -> list[News]:
        """Events of the owner's runs, calls and clients: in order, each with its own number."""
        news, _ = await read_feed(self.store, owner, after=after, limit=limit)
        return news

    async def feed_span(self, owner: Owner) -> tuple[int, int]:
        return await self.store.feed_span(owner)

    async def purge(self, *, before: float, dry_run: bool = False) -> PurgeCount:
        """Removes, or only counts, the details of what ended before this time. Threads and messages stay, in
        snapshots."""
        if dry_run:
            return await self.store.purge(before=before, dry_run=True)
        while threads := await self.store.without_snapshot(before=before, limit=SNAPSHOTS_AT_ONCE):
            covered = [await self._cover(*key) for key in threads]
            if len(threads) < SNAPSHOTS_AT_ONCE or not any(covered):
                break
        old = await self.store.purge(before=before)
        self._cache.forget_rows(before=before)
        return old

    async def _cover(self, owner: Owner, thread_id: str) -> bool:
        """Stores a snapshot of the thread. False for a thread that cannot be read: its rows are kept."""
        loaded = await self.store.load(owner, thread_id)
        try:
            state = fold_loaded(owner, thread_id, loaded)
            snapshot = encode_snapshot(state)
        except Unreadable as error:
            log.warning("thread %s is not purged: %s", thread_id, error)
            return False
        if loaded.last_at is not None:
            await self.store.put_snapshot(owner, thread_id, state.version, snapshot, at=loaded.last_at)
        return True

    # ---------------------------------------------------------------------------------------------- publish

    def on_decided(self, key: Key, changes: Changes) -> None:
        # no other process writes here: a run continues as soon as this is decided, since it shows nothing yet
        self._move_runs(changes, is_own=True)

    def on_committed(self, key: Key, changes: Changes, at: float, *, is_own: bool) -> None:
        if self.is_shared:
            # first, so that the run's next output may be sent together with what is published after it
            self._move_runs(changes, is_own=is_own)
        publish = self.broker.publish
        for run_id, entries in changes.entries.items():
            self._note_thread_key(run_id, key)
            publish(run_id, entries)
        if changes.calls:
            # before its callers continue, which may change the run again
            self._free_run(changes)
        for call in changes.calls.values():
            self._publish_call(call, key, is_own=is_own)
        if changes.feed:
            publish(feed_topic(key[0]), None)

    def _move_runs(self, changes: Changes, *, is_own: bool) -> None:
        """Wakes the waiters of a run that moved. The worker that appended the last answer to a parked run
        resumes it."""
        runs, changes.new_runs = changes.new_runs, []
        for each in runs:
            self.broker.publish(freed_topic(each.run_id), None)
        run = changes.thread.run
        for each in runs:
            self.on_run(each, is_own)
        if is_own and run is not None and run.is_parked and run.state is RunState.RUNNING:
            record = changes.thread.run_record()
            assert record is not None, "the thread has a run"
            self.on_run(record, is_own)

    def _free_run(self, changes: Changes) -> None:
        """Wakes the waiters of the run if it can continue, or its tools if it only waits."""
        run = changes.thread.run
        if run is None:
            return
        if run.state is not RunState.WAITING:
            self.broker.publish(freed_topic(run.run_id), None)
        calls = changes.calls.values()
        if run.state is RunState.WAITING or any(_may_start(call) or call.parent for call in calls):
            self.broker.publish(resting_topic(run.run_id), None)

    def _publish_call(self, call: Call, key: Key, *, is_own: bool) -> None:
        publish = self.broker.publish
        self._note_thread_keys(call, key)
        if is_own and call.deadline is not None:
            self.expect(call)
        publish(call.call_id, call)
        if is_own and _needs_worker(call):
            publish(DIRECT_CALLS, call)
        if call.client_id is not None:
            publish(client_topic(call.owner, call.client_id), call)
            if is_own:
                publish(CLIENT_CALLS, call)

    def _note_thread_keys(self, call: Call, key: Key) -> None:
        self._note_thread_key(call.call_id, key)
        if call.approval is not None:
            self._note_thread_key(call.approval.approval_id, key)

    def _note_thread_key(self, name: str, key: Key) -> None:
        self._thread_keys[name] = key
        if len(self._thread_keys) > THREAD_KEYS_CACHED:
            self._thread_keys.popitem(last=False)

    def on_rolled_back(self, key: Key, changes: Changes) -> None:
        if not self.is_shared:
            self.on_unconfirmed(key, changes.thread.run_record())
            return
        for run in changes.runs.values():
            if run.active and not run.parked:
                self.on_unconfirmed(key, run)

    def on_loaded(self, thread: ThreadState) -> None:
        run = thread.run_record()
        if run is not None:
            # another process may have stopped or claimed it meanwhile
            self.on_run(run, False)
        for call in thread.open_calls():
            self._note_thread_keys(call, (thread.owner, thread.thread_id))

    def is_followed(self, thread: ThreadState) -> bool:
        has_readers = self.broker.has(thread_topic(thread.owner, thread.thread_id))
        return has_readers or (thread.run is not None and self.is_active(thread.run.run_id))

    def on_lost(self, key: Key) -> None:
        self.broker.invalidate(thread_topic(*key))

    def _on_hint(self, topic: str, item: str) -> None:
        """Hints about what other processes did."""
        if not topic:
            self.refresh_all()
            self.broker.invalidate_all()
        elif topic == THREAD_MOVED:
            self.refresh(*thread_of(item))
        elif topic == FEED_GREW:
            self.broker.publish(feed_topic(owner_of(item)), FEED_GREW)
        elif topic == CLIENTS_CHANGED:
            self.broker.publish(CLIENTS_CHANGED, owner_of(item))
        elif topic == READING:
            self._remote.on_message(item)
        else:
            self.broker.publish(topic, item)


def _calls_of(thread: ThreadState, run_id: str) -> list[Call] | None:
    """None if another run has started since: the state no longer has its calls."""
    if thread.run is None or thread.run.run_id != run_id:
        return None
    return [call for call in thread.calls.values() if call.run_id == run_id]


def _by_age(found: Sequence[FoundCall]) -> list[Call]:
    """Oldest first; the calls of one step in the model's order. Those left to be reported are left out."""
    calls = [each.call for each in found if each.call.phase is not Phase.SETTLED]
    return sorted(calls, key=lambda call: (call.opened_at, call.thread_id, call.step, call.number))


def _may_start(call: Call) -> bool:
    """The server may start its tool."""
    return call.phase is Phase.READY and call.executor is Executor.SERVER


def _needs_worker(call: Call) -> bool:
    """A call without a run whose tool the server may start, or whose outcome must still be reported."""
    return call.run_id is None and (_may_start(call) or call.is_unreported)
