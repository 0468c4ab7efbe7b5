"""Decide, append, publish: the only way in which a thread changes.

A command is a function from a state and the time to a decision. Commands that wait are decided together, each
on the state as the one before leaves it, and stored by one append per thread, all in one transaction. A
thread that another process has moved on meanwhile is read again, and its commands are decided again. Answers
are given and events published when they are durable, never before.

Owns the cache of states, which is bounded and may be thrown away at any time. Must not know what is decided.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from farhand.core import state as fold
from farhand.core.decide.decision import Decision
from farhand.core.principal import Owner
from farhand.core.state import ThreadState
from farhand.errors import ShuttingDown, StoreDown
from farhand.eventlog.batch import Cached, Command, Key, ThreadBatch, Waiting, fail
from farhand.eventlog.codec import decode_body, fold_loaded
from farhand.eventlog.pubsub import Broker, Published
from farhand.store.log.base import Appended, LogStore, OutOfTime

log = logging.getLogger("farhand.eventlog")

T = TypeVar("T")

CACHE_BYTES = 64 * 1024 * 1024


class Threads:
    def __init__(
        self, store: LogStore, broker: Broker | None = None, *, cache_bytes: int = CACHE_BYTES
    ) -> None:
        self.broker = broker or Broker()
        self._store = store
        self._cache: OrderedDict[Key, Cached] = OrderedDict()
        self._cache_bytes = cache_bytes
        self._size = 0
        # the answers of one batch have any types; each goes to the one who asked with its command
        self._waiting: list[Waiting[Any]] = []
        self._stale: set[Key] = set()
        self._wanted = asyncio.Event()

    @property
    def cached_bytes(self) -> int:
        return self._size

    async def decide(self, owner: Owner, thread_id: str, command: Command[T]) -> T:
        """The command's answer, once all that it says is durable."""
        waiting = Waiting((owner, thread_id), command)
        self._waiting.append(waiting)
        self._wanted.set()
        return await waiting.answer

    async def read(self, owner: Owner, thread_id: str, view: Callable[[ThreadState], T]) -> T:
        """What `view` sees in the state, all of which is durable. The state itself must not be kept."""
        return await self.decide(owner, thread_id, lambda thread, now: Decision(view(thread)))

    async def rows(self, owner: Owner, thread_id: str, *, after: int) -> list[Published]:
        """What was appended after this version, from the store."""
        loaded = await self._store.load(owner, thread_id, after=after)
        return [Published(row.version, row.at, decode_body(row)) for row in loaded.rows]

    def refresh(self, owner: Owner, thread_id: str) -> None:
        """Another process has appended: the cached state moves on soon, and subscribers here are told."""
        self._stale.add((owner, thread_id))
        self._wanted.set()

    async def serve(self) -> None:
        """For ever: decides and stores what waits. One batch at a time, so that commands gather meanwhile."""
        try:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                await self._catch_up_all()
                while self._waiting:
                    batch, self._waiting = self._waiting, []
                    await self._run(batch)
        finally:
            stopping = ShuttingDown("The server is about to stop.", hint="Ask again in a moment.")
            fail(self._waiting, stopping)

    async def _run(self, batch: list[Waiting[Any]]) -> None:
        """Until each command of the batch has its answer, or the store is down."""
        now = self._store.now()
        while batch:
            try:
                batch, store_time = await self._commit(await self._gather(batch, now))
            except StoreDown as error:
                log.warning("%d commands were not stored: %s", len(batch), error)
                fail(batch, error)
                return
            except asyncio.CancelledError:
                fail(batch, ShuttingDown("The server is about to stop.", hint="Ask again in a moment."))
                raise
            now = max(store_time, self._store.now())

    async def _gather(self, batch: list[Waiting[Any]], now: float) -> list[ThreadBatch]:
        """The commands by thread, decided."""
        by_key: dict[Key, list[Waiting[Any]]] = {}
        for each in batch:
            by_key.setdefault(each.key, []).append(each)
        batches: list[ThreadBatch] = []
        for key, commands in by_key.items():
            try:
                cached = await self._cached(key)
            except StoreDown:
                raise
            # a log that makes no sense is the fault of that thread alone
            except Exception as error:  # noqa: BLE001
                fail(commands, error)
            else:
                batches.append(ThreadBatch(cached, commands, now))
        for thread in batches:
            thread.decide()
        return batches

    async def _commit(self, batches: list[ThreadBatch]) -> tuple[list[Waiting[Any]], float]:
        """One append per thread. Gives what has to be decided again, and the store's time if that was why."""
        due = [each for each in batches if each.is_due(is_shared=self._store.is_shared)]
        appends = [each.append() for each in due]
        try:
            results = await self._store.append(appends) if appends else []
        except BaseException:
            # whether it was written is unknown: the log is asked when the thread is needed again
            for each in due:
                self._forget(each.cached)
            raise
        store_time = 0.0
        for each, result in zip(due, results, strict=True):
            each.is_stored = isinstance(result, Appended)
            if isinstance(result, OutOfTime):
                store_time = max(store_time, result.now)
        return self._conclude(batches), store_time

    def _conclude(self, batches: list[ThreadBatch]) -> list[Waiting[Any]]:
        """Publishes what is stored; gives the commands of what is not."""
        again: list[Waiting[Any]] = []
        for each in batches:
            if each.is_stored:
                self._publish(each)
            else:
                self._forget(each.cached)
                again += each.commands
        self._shrink()
        return again

    def _publish(self, batch: ThreadBatch) -> None:
        if batch.events:
            self._size += batch.cached.grow(len(batch.encoded), is_snapshot=batch.snapshot is not None)
            owner, thread_id = batch.cached.key
            version = batch.cached.state.version
            self.broker.publish(owner, thread_id, Published(version, batch.now, batch.body))
        for each in batch.commands:
            each.conclude()

    async def _cached(self, key: Key) -> Cached:
        cached = self._cache.get(key)
        if cached is not None:
            self._cache.move_to_end(key)
            return cached
        owner, thread_id = key
        loaded = await self._store.load(owner, thread_id)
        size = len(loaded.snapshot or b"") + sum(len(row.body) for row in loaded.rows)
        cached = Cached(key, fold_loaded(owner, thread_id, loaded), size=size, rows=len(loaded.rows))
        self._cache[key] = cached
        self._size += size
        return cached

    async def _catch_up_all(self) -> None:
        while self._stale:
            key = self._stale.pop()
            cached = self._cache.get(key)
            try:
                await self._catch_up(cached) if cached is not None else self.broker.lose(*key)
            # the state is read again when it is needed; subscribers look at the log
            except Exception as error:  # noqa: BLE001
                log.warning("a thread could not be refreshed: %s", error)
                self.broker.lose(*key)
                if cached is not None:
                    self._forget(cached)

    async def _catch_up(self, cached: Cached) -> None:
        owner, thread_id = cached.key
        loaded = await self._store.load(owner, thread_id, after=cached.state.version)
        for row in loaded.rows:
            body = decode_body(row)
            fold.append(cached.state, body.events, row.at)
            self._size += cached.grow(len(row.body))
            self.broker.publish(owner, thread_id, Published(row.version, row.at, body))

    def _forget(self, cached: Cached) -> None:
        if self._cache.get(cached.key) is cached:
            del self._cache[cached.key]
            self._size -= cached.size
            # what was published may have a gap from here on
            self.broker.lose(*cached.key)

    def _shrink(self) -> None:
        """The least recently used states go first; one of them always stays."""
        while self._size > self._cache_bytes and len(self._cache) > 1:
            key, cached = next(iter(self._cache.items()))
            del self._cache[key]
            self._size -= cached.size
