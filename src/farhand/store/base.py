"""What a store must do. It keeps bytes and look-up rows; it knows no events and makes no decisions.

There is one write to a thread: an append at the version it was decided on. A thread that has moved on, or a
time limit that does not hold by the store's own clock, writes nothing, and the caller decides again. Look-up
rows are written in the same transaction and say only where to look; they can be made again from the log.
`farhand.testing.store_laws` holds every backend to this.

Every read names the owner: what belongs to another owner does not exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from farhand.core.call import Call
from farhand.core.client import Client
from farhand.core.file import Kept, StoredFile
from farhand.core.principal import Owner
from farhand.core.run import Run, RunState
from farhand.core.tool import Tool
from farhand.errors import StoreDown
from farhand.store.presence import Streams

ARRIVING_SEC = 3600.0
"""A file that is not complete though its last piece is older than this never will be: its sender is gone."""


class ThreadRow(Struct, frozen=True, gc=False, kw_only=True):
    """A thread as lists show it."""

    title: str
    created_at: float
    updated_at: float
    run_id: str | None = None
    run_state: RunState | None = None
    is_parked: bool = False
    open_calls: int = 0
    """How many calls of the thread are not settled."""
    runs: int = 0
    """How many runs the thread has had."""
    kept_from: int | None = None
    """The version after which an active run's rows begin: a purge keeps them, and its calls. None: all that a
    snapshot covers may go."""


class Lease(Struct, frozen=True, gc=False):
    """Which worker advances the run of a thread, and for how long it may be believed to. A courtesy: what
    counts is the version of the thread."""

    worker: str
    until: float


class Append(Struct, frozen=True, gc=False, kw_only=True):
    """`body` holds the events of one append; empty, it only asks whether the thread is still at `version`.

    `calls` are the records of the calls that these events opened or moved, `runs` of the runs that began,
    parked, went on or ended. `tools` are kept beside the calls that were opened with them, by their versions.
    `files` belong to the thread from now on, as far as they are the owner's. `feed` is how many entries the
    owner's feed gets: they take the next numbers of that feed. `lease` is stored with it; one without a
    worker ends the lease there is.
    """

    owner: Owner
    thread_id: str
    version: int
    at: float
    body: bytes = b""
    thread: ThreadRow | None = None
    calls: tuple[Call, ...] = ()
    runs: tuple[Run, ...] = ()
    tools: tuple[Tool, ...] = ()
    files: tuple[str, ...] = ()
    feed: int = 0
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


class RequestTaken(Struct, frozen=True, gc=False):
    """Another thread of the owner has a call of the same request id; nothing was written."""


AppendResult: TypeAlias = Appended | Moved | OutOfTime | RequestTaken


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


class CallFilter(Struct, frozen=True, gc=False, kw_only=True):
    """Which open calls: of an owner, for a client, for any client (`is_client`), without a run (`is_direct`),
    with a deadline before a time."""

    owner: Owner | None = None
    client_id: str | None = None
    due_before: float | None = None
    is_direct: bool = False
    is_client: bool = False


class ThreadFound(Struct, frozen=True, gc=False):
    owner: Owner
    thread_id: str
    version: int
    row: ThreadRow


class FeedRow(Struct, frozen=True, gc=False):
    """Entries of an owner's feed that were stored together: numbers `no - count + 1` to `no`.

    `body` is that of an append if it has a `thread_id` and a `version`, else what `tell` was given. Numbers
    of one owner grow without gaps and none is given twice, whatever is removed.
    """

    no: int
    count: int
    at: float
    body: bytes
    thread_id: str | None = None
    version: int | None = None


class Lookups(Struct, frozen=True, gc=False, kw_only=True):
    """The look-up rows of a thread as its log makes them at this version.

    `is_whole` if the log has every row of the thread: then no others belong to it. Else rows of settled calls
    and ended runs may stand for what was purged from the log, and stay. Calls that were settled and runs that
    ended `before` this time are corrected where they are there, and not made again: a purge may have removed
    them, except for the calls of an active run (`ThreadRow.kept_from`).
    """

    owner: Owner
    thread_id: str
    version: int
    thread: ThreadRow
    calls: tuple[Call, ...]
    runs: tuple[Run, ...]
    is_whole: bool
    before: float


class PurgeCount(Struct, frozen=True):
    """How much a purge removes: settled calls, ended runs with their rows, entries of feeds, loose files."""

    calls: int = 0
    journals: int = 0
    news: int = 0
    files: int = 0


ThreadKey: TypeAlias = tuple[Owner, str]
CallKey: TypeAlias = Literal["call", "approval", "request"]
Counted: TypeAlias = Literal["threads", "running", "open_calls", "bytes"]
"""`running`: runs at work, so not ended and not blocked. `bytes`: what the threads take in the log; once a
purge has removed rows of one, its snapshot counts, too, since it stands for them."""

HintListener: TypeAlias = Callable[[str, str], None]
"""Is told of a topic and of what happened there; an empty topic means that hints may have been lost."""

THREAD_MOVED = "thread"
"""Topic of threads that another process appended to; the item is what `thread_key` makes of one."""

CLIENTS_CHANGED = "clients"
"""Topic of owners whose registrations another process changed; the item is what `owner_key` makes of one."""

FEED_GREW = "feed"
"""Topic of owners whose feed another process added to."""


def owner_key(owner: Owner) -> str:
    return f"{owner.tenant}\0{owner.subject}"


def thread_key(owner: Owner, thread_id: str) -> str:
    return f"{owner.tenant}\0{owner.subject}\0{thread_id}"


def owner_of(key: str) -> Owner:
    tenant, subject = key.split("\0")[:2]
    return Owner(tenant, subject)


def thread_of(key: str) -> tuple[Owner, str]:
    tenant, subject, thread_id = key.split("\0")
    return Owner(tenant, subject), thread_id


class FileStore(Protocol):
    """The files of a store, in pieces. An append binds them to its thread, and they go with it."""

    async def get(self, owner: Owner, ref: str) -> StoredFile | None:
        """One that has arrived, with its size."""
        ...

    async def piece(self, owner: Owner, ref: str, no: int) -> bytes | None:
        """Of a file that has arrived; the first piece is number 0."""
        ...

    async def kept(self, tenant: str, subject: str | None = None) -> Kept:
        """How much is kept for a tenant, or for one subject of it; what is arriving counts as far as it is
        here."""
        ...

    async def put(self, file: StoredFile, no: int, pieces: Sequence[bytes], *, is_last: bool) -> bool:
        """The next pieces of a file; number 0 begins it, the last one completes it, and nobody finds it
        before. False if the file is there already, was given up, or does not follow on what is there."""
        ...

    async def drop(self, owner: Owner, ref: str) -> None:
        """With all its pieces, complete or not."""
        ...


class ClientStore(Protocol):
    """Registrations. A change and what the owner's feed is told of it are stored together."""

    async def all(self, owner: Owner | None = None) -> list[Client]:
        """Every registration there is, of one owner or of all."""
        ...

    async def put(self, client: Client, notice: bytes = b"") -> Literal["put", "moved", "name_taken"]:
        """`moved`: the stored one is not the version before this one (none for version 1). `name_taken`:
        another client of the owner has a tool of one of these names."""
        ...

    async def drop(
        self, client: Client, notice: bytes = b"", *, if_away: bool = False
    ) -> Literal["dropped", "moved", "here"]:
        """`moved`: it is not there in this version. `here`: `if_away`, and it has a stream somewhere."""
        ...


class Store(Protocol):
    is_shared: bool
    """Whether other processes append to the same threads: then what is cached may be old, and leases are
    short and renewed."""

    files: FileStore
    clients: ClientStore
    streams: Streams | None
    """None in a store that one process has to itself: it knows its streams."""

    def now(self) -> float:
        """The store's time. Appends are judged by it where they are written."""
        ...

    async def check(self) -> None:
        """Raises `StoreDown` while it cannot be read or written."""
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

    async def open_calls(self, which: CallFilter, *, limit: int = 1000) -> list[FoundCall]:
        """Calls that are not settled, the oldest first, or the earliest deadline first where the filter has
        one. One that cannot be read is left out."""
        ...

    async def threads(
        self, owner: Owner, *, limit: int, after: tuple[float, str] | None = None
    ) -> list[ThreadFound]:
        """The last used first; `after` is the place where the page before ended. One that cannot be read is
        left out, and the page is full all the same."""
        ...

    async def find_run(self, owner: Owner, run_id: str) -> Run | None: ...

    async def runs(self, owner: Owner, *, limit: int, after: str | None = None) -> list[Run]:
        """Of all threads, the last begun first (by `started_at`, then by id); `after` is the run id that the
        page before ended with (one that is not there begins again)."""
        ...

    async def find_tool(self, version: str) -> Tool | None:
        """The tool as it was when a call of this version was opened."""
        ...

    async def count(self, what: Counted, tenant: str, subject: str | None = None) -> int:
        """Of a tenant, or of one subject of it."""
        ...

    async def claimable(
        self, *, limit: int, skip: Collection[str] = (), reserve_sec: float = 0.0
    ) -> list[ThreadFound]:
        """Threads whose run nobody advances though it could go on: parked with nothing open, or without a
        lease that counts. Those whose run is in `skip` hide no others. What is found is hidden from everybody
        for `reserve_sec`: it gets a lease of no worker for that long, which nobody renews."""
        ...

    async def renew(self, worker: str, until: float) -> None:
        """All leases of this worker; a time that has passed ends them."""
        ...

    async def add_to_feed(self, owner: Owner, body: bytes, thread_id: str | None = None) -> None:
        """One entry for the owner's feed of something that no thread's log has."""
        ...

    async def feed(self, owner: Owner, *, after: int, limit: int) -> list[FeedRow]:
        """The rows that have an entry with a number above `after`, in order."""
        ...

    async def feed_span(self, owner: Owner) -> tuple[int, int]:
        """The numbers of the first entry that no purge has removed and of the last one that was ever given:
        (1, 0) in the beginning and (n + 1, n) once all are purged. Deleting a thread moves neither."""
        ...

    async def delete(self, owner: Owner, thread_id: str, version: int) -> bool:
        """Removes the thread with its log, look-ups, feed entries and files that no other thread has; False
        if it is at another version."""
        ...

    async def without_snapshot(self, *, before: float, limit: int) -> list[ThreadKey]:
        """Threads with rows older than this that no snapshot covers, and whose last append is older, too."""
        ...

    async def put_snapshot(self, owner: Owner, thread_id: str, version: int, body: bytes) -> None:
        """Of the thread at this version; an older one than there is changes nothing."""
        ...

    async def purge(self, *, before: float, dry_run: bool = False) -> PurgeCount:
        """Removes, or only counts, what is older than this: settled calls, ended runs, rows covered by a
        snapshot, feed entries, files of no thread; and files that stopped arriving (`ARRIVING_SEC`). Threads
        and what their snapshots hold stay. An active run (`ThreadRow.kept_from` is set) keeps its rows and
        the calls of its `run_id`."""
        ...

    async def thread_keys(
        self, *, limit: int, after: tuple[Owner, str] | None = None
    ) -> list[tuple[Owner, str]]:
        """Every thread of every owner, by owner and id; `after` is the last one of the page before."""
        ...

    async def rebuild(self, lookups: Lookups, *, dry_run: bool = False) -> int | None:
        """Makes the look-up rows of one thread again, and counts its rows and bytes again: how many rows of
        look-ups differed. None if its log is at another version, or gone. Leases, feeds, tools and files stay
        as they are. Of two calls with one request id the one that was opened last has it."""
        ...

    def listen(self, listener: HintListener) -> None:
        """From now on this function hears what other processes change. Hints: some may be lost."""
        ...

    def notify(self, topic: str, item: str) -> None:
        """Tells the other processes, soon; nothing in a store that one process has to itself."""
        ...

    async def close(self) -> None: ...


SOON_SEC = 8.0
"""Longer than any write takes that comes to its end; shorter than most are willing to wait."""

T = TypeVar("T")


class Shared(Protocol):
    @property
    def is_shared(self) -> bool: ...


def bounded_wait(store: Shared, work: Awaitable[T]) -> Awaitable[T]:
    """What the work brings. `StoreDown` if that takes too long: what it has asked the store for may be kept
    all the same."""
    # a store of this process alone is never in doubt
    return _in_time(work) if store.is_shared else work


async def _in_time(work: Awaitable[T]) -> T:
    patience = asyncio.timeout(SOON_SEC)
    try:
        async with patience:
            return await work
    except TimeoutError:
        if not patience.expired():
            raise
        raise StoreDown(
            "The store has not said yet whether this was kept.",
            hint="Send the same again in a moment: it is not done twice.",
        ) from None


async def remove_in_slices(remove: Callable[[], Awaitable[int]]) -> int:
    """A little at a time until nothing is left, so that other writes get their turn; the number removed."""
    total = 0
    while removed := await remove():
        total += removed
    return total
