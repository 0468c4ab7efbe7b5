"""Decide, append, publish: the only way in which a thread changes.

A command is a function from a state and the time to a decision: events, and an answer for its caller.

1. Commands are decided one after the other, each on the state that the previous one left. What they decide in
   one thread until the store is free is one append; the appends of many threads are one transaction.
2. An append names the version of the thread that it was decided on, and from and until when it holds. While
   another process is appending to the thread, it waits in the store. It is refused if the thread has then
   moved on (`Moved`), or if it is too early or too late (`OutOfTime`).
3. After a refusal the state is read again, and the same command is decided again. So if two workers get two
   different answers to one call, the second is decided on a call that has the first one's result or approval,
   and `late_result` or `late_answer` of `core.decide.decision` says what its sender is told. `Moved` means
   that the thread advances; a command that gets it again and again on one version fails.
4. Once an append is durable, its events are published and its answers returned. If the process ends in
   between, the append stays: the same result, sent again to any worker, is answered as `Repeated`. Where
   others write too, a decision without events is confirmed by an append without events, which stores nothing
   and is refused like any other.

Where others write too, a command is decided shortly before its transaction, on the cached state, which may be
old. Where this process alone writes, it is decided as soon as it arrives, and runs continue with what is not
durable yet (`decide_uncommitted`, `read_uncommitted`); readers see nothing of it. If the store then refuses
it, `on_rolled_back` tells the `Worker`, and the runs start again from the log.

Owns the cache of states, which is bounded and may be dropped at any time. Must not know what is decided.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import Any, TypeVar, overload

from farhand.core.decide.decision import Decision
from farhand.core.position import Entry
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.state import ThreadState
from farhand.errors import StoreDown, Unreadable
from farhand.eventlog.batch import (
    Changes,
    Command,
    PendingCommand,
    Then,
    ThreadBatch,
    begin_batch,
    begin_changes,
    fail,
)
from farhand.eventlog.codec import decode_body, fold_loaded
from farhand.eventlog.thread_cache import CachedThread, Key, ThreadCache
from farhand.store.base import Append, Appended, AppendResult, Moved, OutOfTime, RequestTaken, Store

log = logging.getLogger("farhand.eventlog")

A = TypeVar("A")
T = TypeVar("T")

CACHE_BYTES = 64 * 1024 * 1024
APPENDED_AT_ONCE = 256
"""Threads per transaction: a flood must not make the first one wait for the last, nor fail as a whole."""
REFRESHED_AT_ONCE = 64
"""Stale threads that are read again at a time: waiting commands get their turn."""
MAX_KNOWN_TOOLS = 10_000


class Threads:
    """Subclasses override the `on_…` methods. None of them may wait. The store logs its outages itself."""

    def __init__(self, store: Store, *, cache_bytes: int = CACHE_BYTES) -> None:
        self.store = store
        self.is_shared = store.is_shared
        """Whether other processes write too."""
        self.worker = ""
        """The name under which this process holds leases."""
        self.lease_sec = float("inf")
        self._cache = ThreadCache(cache_bytes)
        self._known_tools: set[str] = set()
        """Versions that the store already has."""
        # the answers of one batch have different types; each goes to the caller of its command
        self._waiting: list[PendingCommand[Any]] = []
        self._keys_waiting: set[Key] = set()
        """Threads that earlier commands wait for: later commands are decided after those."""
        self._newest_load: dict[Key, object] = {}
        """The newest load of a thread that is still running; void once the state of the thread is dropped."""
        self._open: dict[Key, ThreadBatch] = {}
        """Decided, to be stored with the next transaction."""
        self._storing: dict[Key, ThreadBatch] = {}
        self._to_refresh: set[Key] = set()
        """Cached threads that another process has appended to."""
        self._not_earlier = 0.0
        """The store's time when it refused an append: the next decisions are no earlier."""
        self._flushing: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------------------ what becomes of threads

    def on_decided(self, key: Key, changes: Changes) -> None:
        """Decided here, not durable yet. Only where this process alone writes."""

    def on_committed(self, key: Key, changes: Changes, at: float, *, is_own: bool) -> None:
        """Durable; `is_own` if it was appended here."""

    def on_rolled_back(self, key: Key, changes: Changes) -> None:
        """A worker continued with it, and the store refused it; or a run was claimed, released or continued
        with it, and the store did not say whether it was written."""

    def on_lost(self, key: Key) -> None:
        """The thread may have changed without a publication."""

    def on_loaded(self, thread: ThreadState) -> None:
        """Read from the log; what others appended since it was last cached was never published here."""

    def is_followed(self, thread: ThreadState) -> bool:
        """Whether somebody in this process waits for what other processes append to the thread."""
        return True

    # -------------------------------------------------------------------------------------- decide and read

    @overload
    async def decide(self, owner: Owner, thread_id: str, command: Command[T]) -> T: ...

    @overload
    async def decide(
        self, owner: Owner, thread_id: str, command: Command[A], then: Callable[[ThreadState, A], T]
    ) -> T: ...

    # Any: as the overloads say
    async def decide(
        self, owner: Owner, thread_id: str, command: Command[Any], then: Then[Any] | None = None
    ) -> Any:
        """The command's answer, or what `then` makes of the new state and that answer, once it is durable."""
        key = (owner, thread_id)
        await self._load_early(key)
        return await self._submit(key, command, then).future

    def submit(self, owner: Owner, thread_id: str, command: Command[T]) -> asyncio.Future[T]:
        """Like `decide`, for callers that do something else while they wait."""
        return self._submit((owner, thread_id), command, None).future

    async def decide_uncommitted(
        self, owner: Owner, thread_id: str, command: Command[A], then: Callable[[ThreadState, A], T]
    ) -> T:
        """Like `decide`, but returns as soon as it is decided where this process alone writes."""
        key = (owner, thread_id)
        await self._load_early(key)
        pending: PendingCommand[T] = self._submit(key, command, then)
        batch = None if self.is_shared else self._open.get(key)
        if batch is None or not batch.commands or batch.commands[-1] is not pending:
            return await pending.future
        batch.is_relied_on = True
        answer: T = pending.answer
        return answer

    async def read(self, owner: Owner, thread_id: str, view: Callable[[ThreadState], T]) -> T:
        """The result of `view` on the durable state. The state itself must not be kept."""
        if self.is_shared:
            return await self.decide(owner, thread_id, lambda thread, now: Decision(view(thread)))
        return await self.read_recent(owner, thread_id, view)

    async def read_recent(self, owner: Owner, thread_id: str, view: Callable[[ThreadState], T]) -> T:
        """Like `read`, but may lack what other processes have just appended: their notification is on its
        way. For callers that are subscribed to it, and that use `read` after a silence."""
        key = (owner, thread_id)
        cached = self._cache.get(key)
        is_behind = cached is not None and (cached.is_stale or key in self._to_refresh)
        # a state that is changing may contain something that is not durable yet
        if cached is None or is_behind or key in self._open or key in self._storing:
            return await self.decide(owner, thread_id, lambda thread, now: Decision(view(thread)))
        return view(cached.state)

    async def read_uncommitted(self, owner: Owner, thread_id: str, view: Callable[[ThreadState], T]) -> T:
        """Like `read`, but includes decisions that are not durable yet where this process alone writes."""
        key = (owner, thread_id)
        cached = None if self.is_shared else self._cache.get(key)
        if cached is None:
            return await self.read(owner, thread_id, view)
        for batches in (self._storing, self._open):
            if key in batches:
                batches[key].is_relied_on = True
        return view(cached.state)

    def recent_entries(self, run: Run) -> list[Entry] | None:
        """The durable events of this run, if the cache has all of its rows."""
        cached = self._cache.get((run.owner, run.thread_id))
        return None if cached is None else cached.entries_of(run)

    def refresh(self, owner: Owner, thread_id: str) -> None:
        """Another process has appended: the cached state catches up, and the changes are published here; soon
        if somebody waits for them, else with the next command."""
        key = (owner, thread_id)
        cached = self._cache.get(key)
        if cached is None or self.is_followed(cached.state):
            self._to_refresh.add(key)
            self._wake()
        else:
            cached.is_stale = True

    def refresh_all(self) -> None:
        """Hints were lost: every cached state may be stale."""
        for key in self._cache:
            self.refresh(*key)

    def forget(self, owner: Owner, thread_id: str) -> None:
        """The thread was deleted, or has moved on."""
        self._newest_load.pop((owner, thread_id), None)
        cached = self._cache.get((owner, thread_id))
        if cached is not None:
            self._waiting += self._roll_back(cached)

    async def flush(self) -> None:
        while self._flushing is not None:
            await asyncio.wait([self._flushing])

    # --------------------------------------------------------------------------------------------- deciding

    def _submit(self, key: Key, command: Command[Any], then: Then[Any] | None) -> PendingCommand[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        pending = PendingCommand(key, command, then, future)
        cached = None if self.is_shared or key in self._keys_waiting else self._cache.get(key)
        if cached is None:
            self._keys_waiting.add(key)
            self._waiting.append(pending)
            if self._cache.is_stale(key):
                self._to_refresh.add(key)
        else:
            self._decide(cached, pending)
        self._wake()
        return pending

    def _decide(self, cached: CachedThread, pending: PendingCommand[Any]) -> None:
        key = cached.key
        batch = self._open.get(key)
        if batch is None:
            now = max(self.store.now(), self._not_earlier)
            batch = self._open[key] = begin_batch(cached, now)
            self._cache.use(key)
        if not batch.decide(pending):
            # a rule failed half-way: what other commands decided on that state is void
            self._waiting += self._roll_back(cached)
        elif pending.events and not self.is_shared:
            self._report(self.on_decided, key, batch.changes)

    def _report(self, hook: Callable[..., None], *facts: object, **more: object) -> None:
        """A subscriber's error must not keep the callers of this batch, and of all later ones, waiting."""
        try:
            hook(*facts, **more)
        except Exception:
            log.exception("a subscriber of the log failed")

    def _roll_back(self, cached: CachedThread) -> list[PendingCommand[Any]]:
        """Drops the state; returns the commands that were decided on it and are not being stored."""
        batch = self._open.get(cached.key)
        self._forget(cached)
        if batch is None or batch.cached is not cached:
            return []
        del self._open[cached.key]
        if batch.is_relied_on or batch.changes.is_claimed is not None:
            self._report(self.on_rolled_back, cached.key, batch.changes)
        return batch.commands

    async def _decide_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        # includes rolled-back commands: nothing overtakes them while others are loaded
        self._keys_waiting.update([each.key for each in waiting])
        missing = {each.key for each in waiting if each.key not in self._cache}
        try:
            failed = await self._load_all(missing) if missing else {}
        except BaseException:
            # cancelled from outside: the next flush serves the waiting commands
            self._waiting = [*waiting, *self._waiting]
            raise
        self._keys_waiting = {each.key for each in self._waiting}
        for each in waiting:
            cached = self._cache.get(each.key)
            if each.key in failed:
                fail([each], failed[each.key])
            elif cached is None:
                # loaded, then dropped by a command before this one, or loaded again elsewhere
                self._waiting.append(each)
                self._keys_waiting.add(each.key)
            else:
                self._decide(cached, each)

    # ---------------------------------------------------------------------------------------------- storing

    def _wake(self) -> None:
        if self._flushing is None:
            # the only writer of this log: it ends by itself when nothing is pending
            self._flushing = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        """One transaction at a time, so that commands gather meanwhile."""
        try:
            while self._waiting or self._open or self._to_refresh:
                if self._to_refresh:
                    await self._catch_up_some()
                if self._waiting:
                    await self._decide_waiting()
                if not self.is_shared:
                    # what a decision triggers at once is stored with it: a run that a message starts, or that
                    # continues with a result
                    await asyncio.sleep(0)
                if self._open:
                    await self._commit()
        finally:
            self._flushing = None
            if self._waiting or self._open:
                # this task was cancelled from outside, and commands still wait
                self._wake()

    async def _commit(self) -> None:
        decided = list(self._open.items())
        self._storing = batches = dict(decided[:APPENDED_AT_ONCE])
        self._open = dict(decided[APPENDED_AT_ONCE:])
        try:
            await self._append(batches.values())
        except BaseException:
            self._give_up(batches.values(), StoreDown("The log stopped.", hint="Try again in a moment."))
            # those that only read: the next flush serves them
            self._waiting += [one for each in batches.values() for one in each.commands]
            raise
        finally:
            self._storing = {}
        for each in batches.values():
            self._conclude(each)
        for key in self._cache.shrink(in_use=self._open):
            self._newest_load.pop(key, None)

    async def _append(self, batches: Iterable[ThreadBatch]) -> None:
        until = self.store.now() + self.lease_sec
        # a clock may be set back, so it counts only for the decisions that follow a refusal
        self._not_earlier = 0.0
        appends: list[tuple[ThreadBatch, Append]] = []
        for each in batches:
            # where others write too, the store has to confirm that an answer holds
            if not each.changes.events and not self.is_shared:
                continue
            try:
                append = each.append(worker=self.worker, lease_until=until, known_tools=self._known_tools)
            # a value that JSON cannot encode fails its own thread only
            except Exception as error:  # noqa: BLE001
                self._give_up([each], error)
            else:
                appends.append((each, append))
        if appends:
            await self._store_appends(appends)

    async def _store_appends(self, appends: list[tuple[ThreadBatch, Append]]) -> None:
        try:
            results = await self.store.append([append for _, append in appends])
        except (ValueError, Unreadable) as error:
            # a text that the store cannot hold, or a contradiction in it, fails its own thread only
            if len(appends) > 1:
                for one in appends:
                    await self._store_appends([one])
                return
            log.warning("the store refused an append: %s", error)
            self._give_up([appends[0][0]], error)
        except StoreDown as error:
            self._give_up([each for each, _ in appends], error)
        # the callers get the error; the next transaction may well succeed
        except Exception as error:
            log.exception("transaction failed")
            self._give_up([each for each, _ in appends], error)
        else:
            for (each, append), result in zip(appends, results, strict=True):
                self._note_result(each, append, result)

    def _note_result(self, batch: ThreadBatch, append: Append, result: AppendResult) -> None:
        batch.is_stored = isinstance(result, Appended)
        match result:
            case Appended():
                if len(self._known_tools) > MAX_KNOWN_TOOLS:
                    self._known_tools.clear()
                self._known_tools.update([tool.version for tool in append.tools])
            case Moved():
                # another process appended first: `_conclude` has the commands decided again
                batch.fail_stuck((append.version, append.last_at))
            case RequestTaken():
                batch.fail_requests()
            case OutOfTime(now=now):
                self._not_earlier = max(now, self._not_earlier)

    def _give_up(self, batches: Collection[ThreadBatch], error: Exception) -> None:
        """The store did not say whether they were written, so the log is read when a thread is needed again.
        The callers get the error and may send the same again. A result or an approval that was stored is then
        answered as `Repeated`; every other command decides what a second try means."""
        for each in batches:
            each.is_stored = False
            commands = [*each.commands, *self._roll_back(each.cached)]
            # where nobody else writes, a command that only reads needs no append: the log answers it then.
            # Elsewhere it would query a failing store again and again
            fail([one for one in commands if one.events or self.is_shared], error)
            each.commands = [] if self.is_shared else [one for one in commands if not one.events]
            if each.is_relied_on or each.changes.is_claimed is not None:
                each.is_relied_on = False
                self._report(self.on_rolled_back, each.cached.key, each.changes)

    def _conclude(self, batch: ThreadBatch) -> None:
        """Publishes what is stored; what is not is decided again."""
        key = batch.cached.key
        if not batch.is_stored:
            self._waiting = [*batch.commands, *self._roll_back(batch.cached), *self._waiting]
            if batch.is_relied_on:
                # it may be decided differently now
                self._report(self.on_rolled_back, key, batch.changes)
            return
        if batch.changes.events:
            entries, size = batch.changes.entries, len(batch.encoded)
            self._cache.grow(batch.cached, entries, size, at=batch.now, snapshot=batch.snapshot)
            self._report(self.on_committed, key, batch.changes, batch.now, is_own=True)
        for each in batch.commands:
            # the caller may be gone
            if not each.future.done():
                each.future.set_result(each.answer)

    # -------------------------------------------------------------------------------------------- the cache

    async def _load_all(self, keys: Iterable[Key]) -> dict[Key, Exception]:
        """The errors by thread: an unreadable log fails its own thread only."""
        listed = list(keys)
        loads = await asyncio.gather(*(self._load(key) for key in listed), return_exceptions=True)
        errors = zip(listed, loads, strict=True)
        return {key: error for key, error in errors if isinstance(error, Exception)}

    async def _load_early(self, key: Key) -> None:
        """Loads the thread of one command before the flush: those of other threads do not wait for it. Not a
        second time meanwhile, nor while the thread is being stored: what is read then may lack that."""
        if key not in self._cache and key not in self._storing and key not in self._newest_load:
            await self._load(key)

    async def _load(self, key: Key) -> None:
        """Caches the thread, unless its state was dropped or loaded again meanwhile: then what was read may
        be older than the log."""
        if key in self._cache:
            # loaded since it was found missing; commands may have been decided on that state
            return
        owner, thread_id = key
        load = self._newest_load[key] = object()
        try:
            loaded = await self.store.load(owner, thread_id)
        finally:
            is_newest = self._newest_load.get(key) is load
            if is_newest:
                del self._newest_load[key]
        if not is_newest:
            return
        bodies = [decode_body(row) for row in loaded.rows]
        state = fold_loaded(owner, thread_id, loaded, bodies)
        tail = sum(len(row.body) for row in loaded.rows)
        cached = CachedThread(key, state, snapshot_size=len(loaded.snapshot or b""), tail_size=tail)
        cached.last_at = loaded.last_at
        cached.keep_rows(loaded.rows, bodies)
        self._cache.put(cached)
        self.on_loaded(state)

    async def _catch_up_some(self) -> None:
        stale = list(islice(self._to_refresh, REFRESHED_AT_ONCE))
        self._to_refresh.difference_update(stale)
        await asyncio.gather(*(self._catch_up_or_lose(key) for key in stale))

    async def _catch_up_or_lose(self, key: Key) -> None:
        cached = self._cache.get(key)
        if cached is None:
            self.on_lost(key)
            return
        try:
            await self._catch_up(cached)
        # the state is read again when it is needed; subscribers read the log
        except Exception as error:  # noqa: BLE001
            level = logging.DEBUG if isinstance(error, StoreDown) else logging.WARNING
            log.log(level, "could not refresh a thread: %s", error)
            self._forget(cached)

    async def _catch_up(self, cached: CachedThread) -> None:
        owner, thread_id = cached.key
        cached.is_stale = False
        # including the last cached row: if it is gone, the thread was purged, or deleted and created again
        version = cached.state.version
        rows = (await self.store.load(owner, thread_id, after=max(0, version - 1))).rows
        if version:
            if not rows or (rows[0].version, rows[0].at) != (version, cached.last_at):
                self._forget(cached)
                return
            rows = rows[1:]
        for row in rows:
            if row.version != cached.state.version + 1:
                raise Unreadable("rows between the cached state and the log are gone")
            changes = begin_changes(cached.state)
            changes.apply_body(decode_body(row), row.at)
            cached.state.version = row.version
            self._cache.grow(cached, changes.entries, len(row.body), at=row.at)
            self.on_committed(cached.key, changes, row.at, is_own=False)

    def _forget(self, cached: CachedThread) -> None:
        if self._cache.drop(cached):
            self._newest_load.pop(cached.key, None)
            # what is published may have a gap from here on
            self._report(self.on_lost, cached.key)
