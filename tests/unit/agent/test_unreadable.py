"""A record that this version of farhand cannot read: its thread is left alone, and everything else
continues."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from farhand.calls import deadlines
from farhand.core.call import Phase
from farhand.core.decide import runs
from farhand.core.outcome import TimedOut
from farhand.core.principal import LOCAL
from farhand.core.run import Run, RunState
from farhand.core.settings import Settings, Timeouts
from farhand.core.thread import Text, UserMessage
from farhand.errors import Unreadable
from farhand.models.scripted import Ask, Moment, Step
from farhand.store.open import open_store
from farhand.testing import FakeClock
from farhand.tools.decorate import tool
from tests.unit.agent.hands import ask_text
from tests.unit.agent.stage import Stage, comes_true

TURNS = Settings(timeouts=Timeouts(hold_for=0.0))

BAD = "(SELECT no FROM threads WHERE thread_id = 'bad')"
IN_THE_LOG = {
    "an event of another version": (
        f'UPDATE log SET body = \'{{"events":[{{"type":"odd"}}]}}\' WHERE thread_no = {BAD}'
    ),
    "a row that is no JSON": f"UPDATE log SET body = 'x' WHERE thread_no = {BAD}",
    "a row that is no text": f"UPDATE log SET body = x'ff00' WHERE thread_no = {BAD}",
    "a row that makes no sense after those before it": (
        f'UPDATE log SET body = \'{{"events":[{{"type":"run-parked"}}]}}\' WHERE thread_no = {BAD}'
    ),
}
IN_LOOK_UPS = {
    "the call": f'UPDATE calls SET record = \'{{"phase":"flying"}}\' WHERE thread_no = {BAD}',
    "the run": f"UPDATE runs SET record = 'x' WHERE thread_no = {BAD}",
    "the thread": "UPDATE threads SET record = '[]' WHERE thread_id = 'bad'",
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
            await on.service.open()
        yield on
        await on.service.close()

    def damage(self, sql: str) -> None:
        with closing(sqlite3.connect(self.path)) as db, db:
            assert db.execute(sql).rowcount > 0

    async def two_at_work(self) -> bool:
        return self.begun == 2

    def _work(self) -> object:
        @tool
        async def work() -> str:
            """Work forever."""
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


@pytest.mark.parametrize("sql", IN_THE_LOG.values(), ids=IN_THE_LOG)
async def test_after_a_restart_a_thread_that_cannot_be_read_is_left_alone_and_no_other(
    disk: Disk, sql: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with disk.server() as before:
        good = await _say(before, "work", "good")
        await _say(before, "work", "bad")
        await comes_true(disk.two_at_work)
    disk.damage(sql)
    async with disk.server() as after:
        await _ended(after, good, RunState.DONE)
        for _ in range(3):
            assert await after.service.worker.sweep() == 0
        with pytest.raises(Unreadable):
            await _say(after, "hello", "bad")
        await _deadlines_are_watched(after)
    assert sum("cannot be resumed" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("sql", IN_LOOK_UPS.values(), ids=IN_LOOK_UPS)
async def test_a_look_up_that_cannot_be_read_stops_nobody_else(disk: Disk, sql: str) -> None:
    async with disk.server() as before:
        good = await _say(before, "work", "good")
        await _say(before, "work", "bad")
        await comes_true(disk.two_at_work)
    disk.damage(sql)
    async with disk.server() as after:
        await _ended(after, good, RunState.DONE)
        await _deadlines_are_watched(after)


async def test_a_run_that_can_be_neither_resumed_nor_ended_is_reported_once(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a fault of ours")

    async with disk.server() as before:
        await _say(before, "work", "one")
        await _say(before, "work", "two")
        await comes_true(disk.two_at_work)
    monkeypatch.setattr(runs, "claim", broken)
    monkeypatch.setattr(runs, "break_off", broken)
    async with disk.server() as after:
        for _ in range(3):
            assert await after.service.worker.sweep() == 0
    assert sum("left alone" in record.message for record in caplog.records) == 2


async def test_a_run_that_cannot_be_resumed_ends_and_its_thread_takes_messages(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a fault of ours")

    async with disk.server() as before:
        run = await _say(before, "work", "one")
        await _say(before, "work", "two")
        await comes_true(disk.two_at_work)
    with monkeypatch.context() as faulty:
        faulty.setattr(runs, "claim", broken)
        async with disk.server() as after:
            await _ended(after, run, RunState.FAILED)
            await _ended(after, await _say(after, "hello", "one"), RunState.DONE)


async def test_an_unreadable_call_does_not_keep_the_deadlines_of_others(
    disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    async with disk.server() as before:
        for thread in ("bad", "good"):
            await _waits(before, await _say(before, "ask", thread))
    disk.damage(IN_THE_LOG["a row that is no JSON"])
    caplog.set_level(logging.ERROR)
    async with disk.server() as after:
        [call] = await after.log.open_calls(LOCAL, "good")
        disk.clock.advance(3600)
        for _ in range(3):
            await after.service.deadlines.sweep(after.service.desk)
        settled = await after.log.get_call(LOCAL, call.call_id)
        assert settled is not None
        assert settled.outcome == TimedOut(5.0)
    assert sum("could not expire" in record.message for record in caplog.records) == 1


def _script(moment: Moment) -> Step:
    if moment.results:
        return "done"
    return {"work": Ask("work"), "ask": Ask("ask_text", {"question": "?"})}.get(moment.text, "hello")


async def _say(on: Stage, text: str, thread: str) -> Run:
    message = UserMessage(on.clock.fresh("msg"), (Text(text),))
    return (await on.service.start(LOCAL, thread, message, hold_for=0.0)).run


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
