"""A record that this version of farhand cannot read: its own run fails, and everything else goes on."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from farhand.agent import worker
from farhand.calls import deadlines
from farhand.core.call import Phase
from farhand.core.outcome import TimedOut
from farhand.core.principal import LOCAL
from farhand.core.run import Run, RunState
from farhand.core.settings import Patience, Settings
from farhand.core.thread import Text, UserMessage
from farhand.models.scripted import Ask, Moment, Step
from farhand.store.address import open_store
from farhand.testing import FakeClock
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.hands import ask_text
from tests.unit.agent.stage import Stage, comes_true

TURNS = Settings(patience=Patience(hold_for=0.0))

BAD_RUN = "SELECT run_no FROM runs JOIN threads USING (thread_no) WHERE thread_id = 'bad'"
OF_THE_BAD_RUN = f"run_no = ({BAD_RUN})"
BAD_THREAD = "SELECT thread_no FROM threads WHERE thread_id = 'bad'"
OF_THE_BAD_THREAD = f"thread_no = ({BAD_THREAD})"

DAMAGE = {
    "a call of another shape": f'UPDATE calls SET body = \'{{"phase":"flying"}}\' WHERE {OF_THE_BAD_RUN}',
    "a call that is no JSON": f"UPDATE calls SET body = 'x' WHERE {OF_THE_BAD_RUN}",
    "an event": f'UPDATE journals SET body = \'[{{"type":"odd"}}]\' WHERE place >> 28 IN ({BAD_RUN})',
    "a message": f'UPDATE messages SET body = \'{{"role":"odd"}}\' WHERE place >> 28 = ({BAD_THREAD})',
    "the thread": f"UPDATE threads SET body = '[]' WHERE {OF_THE_BAD_THREAD}",
}


class Disk:
    """One server after another on the same file."""

    def __init__(self, path: Path, clock: FakeClock) -> None:
        self.path = path
        self.clock = clock
        self.begun = 0

    @asynccontextmanager
    async def server(self) -> AsyncIterator[Stage]:
        store = await open_store(f"sqlite:///{self.path}", self.clock)
        on = Stage(store, self.clock, _script, self._work(), ask_text, settings=TURNS)
        async with asyncio.timeout(20):
            await on.farhand.open()
        yield on
        await on.farhand.close()

    def damage(self, sql: str) -> None:
        with sqlite3.connect(self.path) as db:
            assert db.execute(sql).rowcount > 0

    async def two_at_work(self) -> bool:
        return self.begun == 2

    def _work(self) -> object:
        @tool
        async def work() -> str:
            """Work for ever."""
            self.begun += 1
            await asyncio.Event().wait()
            return ""

        return work


@pytest.fixture(autouse=True)
def _scan_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "REFILL_SEC", 0.05)


@pytest.fixture
def disk(tmp_path: Path, clock: FakeClock) -> Disk:
    return Disk(tmp_path / "farhand.db", clock)


@requirement("runs:unreadable")
@pytest.mark.parametrize("sql", DAMAGE.values(), ids=DAMAGE)
async def test_after_a_restart_only_the_run_of_an_unreadable_record_fails(disk: Disk, sql: str) -> None:
    async with disk.server() as before:
        good, bad = await _say(before, "work", "good"), await _say(before, "work", "bad")
        await comes_true(disk.two_at_work)
    disk.damage(sql)
    async with disk.server() as after:
        await _ended(after, good, RunState.DONE)
        await _ended(after, bad, RunState.FAILED)
        await _deadlines_are_watched(after)


@requirement("runs:unreadable")
async def test_a_run_in_a_state_that_nobody_knows_is_said_once_and_left_alone(disk: Disk) -> None:
    async with disk.server() as before:
        good = await _say(before, "work", "good")
        await _say(before, "work", "bad")
        await comes_true(disk.two_at_work)
    disk.damage(f"UPDATE runs SET state = 'flying' WHERE {OF_THE_BAD_RUN}")
    async with disk.server() as after:
        await _ended(after, good, RunState.DONE)
        assert await after.farhand.worker.sweep() == 0
        await _deadlines_are_watched(after)


@requirement("runs:unreadable")
async def test_a_run_that_can_be_neither_resumed_nor_ended_is_said_once(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    async with disk.server() as before:
        await _say(before, "work", "one")
        await _say(before, "work", "two")
        await comes_true(disk.two_at_work)
    monkeypatch.setattr(worker, "recover", broken)
    monkeypatch.setattr(worker, "break_off_by_force", broken)
    async with disk.server() as after:
        for _ in range(3):
            assert await after.farhand.worker.sweep() == 0
    assert sum("left alone" in record.message for record in caplog.records) == 2


@requirement("runs:unreadable")
async def test_a_parked_run_of_an_unreadable_call_gives_way_to_a_new_message(disk: Disk) -> None:
    async with disk.server() as before:
        bad = await _say(before, "ask", "bad")
        await _waits(before, bad)
    disk.damage(DAMAGE["a call of another shape"])
    async with disk.server() as after:
        again = await _say(after, "hello", "bad")
        await _ended(after, again, RunState.DONE)
        await _ended(after, bad, RunState.STOPPED)


@requirement("calls:unreadable")
async def test_an_unreadable_call_does_not_keep_the_deadlines_of_others(
    disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    async with disk.server() as before:
        for thread in ("bad", "good"):
            await _waits(before, await _say(before, "ask", thread))
    disk.damage(DAMAGE["a call of another shape"])
    caplog.set_level(logging.ERROR)
    async with disk.server() as after:
        [call] = await after.store.open_calls(LOCAL, "good")
        disk.clock.advance(3600)
        for _ in range(3):
            await after.farhand.deadlines.sweep(after.farhand.desk)
        settled = await after.store.get_call(LOCAL, call.call_id)
        assert settled is not None
        assert settled.outcome == TimedOut(5.0)
    assert sum("cannot be expired" in record.message for record in caplog.records) == 1


def _script(moment: Moment) -> Step:
    if moment.results:
        return "done"
    return {"work": Ask("work"), "ask": Ask("ask_text", {"question": "?"})}.get(moment.text, "hello")


async def _say(on: Stage, text: str, thread: str) -> Run:
    message = UserMessage(on.clock.fresh("msg"), (Text(text),))
    return (await on.farhand.start(LOCAL, thread, message, hold_for=0.0)).run


async def _waits(on: Stage, run: Run) -> None:
    async def parked() -> bool:
        return (await on.stored(run)).parked

    await comes_true(parked)


async def _ended(on: Stage, run: Run, state: RunState) -> None:
    async def ended() -> bool:
        return not (await on.stored(run)).active

    await comes_true(ended)
    assert (await on.stored(run)).state is state


async def _deadlines_are_watched(on: Stage) -> None:
    """A call that is opened now and overdue a moment later is settled by the watch itself."""
    run = await _say(on, "ask", "later")
    await _waits(on, run)
    assert isinstance(on.clock, FakeClock)
    on.clock.advance(3600)

    async def expired() -> bool:
        return all(call.phase is Phase.SETTLED for call in await on.calls(run))

    await comes_true(expired)
