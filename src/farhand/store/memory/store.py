"""The store itself: what each write means, and every read.

A commit applies its writes one after the other and undoes them all when a guard does not hold; there is no
await in it, so nobody sees a half.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, assert_never

from msgspec.structs import replace

from farhand.clock import Clock, SystemClock
from farhand.core.call import Call, Phase
from farhand.core.client import Client
from farhand.core.event import Entry, Event, News
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.thread import Message, Thread, Used
from farhand.core.tool import Tool
from farhand.store.base import (
    AllowTool,
    BindFiles,
    ClaimRun,
    Commit,
    Committed,
    CutThread,
    DeleteThread,
    DropClient,
    DropFile,
    Due,
    InsertCall,
    InsertFile,
    InsertMessage,
    InsertRun,
    InsertThread,
    Old,
    ParkRun,
    PutClient,
    PutPiece,
    RenameThread,
    Stale,
    SwapCall,
    Tell,
    Why,
    Write,
    WriteRun,
)
from farhand.store.hub import Hub, tell_commit
from farhand.store.memory.clients import Clients
from farhand.store.memory.feed import Feeds
from farhand.store.memory.files import FileWrite, MemoryFiles
from farhand.store.memory.journals import Journals
from farhand.store.memory.requests import Requests
from farhand.store.memory.threads import ThreadKey, Threads
from farhand.store.memory.undo import Undo
from farhand.store.rules import ARRIVING_SEC, changed, claimed, is_stray, parked, why_not_swap
from farhand.store.streams import Unshared
from farhand.store.told import Told


class MemoryStore(Unshared):
    def __init__(self, clock: Clock | None = None) -> None:
        self.hub = Hub()
        self._clock = clock or SystemClock()
        self._runs: dict[str, Run] = {}
        self._last_run: dict[ThreadKey, str] = {}
        self._calls: dict[str, Call] = {}
        self._calls_of: dict[str, list[str]] = {}
        self._open_in: dict[ThreadKey, int] = {}
        self._asking: dict[str, str] = {}
        self._tools: dict[str, Tool] = {}
        self._undo = Undo()
        self._threads = Threads(self._undo)
        self._requests = Requests(self._undo)
        self._journals = Journals(self._undo)
        self._feeds = Feeds(self._undo)
        self._clients = Clients(self._undo)
        self.files = MemoryFiles(self._undo, self._threads)

    def now(self) -> float:
        return self._clock.now()

    async def commit(self, *writes: Write) -> Commit:
        told = Told(self.now())
        self._undo.begin()
        for write in writes:
            why = self._apply(write, told)
            if why is not None:
                self._undo.take_back()
                return Stale(write, why)
        tell_commit(self.hub, told)
        return Committed(told.at, told.runs)

    def _apply(self, write: Write, told: Told) -> Why | None:
        # the most frequent ones first
        match write:
            case WriteRun():
                return self._write_run(write, told)
            case InsertMessage() | InsertThread() | AllowTool() | RenameThread() | CutThread():
                return self._threads.apply(write)
            case SwapCall():
                return self._swap_call(write, told)
            case InsertCall():
                return self._insert_call(write, told)
            case InsertRun() | ClaimRun() | ParkRun():
                return self._apply_to_run(write, told)
            case _:
                return self._apply_beside(write, told)

    def _apply_beside(
        self, write: DeleteThread | Tell | PutClient | DropClient | FileWrite, told: Told
    ) -> Why | None:
        match write:
            case InsertFile() | PutPiece() | DropFile() | BindFiles():
                return self.files.apply(write, told.at)
            case DeleteThread():
                return self._delete_thread(write, told)
            case PutClient() | DropClient():
                return self._clients.apply(write)
            case Tell():
                self._feeds.tell(write.owner, write.events, told.at, write.thread_id)
                told.feeds.add(write.owner)
                return None
        assert_never(write)

    def _apply_to_run(self, write: InsertRun | ClaimRun | ParkRun, told: Told) -> Why | None:
        match write:
            case InsertRun():
                return self._insert_run(write, told)
            case ClaimRun():
                return self._claim_run(write, told)
            case ParkRun():
                return self._park_run(write, told)
        assert_never(write)

    def _delete_thread(self, write: DeleteThread, told: Told) -> Why | None:
        key = (write.owner, write.thread_id)
        if key not in self._threads:
            return "missing"
        runs = [run for run in self._runs.values() if (run.owner, run.thread_id) == key]
        if any(run.active for run in runs):
            return "active"
        calls = [call for call in self._calls.values() if (call.owner, call.thread_id) == key]
        # the dictionaries have nothing in common but that they are emptied
        gone: tuple[tuple[dict[Any, Any], list[Any]], ...] = (
            (self._last_run, [key]),
            (self._open_in, [key]),
            (self._runs, [run.run_id for run in runs]),
            (self._calls_of, [run.run_id for run in runs]),
            (self._calls, [call.call_id for call in calls]),
            (self._asking, [call.approval.approval_id for call in calls if call.approval]),
        )
        for where, keys in gone:
            for each in keys:
                self._undo.drop(where, each)
        for call in calls:
            self._requests.drop(call)
        for run in runs:
            self._journals.drop(run.run_id)
            told.forget_run(run.run_id)
        self._threads.drop(key)
        self._feeds.forget(*key)
        self.files.forget(*key)
        return None

    def _insert_run(self, write: InsertRun, told: Told) -> Why | None:
        run = write.run
        key = (run.owner, run.thread_id)
        if run.run_id in self._runs:
            return "exists"
        if key not in self._threads:
            return "missing"
        last = self._last_run.get(key)
        if last is not None and self._runs[last].active:
            return "active"
        self._undo.set(self._runs, run.run_id, run)
        self._undo.set(self._last_run, key, run.run_id)
        told.runs[run.run_id] = run
        return None

    def _insert_call(self, write: InsertCall, told: Told) -> Why | None:
        call = write.call
        if call.call_id in self._calls:
            return "exists"
        if call.run_id is not None and call.run_id not in self._runs:
            return "missing"
        if not self._requests.add(call):
            return "exists"
        self._undo.set(self._calls, call.call_id, call)
        self._count(call, int(call.phase is not Phase.SETTLED))
        if call.approval is not None:
            self._undo.set(self._asking, call.approval.approval_id, call.call_id)
        if write.tool is not None and call.tool_version not in self._tools:
            self._undo.set(self._tools, call.tool_version, write.tool)
        if call.run_id is not None:
            listed = self._calls_of.setdefault(call.run_id, [])
            self._undo.extend(listed, [call.call_id])
        self._block(call.run_id, int(call.blocks), told)
        if call.client_id is not None:
            told.calls.append(call)
        return None

    def _swap_call(self, write: SwapCall, told: Told) -> Why | None:
        stored = self._calls.get(write.before.call_id)
        if stored is None:
            return "missing"
        why = why_not_swap(write, version=stored.version, deadline=stored.deadline, now=told.at)
        if why is not None:
            return why
        self._undo.set(self._calls, stored.call_id, write.after)
        self._count(stored, -int(write.after.phase is Phase.SETTLED))
        self._block(stored.run_id, int(write.after.blocks) - int(write.before.blocks), told)
        told.calls.append(write.after)
        return None

    def _claim_run(self, write: ClaimRun, told: Told) -> Why | None:
        run = self._runs.get(write.run_id)
        if run is None:
            return "missing"
        after = claimed(run, write, told.at)
        if isinstance(after, str):
            return after
        self._put_run(after, told)
        return None

    def _write_run(self, write: WriteRun, told: Told) -> Why | None:
        run = self._runs.get(write.run_id)
        if run is None:
            return "missing"
        after = changed(run, write, told.at)
        if isinstance(after, str):
            return after
        self._append(run, write.events, told)
        self._put_run(after, told)
        return None

    def _park_run(self, write: ParkRun, told: Told) -> Why | None:
        run = self._runs.get(write.run_id)
        if run is None:
            return "missing"
        after = parked(run, write)
        if isinstance(after, str):
            return after
        self._append(run, (write.event,), told)
        self._put_run(after, told)
        return None

    def _append(self, run: Run, events: tuple[Event, ...], told: Told) -> None:
        if not events:
            return
        added = self._journals.append(run, events, told.at)
        if self._feeds.tell_run(run, events, told.at):
            told.feeds.add(run.owner)
        told.entries.setdefault(run.run_id, []).extend(added)

    def _put_run(self, run: Run, told: Told) -> None:
        self._undo.set(self._runs, run.run_id, run)
        told.runs[run.run_id] = run

    def _count(self, call: Call, by: int) -> None:
        key = (call.owner, call.thread_id)
        if by:
            self._undo.set(self._open_in, key, self._open_in.get(key, 0) + by)

    def _block(self, run_id: str | None, by: int, told: Told) -> None:
        if run_id is None:
            return
        run = self._runs[run_id]
        self._put_run(replace(run, blockers=run.blockers + by) if by else run, told)

    async def check(self) -> None:
        """It is always there."""

    async def get_thread(self, owner: Owner, thread_id: str) -> Thread | None:
        return self._threads.get((owner, thread_id))

    async def threads(self, owner: Owner, *, limit: int, after: Used | None = None) -> list[Thread]:
        return self._threads.page(owner, limit, after)

    async def messages(self, owner: Owner, thread_id: str) -> list[Message]:
        return self._threads.messages((owner, thread_id))

    async def get_run(self, owner: Owner, run_id: str) -> Run | None:
        run = self._runs.get(run_id)
        return run if run is not None and run.owner == owner else None

    async def last_run(self, owner: Owner, thread_id: str) -> Run | None:
        run_id = self._last_run.get((owner, thread_id))
        return None if run_id is None else self._runs[run_id]

    async def runs(self, owner: Owner, *, limit: int, after: str | None = None) -> list[Run]:
        own = [run for run in reversed(self._runs.values()) if run.owner == owner]
        first = next((number for number, run in enumerate(own, 1) if run.run_id == after), 0)
        return own[first : first + limit]

    async def get_call(self, owner: Owner, call_id: str) -> Call | None:
        call = self._calls.get(call_id)
        return call if call is not None and call.owner == owner else None

    async def get_asking(self, owner: Owner, approval_id: str) -> Call | None:
        call_id = self._asking.get(approval_id)
        return None if call_id is None else await self.get_call(owner, call_id)

    async def calls_of(self, owner: Owner, run_id: str, step: int | None = None) -> list[Call]:
        calls = [self._calls[call_id] for call_id in self._calls_of.get(run_id, ())]
        return [call for call in calls if call.owner == owner and step in (None, call.step)]

    async def open_calls(self, owner: Owner, thread_id: str | None = None) -> list[Call]:
        own = (call for call in self._calls.values() if call.owner == owner)
        found = (call for call in own if thread_id in (None, call.thread_id))
        return [call for call in found if call.phase is not Phase.SETTLED]

    async def count_open(self, owner: Owner, thread_id: str) -> int:
        return self._open_in.get((owner, thread_id), 0)

    async def count_open_of_tenant(self, tenant: str) -> int:
        return sum(count for (owner, _), count in self._open_in.items() if owner.tenant == tenant)

    async def get_requested(self, owner: Owner, request_id: str) -> Call | None:
        call_id = self._requests.find(owner, request_id)
        return None if call_id is None else self._calls.get(call_id)

    async def client_calls(self, owner: Owner, client_id: str) -> list[Call]:
        return [call for call in await self.open_calls(owner) if call.client_id == client_id]

    async def clients(self, owner: Owner | None = None) -> list[Client]:
        return [client for client in self._clients.all() if owner in (None, client.owner)]

    async def get_tool(self, version: str) -> Tool | None:
        return self._tools.get(version)

    async def events(self, owner: Owner, run_id: str, *, after: int = 0, limit: int = 500) -> list[Entry]:
        known = await self.get_run(owner, run_id) is not None
        return self._journals.read(run_id, after, limit) if known else []

    async def feed(self, owner: Owner, *, after: int = 0, limit: int = 500) -> list[News]:
        return self._feeds.after(owner, after, limit)

    async def feed_span(self, owner: Owner) -> tuple[int, int]:
        return self._feeds.span(owner)

    async def due(self, *, before: float, limit: int) -> list[Due]:
        waiting = [
            Due(call.deadline, call.owner, call.call_id)
            for call in self._calls.values()
            if call.phase is not Phase.SETTLED and call.deadline is not None and call.deadline < before
        ]
        return sorted(waiting, key=lambda due: due.deadline)[:limit]

    async def stray_runs(
        self, *, limit: int, skip: Collection[str] = (), reserve_sec: float = 0.0
    ) -> list[Run]:
        now = self.now()
        found = [run for run in self._runs.values() if run.run_id not in skip and is_stray(run, now)]
        return found[:limit]

    async def purge(self, *, settled_before: float) -> Old:
        removed = await self.count_old(settled_before=settled_before)
        old = [call for call in self._calls.values() if self._is_old(call, settled_before)]
        for call in old:
            self._drop_call(call)
        for run in self._runs.values():
            if run.ended_at is not None and run.ended_at < settled_before:
                self._journals.purge(run.run_id)
        self._feeds.purge(settled_before)
        self.files.purge(settled_before, arriving_before=self.now() - ARRIVING_SEC)
        return removed

    async def count_old(self, *, settled_before: float) -> Old:
        ended = {run.run_id: run.ended_at for run in self._runs.values() if run.ended_at is not None}
        return Old(
            calls=sum(self._is_old(call, settled_before) for call in self._calls.values()),
            journals=sum(at < settled_before and run in self._journals for run, at in ended.items()),
            news=self._feeds.count_old(settled_before),
            files=self.files.count_old(settled_before, arriving_before=self.now() - ARRIVING_SEC),
        )

    def _is_old(self, call: Call, settled_before: float) -> bool:
        if call.settled_at is None or call.settled_at >= settled_before:
            return False
        # a run that goes on may still hand the outcome to its model
        return call.run_id is None or not self._runs[call.run_id].active

    def _drop_call(self, call: Call) -> None:
        del self._calls[call.call_id]
        if call.approval is not None:
            self._asking.pop(call.approval.approval_id, None)
        self._requests.drop(call)
        if call.run_id is not None:
            self._calls_of[call.run_id].remove(call.call_id)

    async def close(self) -> None:
        """Nothing to close; the names fit the protocol."""
