"""What a store of logs must do. It keeps bytes and look-up rows; it knows no events and makes no decisions.

There is one write: an append at the version it was decided on. A thread that has moved on, or a time limit
that does not hold by the store's own clock, writes nothing, and the caller decides again. Look-up rows are
written in the same transaction and say only where to look; they can be made again from the log.

Every read names the owner: what belongs to another owner does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.core.run import RunState


class ThreadRow(Struct, frozen=True, gc=False, kw_only=True):
    """A thread as lists show it."""

    title: str
    created_at: float
    updated_at: float
    run_id: str | None = None
    run_state: RunState | None = None
    run_started_at: float = 0.0
    is_parked: bool = False
    is_blocked: bool = False
    """Whether the run waits for a person or a far hand."""


class Lease(Struct, frozen=True, gc=False):
    """Which worker advances the run of a thread, and for how long it may be believed to. A courtesy: what
    counts is the version of the thread."""

    worker: str
    until: float


class Append(Struct, frozen=True, gc=False, kw_only=True):
    """`body` holds the events of one append; empty, it only asks whether the thread is still at `version`.

    `calls` are the records of the calls that these events opened or moved. `in_feed` if the owner's feed has
    something of it. `lease` is stored with it; one without a worker ends the lease there is.
    """

    owner: Owner
    thread_id: str
    version: int
    at: float
    body: bytes = b""
    thread: ThreadRow | None = None
    calls: tuple[Call, ...] = ()
    in_feed: bool = False
    lease: Lease | None = None
    snapshot: bytes | None = None
    not_after: float | None = None
    not_before: float | None = None


class Appended(Struct, frozen=True, gc=False):
    """Durable."""


class Moved(Struct, frozen=True, gc=False):
    """The thread is at another version; nothing was written."""

    version: int


class OutOfTime(Struct, frozen=True, gc=False):
    """The store's clock does not allow it; nothing was written."""

    now: float


AppendResult: TypeAlias = Appended | Moved | OutOfTime


class Row(Struct, frozen=True, gc=False):
    """One append, as it is read again."""

    version: int
    at: float
    body: bytes


class Loaded(Struct, frozen=True, gc=False):
    """What a state is made from: a snapshot, if there is one, and every row after it."""

    rows: tuple[Row, ...]
    snapshot: bytes | None = None
    snapshot_version: int = 0


class FoundCall(Struct, frozen=True, gc=False):
    """Where a call is; `call` is its record as of its last append. A settled one never changes."""

    owner: Owner
    thread_id: str
    call: Call


class ThreadFound(Struct, frozen=True, gc=False):
    owner: Owner
    thread_id: str
    version: int
    row: ThreadRow


class FeedRow(Struct, frozen=True, gc=False):
    """One append that the owner's feed has. `no` grows with each, and no number is given twice."""

    no: int
    thread_id: str
    row: Row


CallKey: TypeAlias = Literal["call", "approval", "request"]


class LogStore(Protocol):
    is_shared: bool
    """Whether other processes append to the same threads: then what is cached may be old."""

    def now(self) -> float:
        """The store's time. Appends are judged by it where they are written."""
        ...

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        """Each by itself, all in one transaction: those that hold are written. At most one per thread."""
        ...

    async def load(self, owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        """The newest snapshot and the rows after it, or the rows after this version; none of an unknown
        thread."""
        ...

    async def find_call(self, owner: Owner, kind: CallKey, value: str) -> FoundCall | None:
        """By its id, its approval's id, or the request id under which a program made it."""
        ...

    async def open_calls(
        self,
        *,
        owner: Owner | None = None,
        client_id: str | None = None,
        due_before: float | None = None,
        limit: int = 1000,
    ) -> list[FoundCall]:
        """Calls that are not settled: of an owner, for a client, or due, the earliest deadline first; else
        the oldest first."""
        ...

    async def threads(
        self, owner: Owner, *, limit: int, after: tuple[float, str] | None = None
    ) -> list[ThreadFound]:
        """The last used first; `after` is the place where the page before ended."""
        ...

    async def strays(self, *, worker: str, limit: int) -> list[ThreadFound]:
        """Threads whose run nobody advances though it could go on: a lapsed lease, or parked with nothing
        open."""
        ...

    async def renew(self, worker: str, until: float) -> None:
        """All leases of this worker."""
        ...

    async def feed(self, owner: Owner, *, after: int, limit: int) -> list[FeedRow]: ...

    async def delete(self, owner: Owner, thread_id: str, version: int) -> bool:
        """Removes the thread with its log and look-ups; False if it is at another version."""
        ...

    async def purge(self, *, before: float) -> int:
        """Removes rows older than this that a snapshot covers, and settled calls; how many rows."""
        ...

    async def close(self) -> None: ...
