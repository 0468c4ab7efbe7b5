"""What a store must do. It stores bytes and look-up rows; it knows no events and makes no decisions.

There is one write to a thread: an append at the version it was decided on. If the thread has moved on, or a
time limit does not hold by the store's own clock, nothing is written, and the caller decides again. Look-up
rows are written in the same transaction and say only where to look; they can be rebuilt from the log.
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
"""A file that is incomplete and got no piece for this long will never be completed: its sender is gone."""


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
    """The version after which an active run's rows start: a purge keeps them, and its calls. None: everything
    that a snapshot covers may be removed."""


class Lease(Struct, frozen=True, gc=False):
    """Which worker advances the run of a thread, and until when. Advisory: the version of the thread
    decides."""

    worker: str
    until: float


class Append(Struct, frozen=True, gc=False, kw_only=True):
    """`body` holds the events of one append; an empty one only asks whether the thread is still at `version`.

    `last_at` is the time of the thread's last append as the decision saw it: a thread that was deleted and
    created again may be at the same version. None: not compared.
    `calls` are the records of the calls that these events opened or moved, `runs` of the runs that started,
    parked, resumed or ended. `tools` are stored beside the calls that were opened with them, by version.
    `files` belong to the thread from now on, as far as the owner has them. `feed` is how many entries the
    owner's feed gets: they take its next numbers. `lease` is stored with it; a lease without a worker ends
    the current one.
    """

    owner: Owner
    thread_id: str
    version: int
    at: float
    last_at: float | None = None
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
    """Another thread of the owner has a call with the same request id; nothing was written."""


AppendResult: TypeAlias = Appended | Moved | OutOfTime | RequestTaken


class Row(Struct, frozen=True, gc=False):
    """One append, as it is read back."""

    version: int
    at: float
    body: bytes


class Loaded(Struct, frozen=True, gc=False):
    """What a state is built from: a snapshot, if there is one, and every row after it. `written_at` is the
    time of the thread's last append; it is only there with a snapshot."""

    rows: tuple[Row, ...]
    snapshot: bytes | None = None
    snapshot_version: int = 0
    written_at: float | None = None

    @property
    def last_at(self) -> float | None:
        """The time of the last append that this contains; None if there is none."""
        return self.rows[-1].at if self.rows else self.written_at


class FoundCall(Struct, frozen=True, gc=False):
    """Where a call is; `call` is its record as of its last append. A settled call never changes."""

    owner: Owner
    thread_id: str
    call: Call


class CallFilter(Struct, frozen=True, gc=False, kw_only=True):
    """Which open calls: of an owner, for a client, for any client (`is_client`), without a run that a worker
    has to look after (`needs_worker`), with a deadline before a time."""

    owner: Owner | None = None
    client_id: str | None = None
    due_before: float | None = None
    needs_worker: bool = False
    is_client: bool = False


YEAR_SEC = 365 * 86_400.0


class FoundThread(Struct, frozen=True, gc=False):
    owner: Owner
    thread_id: str
    version: int
    row: ThreadRow
    lease_until: float = 0.0
    """Where several processes write: when its last lease ends, or ended. A worker that hands its runs over
    sets it to 0, give or take how wrong its clock is."""

    @property
    def is_handed_over(self) -> bool:
        return self.lease_until < YEAR_SEC


class FeedRow(Struct, frozen=True, gc=False):
    """Entries of an owner's feed that were stored together: numbers `no - count + 1` to `no`.

    `body` is that of an append if it has a `thread_id` and a `version`, else the one passed to `add_to_feed`.
    Numbers of one owner grow without gaps and are never reused, whatever is removed.
    """

    no: int
    count: int
    at: float
    body: bytes
    thread_id: str | None = None
    version: int | None = None


class Lookups(Struct, frozen=True, gc=False, kw_only=True):
    """The look-up rows of a thread as derived from its log at this version.

    `is_whole` if the log has every row of the thread: then no other rows belong to it. Otherwise rows of
    settled calls and ended runs may stand for what was purged from the log, and stay. Calls settled and runs
    ended `before` this time are corrected where they exist, and not restored: a purge may have removed them,
    except for the calls of an active run (`ThreadRow.kept_from`).
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
    """How much a purge removes: settled calls, ended runs with their rows, feed entries, unused files."""

    calls: int = 0
    runs: int = 0
    feed_entries: int = 0
    files: int = 0


ThreadKey: TypeAlias = tuple[Owner, str]
CallKey: TypeAlias = Literal["call", "approval", "request"]
Counted: TypeAlias = Literal["threads", "running", "open_calls", "bytes"]
"""`running` counts active runs, which have neither ended nor wait for an answer. `bytes`: the size of the
threads in the log; once a purge has removed rows of a thread, its snapshot counts too, since it replaces
them."""

HintListener: TypeAlias = Callable[[str, str], None]
"""Called with a topic and what happened there; an empty topic means that hints may have been lost."""

THREAD_MOVED = "thread"
"""Topic of threads that another process appended to; the item is a `thread_key`."""

CLIENTS_CHANGED = "clients"
"""Topic of owners whose registrations another process changed; the item is an `owner_key`."""

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
    """The files of a store, in pieces. An append binds them to its thread, and they are removed with it."""

    async def get(self, owner: Owner, ref: str) -> StoredFile | None:
        """A complete file, with its size."""
        ...

    async def piece(self, owner: Owner, ref: str, no: int) -> bytes | None:
        """A piece of a complete file; the first one has number 0."""
        ...

    async def kept(self, tenant: str, subject: str | None = None) -> Kept:
        """How much is stored for a tenant, or for one subject of it; arriving files count as far as they have
        arrived."""
        ...

    async def put(self, file: StoredFile, no: int, pieces: Sequence[bytes], *, is_last: bool) -> bool:
        """Stores the next pieces of a file; number 0 starts it, the last one completes it, and it cannot be
        found before. False if the file already exists, was abandoned, or the piece does not follow the stored
        ones."""
        ...

    async def drop(self, owner: Owner, ref: str) -> None:
        """With all its pieces, complete or not."""
        ...


class ClientStore(Protocol):
    """Registrations. A change and its entry in the owner's feed are stored together."""

    async def all(self, owner: Owner | None = None) -> list[Client]:
        """All registrations of one owner, or of all."""
        ...

    async def put(self, client: Client, notice: bytes = b"") -> Literal["put", "moved", "name_taken"]:
        """`moved`: the stored version is not the one before this (none for version 1). `name_taken`: another
        client of the owner has a tool with one of these names."""
        ...

    async def drop(
        self, client: Client, notice: bytes = b"", *, if_away: bool = False
    ) -> Literal["dropped", "moved", "here"]:
        """`moved`: this version is not stored. `here`: `if_away` is set, and it has a stream somewhere."""
        ...


class Store(Protocol):
    is_shared: bool
    """Whether other processes append to the same threads: then cached states may be old, and leases are short
    and renewed."""

    files: FileStore
    clients: ClientStore
    streams: Streams | None
    """None in a single-process store: the process knows its own streams."""

    def now(self) -> float:
        """The store's time. Appends are judged by it when they are written."""
        ...

    async def check(self) -> None:
        """Raises `StoreDown` while it cannot be read or written."""
        ...

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        """Each independently, all in one transaction: those that hold are written. At most one per thread."""
        ...

    async def load(self, owner: Owner, thread_id: str, *, after: int | None = None) -> Loaded:
        """The newest snapshot and the rows after it, or the rows after this version; empty for an unknown
        thread."""
        ...

    async def find_call(self, owner: Owner, kind: CallKey, value: str) -> FoundCall | None:
        """By its id, its approval's id, or the request id under which a program made it."""
        ...

    async def open_calls(self, which: CallFilter, *, limit: int = 1000) -> list[FoundCall]:
        """Calls that are not settled, oldest first, or earliest deadline first if the filter has one.
        Unreadable ones are left out."""
        ...

    async def threads(
        self, owner: Owner, *, limit: int, after: tuple[float, str] | None = None
    ) -> list[FoundThread]:
        """Most recently used first; `after` is where the previous page ended. Unreadable ones are left out,
        and the page is still full."""
        ...

    async def find_run(self, owner: Owner, run_id: str) -> Run | None: ...

    async def runs(self, owner: Owner, *, limit: int, after: str | None = None) -> list[Run]:
        """Of all threads, most recently started first (by `started_at`, then by id); `after` is the last run
        id of the previous page (an unknown one starts again)."""
        ...

    async def find_tool(self, version: str) -> Tool | None:
        """The tool as it was when a call of this version was opened."""
        ...

    async def count(self, what: Counted, tenant: str, subject: str | None = None) -> int:
        """For a tenant, or for one subject of it."""
        ...

    async def claimable(
        self, *, limit: int, skip: Collection[str] = (), reserve_sec: float = 0.0, worker: str = ""
    ) -> list[FoundThread]:
        """Threads whose run could continue and that no worker advances: parked with nothing open, or without
        a valid lease. Threads whose run is in `skip` hide no others. What is found is hidden from everybody
        for `reserve_sec`: it gets a lease without a worker for that long, which nobody renews. With a
        `worker`, which reserves nothing, the threads instead that it has a lease of, expired or not."""
        ...

    async def renew(self, worker: str, until: float) -> None:
        """Renews all leases of this worker; a time in the past ends them."""
        ...

    async def add_to_feed(self, owner: Owner, body: bytes, thread_id: str | None = None) -> None:
        """Adds one entry to the owner's feed that is in no thread's log."""
        ...

    async def feed(self, owner: Owner, *, after: int, limit: int) -> list[FeedRow]:
        """The rows with an entry number above `after`, in order."""
        ...

    async def feed_span(self, owner: Owner) -> tuple[int, int]:
        """The numbers of the first entry that no purge has removed and of the last one ever assigned: (1, 0)
        at the start and (n + 1, n) once all are purged. Deleting a thread changes neither."""
        ...

    async def delete(self, owner: Owner, thread_id: str, version: int) -> bool:
        """Removes the thread with its log, look-ups, feed entries and files that no other thread has; False
        if it is at another version."""
        ...

    async def without_snapshot(self, *, before: float, limit: int) -> list[ThreadKey]:
        """Threads with rows older than this that no snapshot covers, and whose last append is older too."""
        ...

    async def put_snapshot(
        self, owner: Owner, thread_id: str, version: int, body: bytes, *, at: float
    ) -> None:
        """Of the thread at this version, which was appended `at` this time. One that is older than the stored
        snapshot changes nothing, nor does that of a thread that was deleted and created again."""
        ...

    async def purge(self, *, before: float, dry_run: bool = False) -> PurgeCount:
        """Removes, or only counts, what is older than this: settled calls, ended runs, rows covered by a
        snapshot, feed entries, files of no thread; and files that stopped arriving (`ARRIVING_SEC`). Threads
        and their snapshots stay. An active run (`ThreadRow.kept_from` is set) keeps its rows and the calls of
        its `run_id`."""
        ...

    async def thread_keys(
        self, *, limit: int, after: tuple[Owner, str] | None = None
    ) -> list[tuple[Owner, str]]:
        """Every thread of every owner, by owner and id; `after` is the last one of the previous page."""
        ...

    async def rebuild(self, lookups: Lookups, *, dry_run: bool = False) -> int | None:
        """Rebuilds the look-up rows of one thread, and recounts its rows and bytes; returns how many look-up
        rows differed. None if its log is at another version, or gone. Leases, feeds, tools and files are
        unchanged. Of two calls with one request id, the one opened last has it."""
        ...

    def listen(self, listener: HintListener) -> None:
        """Calls this function for changes by other processes from now on. Hints: some may be lost."""
        ...

    def notify(self, topic: str, item: str) -> None:
        """Notifies the other processes soon; does nothing in a single-process store."""
        ...

    async def close(self) -> None: ...


SOON_SEC = 8.0
"""Longer than any write that succeeds takes; shorter than most callers are willing to wait."""

T = TypeVar("T")


class Shared(Protocol):
    @property
    def is_shared(self) -> bool: ...


def bounded_wait(store: Shared, work: Awaitable[T]) -> Awaitable[T]:
    """The result of the work. Raises `StoreDown` if it takes too long: what it asked the store for may still
    be stored."""
    # a single-process store always answers
    return _in_time(work) if store.is_shared else work


async def _in_time(work: Awaitable[T]) -> T:
    limit = asyncio.timeout(SOON_SEC)
    try:
        async with limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise StoreDown(
            "The store has not confirmed yet whether this was stored.",
            hint="Send the same request again in a moment: it is not applied twice.",
        ) from None


async def remove_in_slices(remove: Callable[[], Awaitable[int]]) -> int:
    """Removes a little at a time until nothing is left, so that other writes get their turn; returns the
    number removed."""
    total = 0
    while removed := await remove():
        total += removed
    return total
