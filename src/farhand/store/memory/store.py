"""The store itself: a commit, which write goes where, and every read.

A commit applies its writes one after the other and undoes them all when a guard does not hold; there is no
await in it, so nobody sees a half. What a write means is said beside its noun.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from farhand.clock import Clock, SystemClock
from farhand.core.call import Call
from farhand.core.client import Client
from farhand.core.event import Entry, News
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.thread import Message, Thread, Used
from farhand.core.tool import Tool
from farhand.store import base
from farhand.store.base import Commit, Committed, DeleteThread, Due, Old, Stale, Tell, Why, Write
from farhand.store.hub import Hub, tell_commit
from farhand.store.memory.calls import Calls
from farhand.store.memory.clients import Clients
from farhand.store.memory.feed import Feeds, Saying
from farhand.store.memory.files import MemoryFiles
from farhand.store.memory.runs import Runs
from farhand.store.memory.threads import Threads
from farhand.store.memory.undo import Undo
from farhand.store.rules import ARRIVING_SEC
from farhand.store.streams import Unshared


class MemoryStore(Unshared):
    def __init__(self, clock: Clock | None = None) -> None:
        self.hub = Hub()
        # the clock's own: a layer between would be paid for with every commit
        self.now: Callable[[], float] = (clock or SystemClock()).now
        self._undo = Undo()
        self._threads = Threads(self._undo)
        self._feeds = Feeds(self._undo)
        self._runs = Runs(self._undo, self._threads, self._feeds)
        self._calls = Calls(self._undo, self._runs)
        self._clients = Clients(self._undo)
        self.files = MemoryFiles(self._undo, self._threads)
        # Any: each takes the write that it stands beside
        self._meaning: dict[type[Write], Callable[[Any, Saying], Why | None]] = {
            base.WriteRun: self._runs.write,
            base.InsertRun: self._runs.insert,
            base.ClaimRun: self._runs.claim,
            base.ParkRun: self._runs.park,
            base.InsertCall: self._calls.insert,
            base.SwapCall: self._calls.swap,
            base.InsertMessage: self._threads.insert_message,
            base.InsertThread: self._threads.insert,
            base.AllowTool: self._threads.allow_tool,
            base.RenameThread: self._threads.rename,
            base.CutThread: self._threads.cut,
            base.DeleteThread: self._delete_thread,
            base.PutClient: self._clients.put,
            base.DropClient: self._clients.drop,
            base.InsertFile: self.files.insert,
            base.PutPiece: self.files.put_piece,
            base.DropFile: self.files.drop,
            base.BindFiles: self.files.bind,
            base.Tell: self._tell,
        }

    async def commit(self, *writes: Write) -> Commit:
        told = Saying(self.now())
        self._undo.clear()
        for write in writes:
            why = self._meaning[type(write)](write, told)
            if why is not None:
                self._undo.take_back()
                return Stale(write, why)
        self._runs.keep(told)
        tell_commit(self.hub, told)
        return Committed(told.at, told.runs, told.begun)

    def _tell(self, write: Tell, told: Saying) -> Why | None:
        told.news += [(write.owner, event, write.thread_id, None) for event in write.events]
        return None

    def _delete_thread(self, write: DeleteThread, told: Saying) -> Why | None:
        key = (write.owner, write.thread_id)
        if key not in self._threads:
            return "missing"
        runs = self._runs.of_thread(key, told)
        if any(run.active for run in runs):
            return "active"
        self._calls.drop(key, runs)
        self._runs.drop(key, runs, told)
        self._threads.drop(key)
        self._feeds.forget(*key, told)
        self.files.forget(*key)
        return None

    async def check(self) -> None:
        """It is always there."""

    async def get_thread(self, owner: Owner, thread_id: str) -> Thread | None:
        return self._threads.get((owner, thread_id))

    async def threads(self, owner: Owner, *, limit: int, after: Used | None = None) -> list[Thread]:
        return self._threads.page(owner, limit, after)

    async def count_threads(self, owner: Owner) -> int:
        return self._threads.count(owner)

    async def messages(self, owner: Owner, thread_id: str) -> list[Message]:
        return self._threads.messages((owner, thread_id))

    async def get_run(self, owner: Owner, run_id: str) -> Run | None:
        return self._runs.get(owner, run_id)

    async def last_run(self, owner: Owner, thread_id: str) -> Run | None:
        return self._runs.last((owner, thread_id))

    async def count_running(self, tenant: str, subject: str | None = None) -> int:
        return self._runs.count_running(tenant, subject)

    async def message_bytes(self, tenant: str, subject: str | None = None) -> int:
        return self._threads.message_bytes(tenant, subject)

    async def count_runs(self, owner: Owner, thread_id: str) -> int:
        return self._runs.count((owner, thread_id))

    async def runs(self, owner: Owner, *, limit: int, after: str | None = None) -> list[Run]:
        return self._runs.page(owner, limit, after)

    async def get_call(self, owner: Owner, call_id: str) -> Call | None:
        return self._calls.get(owner, call_id)

    async def get_asking(self, owner: Owner, approval_id: str) -> Call | None:
        return self._calls.asking(owner, approval_id)

    async def calls_of(self, owner: Owner, run_id: str, step: int | None = None) -> list[Call]:
        return self._calls.of_run(owner, run_id, step)

    async def open_calls(self, owner: Owner, thread_id: str | None = None) -> list[Call]:
        return self._calls.still_open(owner, thread_id)

    async def count_open(self, owner: Owner, thread_id: str) -> int:
        return self._calls.count_open((owner, thread_id))

    async def count_open_of_tenant(self, tenant: str) -> int:
        return self._calls.count_open_of_tenant(tenant)

    async def get_requested(self, owner: Owner, request_id: str) -> Call | None:
        return self._calls.requested(owner, request_id)

    async def client_calls(self, owner: Owner, client_id: str) -> list[Call]:
        return [call for call in self._calls.still_open(owner) if call.client_id == client_id]

    async def clients(self, owner: Owner | None = None) -> list[Client]:
        return [client for client in self._clients.all() if owner in (None, client.owner)]

    async def get_tool(self, version: str) -> Tool | None:
        return self._calls.tools.get(version)

    async def events(self, owner: Owner, run_id: str, *, after: int = 0, limit: int = 500) -> list[Entry]:
        known = self._runs.get(owner, run_id) is not None
        return self._runs.journals.read(run_id, after, limit) if known else []

    async def feed(self, owner: Owner, *, after: int = 0, limit: int = 500) -> list[News]:
        return self._feeds.after(owner, after, limit)

    async def feed_span(self, owner: Owner) -> tuple[int, int]:
        return self._feeds.span(owner)

    async def direct_calls(self) -> list[Call]:
        return self._calls.direct()

    async def due(self, *, before: float, limit: int) -> list[Due]:
        return self._calls.due(before, limit)

    async def stray_runs(
        self, *, limit: int, skip: Collection[str] = (), reserve_sec: float = 0.0
    ) -> list[Run]:
        return self._runs.stray(self.now(), skip)[:limit]

    async def purge(self, *, settled_before: float) -> Old:
        removed = await self.count_old(settled_before=settled_before)
        self._calls.purge(settled_before)
        self._runs.purge(settled_before)
        self._feeds.purge(settled_before)
        self.files.purge(settled_before, arriving_before=self.now() - ARRIVING_SEC)
        return removed

    async def count_old(self, *, settled_before: float) -> Old:
        return Old(
            calls=self._calls.count_old(settled_before),
            journals=self._runs.count_old(settled_before),
            news=self._feeds.count_old(settled_before),
            files=self.files.count_old(settled_before, arriving_before=self.now() - ARRIVING_SEC),
        )

    async def close(self) -> None:
        """Nothing to close; the names fit the protocol."""
