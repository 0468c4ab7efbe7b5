"""Limits how much one principal, and one tenant, may use: active runs, new runs per minute, stored bytes.

A run that only waits for a person or a far hand costs nothing and does not count. Each process knows its own
runs; a shared store is asked only once this process itself has an eighth of the limit at work, so that an
owner with one run after the other costs no query. Each other worker may let in that many more. The rate is
per process. The store counts stored bytes, once enough new bytes have come in to matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from math import ceil, inf
from types import TracebackType
from typing import Self, TypeAlias

from msgspec import Struct

from farhand.clock import monotonic
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.settings import Limits, size_in_words
from farhand.errors import PeerFault, TooMany
from farhand.eventlog.log import EventLog

MINUTE = 60.0
MAX_OWNERS = 10_000
UNCOUNTED = 64
"""The share of a byte limit, as 1/n, that may come in before the store counts again."""
UNASKED = 8
"""The same for active runs: at 1/n of the limit here, a shared store is asked how many there are."""
LOOKS, PAUSE_SEC = 20, 0.05
"""A run that is just being stored may be counted twice: how often, and at what interval, to check again until
that is settled."""

Key: TypeAlias = tuple[str, str | None]
"""A tenant, and one subject of it or all."""


class QuotaUsage(Struct, eq=False):
    """What one principal, or one tenant, uses in this process."""

    key: Key
    at_work: int = 0
    """Runs that are advanced here."""
    starting: int = 0
    """Runs that have a slot and are being stored."""
    minute_from: float = -inf
    started: int = 0
    """Runs that were started since `minute_from`."""
    added: int = 0
    """Bytes that came in since the store counted them."""


class Starts(Struct, eq=False):
    """Posts that start a run in one thread: at most one of them does, so they share one slot."""

    usages: tuple[QuotaUsage, ...]
    """Where the slot is counted; nowhere once the run is active."""
    posts: int = 0
    has_started: bool = False
    """Whether one of them has started its run, as far as is known."""


class Quotas:
    def __init__(self, eventlog: EventLog, limits: Limits) -> None:
        self.at_work = 0
        """Runs that this process advances."""
        self._resting: set[tuple[str, int]] = set()
        """Runs that are advanced here but only wait, by run and fence."""
        self.exempt: Owner | None = None
        """The owner that no quota applies to."""
        self._log = eventlog
        self._usages: dict[Key, QuotaUsage] = {}
        """The most recently used ones, and all with a run here."""
        self._starts: dict[tuple[Owner, str], Starts] = {}
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

    def reserve_slot(self, owner: Owner, thread_id: str, size: int) -> RunSlot:
        """Reserves a slot for a run that is about to be stored, with a message of this size; raises
        `TooMany` if there is none.

        When it exits, the run counts as at work.
        """
        return RunSlot(self, (owner, thread_id), size)

    async def reserve(self, thread: tuple[Owner, str], size: int) -> None:
        if thread[0] == self.exempt:
            return
        starts = self._starts.get(thread)
        if starts is None:
            usages = self._usages_of(thread[0])
            await self._find(usages, size)
            starts = self._starts.get(thread)
            if starts is None:
                starts = self._starts[thread] = Starts(usages)
            else:
                # another post to the thread has found a slot meanwhile
                _free(usages)
        starts.posts += 1

    def release(self, thread: tuple[Owner, str], *, has_started: bool) -> None:
        starts = self._starts.get(thread)
        if starts is None:
            # of the exempt owner
            return
        starts.posts -= 1
        starts.has_started = starts.has_started or has_started
        if not starts.posts:
            del self._starts[thread]
            _free(starts.usages)
            if not starts.has_started:
                self._give_back(thread[0])

    def begin(self, run: Run) -> None:
        """This claim on the run has work to do here."""
        self.at_work += 1
        for usage in self._usages_of(run.owner):
            usage.at_work += 1
        starts = self._starts.get((run.owner, run.thread_id))
        if starts is not None:
            # its slot is no longer needed
            _free(starts.usages)
            starts.usages = ()

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
        self.at_work -= 1
        for usage in self._usages_of(run.owner):
            usage.at_work -= 1

    def _give_back(self, owner: Owner) -> None:
        """None of the posts that shared a slot started a run: it does not count as a new one."""
        for usage in self._usages_of(owner):
            usage.started = max(0, usage.started - 1)

    def _usages_of(self, owner: Owner) -> tuple[QuotaUsage, QuotaUsage]:
        return self._usage((owner.tenant, owner.subject)), self._usage((owner.tenant, None))

    def _usage(self, key: Key) -> QuotaUsage:
        # the last one in the dictionary is the one that was used last
        usage = self._usages[key] = self._usages.pop(key) if key in self._usages else QuotaUsage(key)
        if len(self._usages) > MAX_OWNERS:
            self._forget_oldest()
        return usage

    def _forget_oldest(self) -> None:
        """Keeps memory bounded, however many keys there are."""
        oldest = self._usages.pop(next(iter(self._usages)))
        if oldest.at_work or oldest.starting:
            self._usages[oldest.key] = oldest

    async def _find(self, usages: tuple[QuotaUsage, QuotaUsage], size: int) -> None:
        taken = 0
        try:
            for quota, usage in zip(self._quotas, usages, strict=True):
                usage.added += size
                if usage.added * UNCOUNTED >= quota.stored:
                    await self._check_stored(quota, usage, size)
                if usage.at_work + usage.starting >= quota.asks_from:
                    await self._check_running(quota, usage)
                # at once: a slot that is found and not taken yet would be given away twice
                usage.starting += 1
                taken += 1
            now = monotonic()
            for quota, usage in zip(self._quotas, usages, strict=True):
                quota.count_start(usage, now)
        except BaseException:
            _free(usages[:taken])
            raise

    async def _check_running(self, quota: _Quota, usage: QuotaUsage) -> None:
        here = usage.at_work + usage.starting
        if here >= quota.running:
            raise quota.too_many_runs(here)
        if not self._log.is_shared:
            return
        everywhere = await self._log.count_running(*usage.key)
        looks = LOOKS
        # slots may have become active runs here since the store counted
        while max(everywhere, usage.at_work) + usage.starting >= quota.running:
            if everywhere >= quota.running or not looks:
                raise quota.too_many_runs(everywhere)
            looks -= 1
            await asyncio.sleep(PAUSE_SEC)
            everywhere = await self._log.count_running(*usage.key)

    async def _check_stored(self, quota: _Quota, usage: QuotaUsage, size: int) -> None:
        kept = await self._log.stored_bytes(*usage.key) + (await self._log.files.kept(*usage.key)).size
        if kept + size > quota.stored:
            raise quota.too_much(kept)
        usage.added = 0


class RunSlot:
    """A slot for one run while that is being stored. Use it as an asynchronous context manager."""

    __slots__ = ("_has_started", "_quotas", "_size", "_thread")

    def __init__(self, quotas: Quotas, thread: tuple[Owner, str], size: int) -> None:
        self._quotas = quotas
        self._thread = thread
        self._size = size
        self._has_started = True

    def give_back(self) -> None:
        """Nothing was started: the request was a repeated one."""
        self._has_started = False

    async def __aenter__(self) -> Self:
        await self._quotas.reserve(self._thread, self._size)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # a request that is refused starts nothing; after any other error that is not known
        has_started = self._has_started and not isinstance(error, PeerFault)
        self._quotas.release(self._thread, has_started=has_started)


class _Quota:
    """The limits of a principal, or of a tenant."""

    def __init__(self, has: str, whose: str, running: int, per_min: int, stored: int) -> None:
        self.running = running
        self.stored = stored
        self.asks_from = min(running, max(1, running // UNASKED))
        self._has = has
        self._whose = whose
        self._per_min = per_min

    def count_start(self, usage: QuotaUsage, now: float) -> None:
        if now - usage.minute_from >= MINUTE:
            usage.minute_from, usage.started = now, 0
        if usage.started >= self._per_min:
            wait = max(1, ceil(usage.minute_from + MINUTE - now))
            raise TooMany(
                f"{self._has} started {self._per_min} runs within a minute, which is the limit.",
                hint=f"Try again in {wait} s; nothing was applied.",
                retry_after=wait,
            )
        usage.started += 1

    def too_many_runs(self, count: int) -> TooMany:
        return TooMany(
            f"{self._has} {count} runs in progress; the limit is {self.running}.",
            hint="Try again when one of them has ended, or stop one; nothing was applied.",
            retry_after=5,
        )

    def too_much(self, kept: int) -> TooMany:
        return TooMany(
            f"{self._whose} chats and files use {size_in_words(kept)}; "
            f"this message would exceed the limit of {size_in_words(self.stored)}.",
            hint="Delete chats that are no longer needed; nothing was applied.",
            retry_after=60,
        )


def _free(usages: Iterable[QuotaUsage]) -> None:
    for usage in usages:
        usage.starting -= 1
