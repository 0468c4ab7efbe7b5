"""The calls of a memory store, the tools they were opened with, and the counts of those that are open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from farhand.core.call import Call, Phase
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.tool import Tool
from farhand.store.base import Due, InsertCall, SwapCall, Why
from farhand.store.memory.feed import Saying
from farhand.store.memory.requests import Requests
from farhand.store.memory.runs import Runs
from farhand.store.memory.threads import ThreadKey
from farhand.store.memory.undo import ABSENT, Undo
from farhand.store.rules import why_not_swap


class Calls:
    def __init__(self, undo: Undo, runs: Runs) -> None:
        self.tools: dict[str, Tool] = {}
        """By their versions."""
        self._undo = undo
        self._runs = runs
        self._calls: dict[str, Call] = {}
        self._calls_of: dict[str, list[str]] = {}
        self._open_in: dict[ThreadKey, int] = {}
        self._asking: dict[str, str] = {}
        self._requests = Requests(undo)

    def get(self, owner: Owner, call_id: str | None) -> Call | None:
        call = None if call_id is None else self._calls.get(call_id)
        return call if call is not None and call.owner == owner else None

    def asking(self, owner: Owner, approval_id: str) -> Call | None:
        return self.get(owner, self._asking.get(approval_id))

    def requested(self, owner: Owner, request_id: str) -> Call | None:
        return self.get(owner, self._requests.find(owner, request_id))

    def of_run(self, owner: Owner, run_id: str, step: int | None) -> list[Call]:
        calls = [self._calls[call_id] for call_id in self._calls_of.get(run_id, ())]
        return [call for call in calls if call.owner == owner and step in (None, call.step)]

    def still_open(self, owner: Owner, thread_id: str | None = None) -> list[Call]:
        own = (call for call in self._calls.values() if call.owner == owner)
        found = (call for call in own if thread_id in (None, call.thread_id))
        return [call for call in found if call.phase is not Phase.SETTLED]

    def count_open(self, key: ThreadKey) -> int:
        return self._open_in.get(key, 0)

    def count_open_of_tenant(self, tenant: str) -> int:
        return sum(count for (owner, _), count in self._open_in.items() if owner.tenant == tenant)

    def direct(self) -> list[Call]:
        """Without a run, open, and perhaps to be looked after."""
        found = (call for call in self._calls.values() if call.run_id is None)
        return [
            call
            for call in found
            if call.phase in (Phase.READY, Phase.TAKEN)
            or (call.phase is Phase.ASKING and self._requests.is_unnamed(call))
        ]

    def due(self, before: float, limit: int) -> list[Due]:
        """The soonest first."""
        waiting = [
            Due(call.deadline, call.owner, call.call_id)
            for call in self._calls.values()
            if call.phase is not Phase.SETTLED and call.deadline is not None and call.deadline < before
        ]
        return sorted(waiting, key=lambda due: due.deadline)[:limit]

    def insert(self, write: InsertCall, told: Saying) -> Why | None:
        call = write.call
        if call.call_id in self._calls:
            return "exists"
        if call.run_id is not None and not self._runs.has(call.run_id, told):
            return "missing"
        if call.request is not None and not self._requests.add(call):
            return "exists"
        self._undo.append((self._calls, call.call_id, ABSENT))
        self._calls[call.call_id] = call
        self._count(call, int(call.phase is not Phase.SETTLED))
        if call.approval is not None:
            self._undo.set(self._asking, call.approval.approval_id, call.call_id)
        if write.tool is not None and call.tool_version not in self.tools:
            self._undo.set(self.tools, call.tool_version, write.tool)
        if call.run_id is not None:
            others = self._calls_of.setdefault(call.run_id, [])
            self._undo.append((others, len(others), None))
            others.append(call.call_id)
            self._runs.block(call.run_id, int(call.blocks), told)
        if call.client_id is not None:
            told.calls.append(call)
        return None

    def swap(self, write: SwapCall, told: Saying) -> Why | None:
        before, after = write.before, write.after
        stored = self._calls.get(before.call_id)
        if stored is None:
            return "missing"
        why = why_not_swap(write, version=stored.version, deadline=stored.deadline, now=told.at)
        if why is not None:
            return why
        self._undo.append((self._calls, stored.call_id, stored))
        self._calls[stored.call_id] = after
        if after.phase is Phase.SETTLED:
            self._count(stored, -1)
        if stored.run_id is not None:
            self._runs.block(stored.run_id, after.blocks - before.blocks, told)
        told.calls.append(after)
        return None

    def drop(self, key: ThreadKey, runs: Iterable[Run]) -> None:
        """All calls of this thread, which has had these runs."""
        self._undo.drop(self._open_in, key)
        for run in runs:
            self._undo.drop(self._calls_of, run.run_id)
        for call in [call for call in self._calls.values() if (call.owner, call.thread_id) == key]:
            self._undo.drop(self._calls, call.call_id)
            self._requests.drop(call)
            if call.approval is not None:
                self._undo.drop(self._asking, call.approval.approval_id)

    def count_old(self, settled_before: float) -> int:
        return sum(1 for _ in self._old(settled_before))

    def purge(self, settled_before: float) -> None:
        for call in list(self._old(settled_before)):
            del self._calls[call.call_id]
            if call.approval is not None:
                self._asking.pop(call.approval.approval_id, None)
            self._requests.drop(call)
            if call.run_id is not None:
                self._calls_of[call.run_id].remove(call.call_id)

    def _old(self, settled_before: float) -> Iterator[Call]:
        for call in self._calls.values():
            if call.settled_at is None or call.settled_at >= settled_before:
                continue
            # a run that goes on may still hand the outcome to its model
            if call.run_id is None or not self._runs[call.run_id].active:
                yield call

    def _count(self, call: Call, by: int) -> None:
        key = (call.owner, call.thread_id)
        before = self._open_in.get(key, 0)
        self._undo.append((self._open_in, key, before))
        self._open_in[key] = before + by
