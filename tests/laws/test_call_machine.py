"""Random histories of calls keep every promise, on every store, and planted faults are detected."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from msgspec.structs import replace

from farhand.core import call as table
from farhand.core.decide import calls, runs
from farhand.core.decide.calls import CheckedResult, Plan
from farhand.core.decide.decision import Decision
from farhand.core.result import Accepted, Receipt
from farhand.core.state import ThreadState
from farhand.store.base import Append, AppendResult, Store
from farhand.store.memory import MemoryStore
from farhand.store.sqlite import SqliteStore
from farhand.testing import FakeClock
from tests.laws.call_machine import CallMachine
from tests.requirement import requirement

STEPS = settings(
    derandomize=True,
    database=None,
    deadline=None,
    stateful_step_count=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
FAULT = settings(STEPS, max_examples=300, phases=[Phase.generate], report_multiple_bugs=False)


class Turns(MemoryStore):
    """Shared by two workers; gives way before it writes, so that several hands really come at once."""

    is_shared = True

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.delay = 0.0
        self._clock = clock

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        await asyncio.sleep(0)
        if any(each.body for each in appends):
            delay, self.delay = self.delay, 0.0
            self._clock.advance(delay)
        return await super().append(appends)


class MemoryMachine(CallMachine):
    """A crash takes the desks and all they knew."""

    store: Turns

    async def open_store(self) -> Store:
        return Turns(self.clock)

    async def crash(self) -> Store:
        return self.store

    def delay_next_append(self, seconds: float) -> bool:
        self.store.delay = seconds
        return True


class SqliteMachine(CallMachine):
    """A crash leaves the files as they are at this moment, to another process."""

    async def open_store(self) -> Store:
        self._folder = Path(tempfile.mkdtemp(prefix="farhand-machine-"))
        self._crashes = 0
        return await SqliteStore.open(str(self._folder / "0.db"), self.clock)

    async def crash(self) -> Store:
        before, after = f"{self._crashes}.db", f"{self._crashes + 1}.db"
        self._crashes += 1
        for suffix in ("", "-wal"):
            shutil.copy(self._folder / (before + suffix), self._folder / (after + suffix))
        await self.store.close()
        return await SqliteStore.open(str(self._folder / after), self.clock)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self._folder)


@pytest.mark.timeout(300)
@requirement("calls:one-outcome")
@pytest.mark.parametrize(("machine", "lives"), [(MemoryMachine, 150), (SqliteMachine, 40)])
def test_whatever_happens_to_calls_every_promise_is_kept(machine: type[CallMachine], lives: int) -> None:
    run_state_machine_as_test(machine, settings=settings(STEPS, max_examples=lives))


class WithoutVersions(Turns):
    """Believes every worker that the thread has not moved on."""

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        await asyncio.sleep(0)
        newest = [replace(each, version=await self._version(each)) for each in appends]
        return await MemoryStore.append(self, newest)

    async def _version(self, append: Append) -> int:
        return len((await self.load(append.owner, append.thread_id, after=0)).rows)


class WithoutDeadlines(Turns):
    """Takes a result whenever it comes."""

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        return await super().append([replace(each, not_after=None) for each in appends])


@pytest.mark.parametrize("faulty", [WithoutVersions, WithoutDeadlines])
def test_a_store_that_breaks_a_promise_is_noticed(faulty: type[Turns]) -> None:
    class Machine(MemoryMachine):
        async def open_store(self) -> Store:
            return faulty(self.clock)

    _must_be_noticed(Machine)


def test_a_worker_that_is_believed_with_an_old_fence_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    park = runs.park

    def trusting(thread: ThreadState, fence: int) -> Decision[object]:
        assert thread.run is not None
        return park(thread, thread.run.fence)

    monkeypatch.setattr(runs, "park", trusting)
    _must_be_noticed(MemoryMachine)


def test_rules_that_let_a_call_be_finished_before_it_is_approved_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asking = table.MOVES[table.Phase.ASKING] | {table.Move.FINISH: table.Phase.SETTLED}
    monkeypatch.setitem(table.MOVES, table.Phase.ASKING, asking)
    settle = calls._settle

    def careless(plan: Plan, checked: CheckedResult) -> Receipt:
        call = plan.call(checked.result.call_id)
        if call is None or call.phase is not table.Phase.ASKING:
            return settle(plan, checked)
        plan.add(call, calls.settled(call, checked.outcome, result=checked.result))
        return Accepted()

    monkeypatch.setattr(calls, "_settle", careless)
    _must_be_noticed(MemoryMachine)


def _must_be_noticed(machine: type[CallMachine]) -> None:
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(machine, settings=FAULT)
