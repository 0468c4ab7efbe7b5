"""Random lives of calls keep every promise, on every store; the machine that says so would notice a fault."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from msgspec.structs import replace

from farhand.core import call as table
from farhand.store.base import Commit, ParkRun, Store, SwapCall, When, Write, WriteRun
from farhand.store.memory import MemoryStore
from farhand.store.sqlite import SqliteStore
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
    """Gives way before it writes, so that several hands really come at once."""

    async def commit(self, *writes: Write) -> Commit:
        await asyncio.sleep(0)
        return await super().commit(*writes)


class MemoryMachine(CallMachine):
    """A crash takes the desk and all it knew."""

    async def open_store(self) -> Store:
        return Turns(self.clock)

    async def crash(self) -> Store:
        return self.store


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


@requirement("calls:random-lives")
@pytest.mark.parametrize(("machine", "lives"), [(MemoryMachine, 150), (SqliteMachine, 40)])
def test_whatever_happens_to_calls_every_promise_is_kept(machine: type[CallMachine], lives: int) -> None:
    run_state_machine_as_test(machine, settings=settings(STEPS, max_examples=lives))


class WithoutCompareAndSwap(Turns):
    """Believes every writer that nobody else has written."""

    async def commit(self, *writes: Write) -> Commit:
        await asyncio.sleep(0)
        versions = {call_id: call.version for call_id, call in self._calls._calls.items()}
        return await MemoryStore.commit(self, *(_with_newest(write, versions) for write in writes))


class WithoutDeadlines(Turns):
    """Takes a result whenever it comes."""

    async def commit(self, *writes: Write) -> Commit:
        return await super().commit(*(_at_any_time(write) for write in writes))


class WithoutFences(Turns):
    """Believes every worker that the run is still its own."""

    async def commit(self, *writes: Write) -> Commit:
        return await super().commit(*(self._with_fence(write) for write in writes))

    def _with_fence(self, write: Write) -> Write:
        if isinstance(write, ParkRun) or (isinstance(write, WriteRun) and write.fence is not None):
            return replace(write, fence=self._runs[write.run_id].fence)
        return write


@requirement("calls:random-lives-notice")
@pytest.mark.parametrize("faulty", [WithoutCompareAndSwap, WithoutDeadlines, WithoutFences])
def test_a_store_that_breaks_a_promise_is_noticed(faulty: type[MemoryStore]) -> None:
    class Machine(MemoryMachine):
        async def open_store(self) -> Store:
            return faulty(self.clock)

    _must_be_noticed(Machine)


@requirement("calls:random-lives-notice")
def test_a_table_that_lets_a_call_be_finished_before_it_is_approved_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asking = table.MOVES[table.Phase.ASKING] | {table.Move.FINISH: table.Phase.SETTLED}
    monkeypatch.setitem(table.MOVES, table.Phase.ASKING, asking)
    _must_be_noticed(MemoryMachine)


def _must_be_noticed(machine: type[CallMachine]) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=FAULT)


def _with_newest(write: Write, versions: dict[str, int]) -> Write:
    if not isinstance(write, SwapCall):
        return write
    version = versions[write.before.call_id]
    versions[write.before.call_id] = version + 1
    before, after = replace(write.before, version=version), replace(write.after, version=version + 1)
    return replace(write, before=before, after=after)


def _at_any_time(write: Write) -> Write:
    if isinstance(write, SwapCall) and write.after.outcome is not None and write.when is When.IN_TIME:
        return replace(write, when=When.ANY_TIME)
    return write
