"""How much one principal, and one tenant, may use: runs at work at once, new runs per minute, stored bytes.

A run that only waits for a person or a far hand costs nothing and does not count. Each process knows its own
runs; a shared store is asked only once this process itself has an eighth of the limit at work, so that an
owner with one run after the other costs no query. Each other worker may let in that many more. The rate is
per process. The store counts stored bytes, once enough new bytes have come in to matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from math import ceil
from typing import TypeAlias, TypeVar

from farhand.clock import monotonic
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.settings import Limits
from farhand.core.size import size_in_words
from farhand.errors import TooMany
from farhand.eventlog.log import EventLog

T = TypeVar("T")

MINUTE = 60.0
REMEMBERED = 10_000
UNCOUNTED = 64
"""The share of a byte limit, as 1/n, that may come in before the store counts again."""
UNASKED = 8
"""The same for runs at work: at 1/n of the limit here, a shared store is asked how many there are."""
LOOKS, PAUSE_SEC = 20, 0.05
"""A run that is just being stored may be counted twice: how often, and at what interval, to check again until
that is settled."""

Key: TypeAlias = tuple[str, str | None]
"""A tenant, and one subject of it or all."""


class Quotas:
    def __init__(self, eventlog: EventLog, limits: Limits) -> None:
        self.at_work: dict[Key, int] = {}
        """Runs that this process advances, by tenant and subject."""
        self._resting: set[tuple[str, int]] = set()
        """Runs that are advanced here but only wait, by run and fence."""
        self.exempt: Owner | None = None
        """The owner that no quota applies to."""
        self._log = eventlog
        self._starting: dict[Key, int] = {}
        self._threads: dict[tuple[Owner, str], int] = {}
        """Threads in which runs are being started: of several posts to one thread, at most one starts a
        run."""
        self._quotas = (
            _Quota(
                "You have", "Your", limits.running_per_principal, limits.runs_per_min, limits.stored_bytes
            ),
            _Quota(
                "Your organisation has",
                "Your organisation's",
                limits.running_per_tenant,
                limits.runs_per_min_of_tenant,
                limits.stored_bytes_of_tenant,
            ),
        )

    def place(self, owner: Owner, thread_id: str, size: int) -> Place:
        """Reserves a place for a run that is about to be stored, with a message of this size; raises
        `TooMany` if there is none.

        When it exits, the run counts as at work.
        """
        return Place(self, owner, thread_id, size)

    async def reserve(self, owner: Owner, thread_id: str, size: int) -> None:
        thread = (owner, thread_id)
        if thread not in self._threads:
            keys = _keys(owner)
            await self._find(keys, size)
            if thread in self._threads:
                # another post to the thread has found a place in the meantime
                self._free(keys)
        _add(self._threads, thread)

    def release(self, owner: Owner, thread_id: str) -> None:
        thread = (owner, thread_id)
        _take_off(self._threads, thread)
        if thread not in self._threads:
            self._free(_keys(owner))

    def begin(self, run: Run) -> None:
        """This claim on the run has work to do here."""
        for key in _keys(run.owner):
            _add(self.at_work, key)

    def rest(self, run: Run) -> None:
        """It only waits from now on: its tools wait for answers."""
        self.end(run)
        self._resting.add((run.run_id, run.fence))

    def go_on(self, run: Run) -> None:
        """It works again; not a run that has ended meanwhile, whose tools are the last to know."""
        if (run.run_id, run.fence) in self._resting:
            self._resting.discard((run.run_id, run.fence))
            self.begin(run)

    def end(self, run: Run) -> None:
        """No task advances it here any more."""
        claim = (run.run_id, run.fence)
        if claim in self._resting:
            self._resting.discard(claim)
            return
        for key in _keys(run.owner):
            _take_off(self.at_work, key)

    def give_back(self, owner: Owner) -> None:
        """Nothing was started: a request was repeated, and does not count as a new run."""
        for quota, key in zip(self._quotas, _keys(owner), strict=True):
            quota.uncount_start(key)

    async def _find(self, keys: tuple[Key, Key], size: int) -> None:
        taken: list[Key] = []
        try:
            for quota, key in zip(self._quotas, keys, strict=True):
                if quota.may_be_full(key, size):
                    await self._check_stored(quota, key, size)
                await self._check_running(quota, key)
                # at once: a place that is found and not taken yet would be given away twice
                _add(self._starting, key)
                taken.append(key)
            now = monotonic()
            for quota, key in zip(self._quotas, keys, strict=True):
                quota.count_start(key, now)
        except BaseException:
            self._free(taken)
            raise

    def _free(self, keys: Iterable[Key]) -> None:
        for key in keys:
            _take_off(self._starting, key)

    async def _check_running(self, quota: _Quota, key: Key) -> None:
        here = self.at_work.get(key, 0) + self._starting.get(key, 0)
        if here >= quota.running:
            raise quota.too_many_runs(here)
        if here < quota.asks_from or not self._log.is_shared:
            return
        everywhere = await self._log.count_running(*key)
        looks = LOOKS
        while everywhere + self._starting.get(key, 0) >= quota.running:
            if everywhere >= quota.running or not looks:
                raise quota.too_many_runs(everywhere)
            looks -= 1
            await asyncio.sleep(PAUSE_SEC)
            everywhere = await self._log.count_running(*key)

    async def _check_stored(self, quota: _Quota, key: Key, size: int) -> None:
        kept = await self._log.stored_bytes(*key) + (await self._log.files.kept(*key)).size
        if kept + size > quota.stored:
            raise quota.too_much(kept)
        quota.counted(key)


class Place:
    """A place for one run while that is being stored. Use it as an asynchronous context manager."""

    __slots__ = ("_owner", "_quotas", "_size", "_thread_id")

    def __init__(self, quotas: Quotas, owner: Owner, thread_id: str, size: int) -> None:
        self._quotas = quotas
        self._owner = owner
        self._thread_id = thread_id
        self._size = size

    async def __aenter__(self) -> None:
        if self._owner != self._quotas.exempt:
            await self._quotas.reserve(self._owner, self._thread_id, self._size)

    async def __aexit__(self, *error: object) -> None:
        if self._owner != self._quotas.exempt:
            self._quotas.release(self._owner, self._thread_id)


class _Quota:
    """The limits of a principal, or of a tenant, and what was counted against them here."""

    def __init__(self, has: str, whose: str, running: int, per_min: int, stored: int) -> None:
        self.running = running
        self.stored = stored
        self.asks_from = max(1, running // UNASKED)
        self._has = has
        self._whose = whose
        self._per_min = per_min
        self._started: dict[Key, tuple[float, int]] = {}
        self._added: dict[Key, int] = {}

    def may_be_full(self, key: Key, size: int) -> bool:
        """Notes this many more bytes; True once the store has to count."""
        added = self._added[key] = self._added.pop(key, 0) + size
        if len(self._added) > REMEMBERED:
            _forget_oldest(self._added)
        return added * UNCOUNTED >= self.stored

    def counted(self, key: Key) -> None:
        self._added.pop(key, None)

    def count_start(self, key: Key, now: float) -> None:
        since, count = self._started.pop(key, (now, 0))
        if now - since >= MINUTE:
            since, count = now, 0
        is_over = count >= self._per_min
        self._started[key] = (since, count if is_over else count + 1)
        if len(self._started) > REMEMBERED:
            _forget_oldest(self._started)
        if is_over:
            wait = max(1, ceil(since + MINUTE - now))
            raise TooMany(
                f"{self._has} started {self._per_min} runs within a minute, which is the limit.",
                hint=f"Try again in {wait} s; nothing was applied.",
                retry_after=wait,
            )

    def uncount_start(self, key: Key) -> None:
        since, count = self._started.get(key, (0.0, 0))
        if count:
            self._started[key] = (since, count - 1)

    def too_many_runs(self, count: int) -> TooMany:
        return TooMany(
            f"{self._has} {count} runs in progress; the limit is {self.running}.",
            hint="Try again when one of them has ended, or stop one; nothing was applied.",
            retry_after=5,
        )

    def too_much(self, kept: int) -> TooMany:
        return TooMany(
            f"{self._whose} chats and files take {size_in_words(kept)}; "
            f"with this message they would exceed the limit of {size_in_words(self.stored)}.",
            hint="Delete chats that are no longer needed; nothing was applied.",
            retry_after=60,
        )


def _add(counts: dict[T, int], key: T) -> None:
    counts[key] = counts.get(key, 0) + 1


def _take_off(counts: dict[T, int], key: T) -> None:
    """Removes the key at zero."""
    left = counts.pop(key) - 1
    if left:
        counts[key] = left


def _keys(owner: Owner) -> tuple[Key, Key]:
    return (owner.tenant, owner.subject), (owner.tenant, None)


def _forget_oldest(remembered: dict[Key, int] | dict[Key, tuple[float, int]]) -> None:
    """Keeps memory bounded, however many keys there are."""
    del remembered[next(iter(remembered))]
