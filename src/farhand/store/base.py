"""What a store must do. `farhand.testing.store_laws` holds every backend to it.

There is one way to write: `commit(*writes)`, all of them or none. Each write carries its own guard
(a version, a fence, a deadline judged by the store's clock); the first guard that does not hold is
answered with `Stale`, and nothing has changed. After a commit the store tells its `hub`, in the order
of the commits.

Every read names the owner: what belongs to another owner does not exist.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from farhand.core.call import Call
from farhand.core.client import Client
from farhand.core.event import Entry, Event, Happening, News
from farhand.core.file import Kept, StoredFile
from farhand.core.principal import Owner
from farhand.core.run import Run, RunState
from farhand.core.thread import Message, Thread, Used
from farhand.core.tool import Tool
from farhand.store.hub import Hub
from farhand.store.streams import Streams


class InsertThread(Struct, frozen=True, gc=False):
    """Creates the thread; one that exists stays as it is (only `updated_at` moves)."""

    thread: Thread


class AllowTool(Struct, frozen=True, gc=False):
    """Adds a tool version to what is allowed in this thread."""

    owner: Owner
    thread_id: str
    tool_version: str


class RenameThread(Struct, frozen=True, gc=False):
    """Guard: the thread is there."""

    owner: Owner
    thread_id: str
    title: str


class CutThread(Struct, frozen=True, gc=False):
    """Removes this message and every later one. Guard: it is there."""

    owner: Owner
    thread_id: str
    message_id: str


class DeleteThread(Struct, frozen=True, gc=False):
    """Removes the thread with all that is in it. Guard: it is there, and no run is active."""

    owner: Owner
    thread_id: str


class InsertMessage(Struct, frozen=True, gc=False):
    """Guard: the thread is there; and no message with this id is in it yet, if that is a user's, whose sender
    chose the id and may send it twice.

    What the model said and what came of it are named by a run and its step. They are written beside a
    `WriteRun` with that run's fence, which keeps them from being written twice: a store may look, too.
    """

    owner: Owner
    thread_id: str
    message: Message


class InsertRun(Struct, frozen=True, gc=False):
    """Guard: no other run is active in the thread."""

    run: Run


class InsertCall(Struct, frozen=True, gc=False):
    """Guard: the id is new, and so is its request id in the owner's space, if it has one.

    The tool is kept beside it, since a call keeps the schema it was opened with.
    """

    call: Call
    tool: Tool | None = None


class When(StrEnum):
    """What a change of a call asks of its deadline, by the store's clock, inside the compare-and-swap."""

    IN_TIME = "in_time"
    OVERDUE = "overdue"
    ANY_TIME = "any_time"


class SwapCall(Struct, frozen=True, gc=False):
    """Guard: the stored version is `before.version`, and the stored deadline is as `when` says."""

    before: Call
    after: Call
    when: When = When.ANY_TIME


class ClaimRun(Struct, frozen=True, gc=False):
    """Takes the run: a new fence, a new lease, no longer parked. Guard: `active`; where it is given, as it
    was `seen`, by its fence and its last number; and, unless `by_force`, parked or with a lapsed lease."""

    run_id: str
    lease_sec: float
    by_force: bool = False
    seen: Run | None = None


class WriteRun(Struct, frozen=True, gc=False, kw_only=True):
    """Appends events and changes what is given. Guard: the fence, if one is given, is the run's.

    A write without a fence may only append: it comes from whoever moved a call.
    """

    run_id: str
    fence: int | None = None
    events: tuple[Event, ...] = ()
    state: RunState | None = None
    step: int | None = None
    error: str | None = None
    lease_sec: float | None = None


class ParkRun(Struct, frozen=True, gc=False):
    """Lets go of the run, with its event. Guard: the fence is the run's, and something is open."""

    run_id: str
    fence: int
    event: Event


class Tell(Struct, frozen=True, gc=False):
    """Adds to the owner's feed what happened outside of any run. Events of runs get there by themselves."""

    owner: Owner
    events: tuple[Happening, ...]
    thread_id: str | None = None


class PutClient(Struct, frozen=True, gc=False):
    """Registers the client, or replaces its registration. Guard: the stored one is the version before this
    one (none for version 1), and no other client of the owner has a tool of one of these names."""

    client: Client


class DropClient(Struct, frozen=True, gc=False):
    """Guard: the client is there, in this version; and, `if_away`, it has no stream in any process that the
    store knows of."""

    client: Client
    if_away: bool = False


class InsertFile(Struct, frozen=True, gc=False):
    """A file begins to arrive; nobody finds it before its last piece. Guard: the ref is new."""

    file: StoredFile


class PutPiece(Struct, frozen=True, gc=False):
    """The next piece of a file; with the last one the file is there. Guard: the file is arriving, and this
    is the piece that follows."""

    owner: Owner
    ref: str
    no: int
    piece: bytes
    is_last: bool = False


class DropFile(Struct, frozen=True, gc=False):
    """Removes a file, arrived or not, with all its pieces. Guard: it is there."""

    owner: Owner
    ref: str


class BindFiles(Struct, frozen=True, gc=False):
    """From now on these files go with the thread. No guard: it is written beside what refers to them, and
    that stands also if a ref is nobody's, or another owner's, or if the thread is gone."""

    owner: Owner
    thread_id: str
    refs: tuple[str, ...]


Write: TypeAlias = (
    InsertThread
    | AllowTool
    | RenameThread
    | CutThread
    | DeleteThread
    | InsertMessage
    | InsertRun
    | InsertCall
    | SwapCall
    | ClaimRun
    | WriteRun
    | ParkRun
    | Tell
    | PutClient
    | DropClient
    | InsertFile
    | PutPiece
    | DropFile
    | BindFiles
)

Why: TypeAlias = Literal[
    "exists", "active", "missing", "version", "overdue", "in_time",
    "fence", "grown", "held", "ended", "nothing_open",
]  # fmt: skip


class Stale(Struct, frozen=True, gc=False):
    """A guard did not hold; nothing was written."""

    write: Write
    why: Why


class Committed(Struct, frozen=True, gc=False):
    """`runs` has every run that was touched, as it is now; `at` is the store's time of the commit. `begun`
    says that a thread was inserted which was not there: what this commit said in it is all that it holds."""

    at: float
    runs: dict[str, Run] = {}
    begun: bool = False


Commit: TypeAlias = Committed | Stale


class Old(Struct, frozen=True):
    """How much a purge removes: settled calls, journals of ended runs, entries of feeds, loose files."""

    calls: int = 0
    journals: int = 0
    news: int = 0
    files: int = 0


class Due(Struct, frozen=True, gc=False):
    deadline: float
    owner: Owner
    call_id: str


class Files(Protocol):
    """What a store tells of the files in it."""

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


class Store(Protocol):
    hub: Hub
    is_shared: bool
    """Whether other processes may work on the same store: then leases are short, and renewed."""

    @property
    def streams(self) -> Streams | None:
        """None in a store that one process has to itself: it knows its streams."""
        ...

    @property
    def files(self) -> Files: ...

    def now(self) -> float:
        """The store's time, for stamps. Guards compare with it inside the transaction."""
        ...

    async def commit(self, *writes: Write) -> Commit: ...

    async def check(self) -> None:
        """Raises `StoreDown` while it cannot be read or written."""
        ...

    async def get_thread(self, owner: Owner, thread_id: str) -> Thread | None: ...

    async def threads(self, owner: Owner, *, limit: int, after: Used | None = None) -> list[Thread]:
        """The last used first; `after` is the place where the page before ended, whatever is there now."""
        ...

    async def count_threads(self, owner: Owner) -> int: ...

    async def messages(self, owner: Owner, thread_id: str) -> list[Message]:
        """In the order they were written."""
        ...

    async def get_run(self, owner: Owner, run_id: str) -> Run | None: ...

    async def last_run(self, owner: Owner, thread_id: str) -> Run | None: ...

    async def count_runs(self, owner: Owner, thread_id: str) -> int: ...

    async def runs(self, owner: Owner, *, limit: int, after: str | None = None) -> list[Run]:
        """Of all threads, the last begun first; `after` is the run id that the page before ended with (one
        that is not there begins again)."""
        ...

    async def count_running(self, tenant: str, subject: str | None = None) -> int:
        """Runs of a tenant, or of one subject of it, that are at work: not ended, and waiting for nobody."""

    async def message_bytes(self, tenant: str, subject: str | None = None) -> int:
        """How much the messages of a tenant, or of one subject of it, take as they are stored."""

    async def get_call(self, owner: Owner, call_id: str) -> Call | None: ...

    async def get_asking(self, owner: Owner, approval_id: str) -> Call | None:
        """The call that this approval belongs to, answered or not."""
        ...

    async def calls_of(self, owner: Owner, run_id: str, step: int | None = None) -> list[Call]:
        """In the order they were opened."""

    async def open_calls(self, owner: Owner, thread_id: str | None = None) -> list[Call]:
        """Not settled, oldest first."""

    async def count_open(self, owner: Owner, thread_id: str) -> int:
        """How many calls of this thread are not settled."""

    async def count_open_of_tenant(self, tenant: str) -> int: ...

    async def get_requested(self, owner: Owner, request_id: str) -> Call | None:
        """The call that a program made under this id of its own."""

    async def client_calls(self, owner: Owner, client_id: str) -> list[Call]:
        """What this client is asked for: not settled, oldest first."""

    async def clients(self, owner: Owner | None = None) -> list[Client]:
        """Every registration there is, of one owner or of all."""

    async def get_tool(self, version: str) -> Tool | None:
        """The tool as it was when a call of this version was opened."""

    async def events(self, owner: Owner, run_id: str, *, after: int = 0, limit: int = 500) -> list[Entry]: ...

    async def feed(self, owner: Owner, *, after: int = 0, limit: int = 500) -> list[News]:
        """What happened to the owner's runs, calls and clients: in order, each with a number of its own."""
        ...

    async def feed_span(self, owner: Owner) -> tuple[int, int]:
        """The numbers of the first entry that is kept and of the last one; (1, 0) where there is none."""

    async def direct_calls(self) -> list[Call]:
        """Of all owners, open and without a run: those without a request id, ready or taken ones of server
        tools, and perhaps others."""
        ...

    async def due(self, *, before: float, limit: int) -> list[Due]:
        """Open calls whose deadline lies before this time, earliest first."""

    async def stray_runs(
        self, *, limit: int, skip: Collection[str] = (), reserve_sec: float = 0.0
    ) -> list[Run]:
        """Active runs that nobody advances though they could: a lapsed lease, or parked with nothing open.
        Unreadable ones and those in `skip` hide no others. What is found is hidden from other processes for
        `reserve_sec`."""
        ...

    async def purge(self, *, settled_before: float) -> Old:
        """Removes calls and events of ended runs from before this time, and what feeds tell of it; threads
        and messages stay. Returns what was removed. Also removes files that no thread referred to in that
        time, and those that stopped arriving (`rules.ARRIVING_SEC`)."""
        ...

    async def count_old(self, *, settled_before: float) -> Old:
        """What `purge` would remove now."""
        ...

    async def close(self) -> None: ...
