"""Look-up rows of active runs that are not in the tables yet."""

from __future__ import annotations

from msgspec import Struct

from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.store.base import CallKey, FoundCall


class HeldThread(Struct, frozen=True):
    """The records of an active run that are not in the tables yet, or not in their current form."""

    owner: Owner
    thread_id: str
    run_id: str
    run: Run | None
    calls: tuple[Call, ...]


class HeldRows:
    """Look-up rows of active runs, written when the run parks or ends: most calls are settled by then, and
    each is one row instead of two.

    Everything here is also in the log of a thread whose run can continue: after a crash its rows are rebuilt
    from there. Written by the writer's thread at each commit and read by the loop: single dictionary
    operations, which no other thread can interrupt.
    """

    def __init__(self) -> None:
        self._threads: dict[int, HeldThread] = {}
        self._changed: dict[int, HeldThread | None] = {}
        self._calls: dict[str, FoundCall] = {}
        self._approvals: dict[str, FoundCall] = {}
        self._runs: dict[str, Run] = {}

    def get(self, no: int) -> HeldThread | None:
        """As this transaction sees it."""
        return self._changed[no] if no in self._changed else self._threads.get(no)

    def put(self, no: int, held: HeldThread | None) -> None:
        """Takes effect at the next commit."""
        self._changed[no] = held

    def numbers(self) -> list[int]:
        return list(self._threads.keys() | self._changed.keys())

    def commit(self) -> None:
        for no, held in self._changed.items():
            before = self._threads.pop(no, None)
            if held is not None:
                self._threads[no] = held
                self._add(held)
            if before is not None:
                self._remove(before, held)
        self._changed = {}

    def roll_back(self) -> None:
        self._changed = {}

    def find_call(self, owner: Owner, kind: CallKey, value: str) -> FoundCall | None:
        found = (self._approvals if kind == "approval" else self._calls).get(value)
        return found if found is not None and found.owner == owner and kind != "request" else None

    def find_run(self, owner: Owner, run_id: str) -> Run | None:
        run = self._runs.get(run_id)
        return run if run is not None and run.owner == owner else None

    def calls(self) -> list[FoundCall]:
        return list(self._calls.values())

    def runs(self, owner: Owner) -> list[Run]:
        return [run for run in list(self._runs.values()) if run.owner == owner]

    def _add(self, held: HeldThread) -> None:
        for call in held.calls:
            found = FoundCall(held.owner, held.thread_id, call)
            self._calls[call.call_id] = found
            if call.approval is not None:
                self._approvals[call.approval.approval_id] = found
        if held.run is not None:
            self._runs[held.run_id] = held.run

    def _remove(self, before: HeldThread, held: HeldThread | None) -> None:
        """Removes what is in the tables from now on."""
        kept = () if held is None else [call.call_id for call in held.calls]
        for call in before.calls:
            if call.call_id not in kept:
                del self._calls[call.call_id]
                if call.approval is not None:
                    self._approvals.pop(call.approval.approval_id, None)
        if before.run is not None and (held is None or held.run_id != before.run_id):
            del self._runs[before.run_id]
