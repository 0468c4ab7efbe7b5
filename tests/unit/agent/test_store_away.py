"""The store goes away and comes back: runs go on, nothing is told twice, nothing that was told is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import pytest
from msgspec.structs import replace

from farhand.agent import worker
from farhand.agent.journal import RunLog
from farhand.core.event import Entry, RunFinished, StepStarted, TextAdded
from farhand.core.outcome import Failure, Success
from farhand.core.principal import LOCAL
from farhand.core.run import Run, RunState
from farhand.core.settings import Patience, Settings
from farhand.core.thread import Thread
from farhand.errors import StoreDown
from farhand.models.scripted import Ask, Moment, Say, Step
from farhand.models.scripted.model import Script
from farhand.store.base import ClaimRun, Commit, InsertRun, InsertThread, SwapCall, Write
from farhand.store.hub import Watch
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.hands import open_url
from tests.unit.agent.stage import Stage, text_in

TURNS = Settings(patience=Patience(hold_for=0.0))
OPEN = Ask("open_url", {"url": "https://example.org"})


class MoodyStore(MemoryStore):
    """Refuses writes while it is away: all of them, or those that hold a write of one kind."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.away = False
        self.refuses: type[Write] | None = None
        self.refused = 0
        self._asked = asyncio.Event()

    async def commit(self, *writes: Write) -> Commit:
        if self.away or (self.refuses is not None and any(isinstance(each, self.refuses) for each in writes)):
            self.refused += 1
            self._asked.set()
            raise StoreDown("The store is away.")
        return await super().commit(*writes)

    async def refuses_somebody(self) -> None:
        self._asked.clear()
        async with asyncio.timeout(10):
            await self._asked.wait()

    def is_back(self) -> None:
        self.away, self.refuses = False, None


@pytest.fixture
def moody(clock: FakeClock) -> MoodyStore:
    return MoodyStore(clock)


@pytest.fixture(autouse=True)
def _sweep_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SWEEP_SEC", 0.01)


@pytest.fixture
async def opened() -> AsyncIterator[list[Stage]]:
    stages: list[Stage] = []
    yield stages
    for on in stages:
        await on.check()
        await on.farhand.close()


async def _open(stages: list[Stage], moody: MoodyStore, script: Script, *tools: object) -> Stage:
    on = Stage(moody, FakeClock(seed="ids"), script, *tools, settings=TURNS)
    stages.append(on)
    await on.farhand.open()
    return on


@requirement("runs:store-away")
async def test_words_that_were_told_while_the_store_was_away_are_in_the_journal_afterwards(
    opened: list[Stage], moody: MoodyStore
) -> None:
    more = asyncio.Event()

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield Say(["Told. "])
        await more.wait()
        yield Say(["And on."])

    on = await _open(opened, moody, script)
    run = await on.say("speak")
    heard = await on.heard(run, TextAdded)
    moody.away = True
    await moody.refuses_somebody()
    moody.is_back()
    more.set()
    rest = await on.told(run, RunFinished, after=heard[-1].end)
    assert text_in(rest) == "And on."
    assert text_in(await on.journal(run)) == "Told. And on."


@requirement("runs:store-away")
async def test_a_run_that_could_not_store_its_step_goes_on_when_the_store_is_back(
    opened: list[Stage], moody: MoodyStore
) -> None:
    may_end = asyncio.Event()

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield Say(["An answer."])
        await may_end.wait()

    on = await _open(opened, moody, script)
    run = await on.say("speak")
    heard = await on.heard(run, TextAdded)
    moody.away = True
    may_end.set()
    await moody.refuses_somebody()
    await on.idle()
    moody.is_back()
    rest = await on.told(run, RunFinished, after=heard[-1].end)
    assert text_in(rest) == "An answer."
    assert text_in(await on.told(run, RunFinished)) == "An answer."
    assert (await on.stored(run)).state is RunState.DONE


@requirement("runs:store-away")
async def test_a_tool_whose_end_could_not_be_stored_is_not_run_again(
    opened: list[Stage], moody: MoodyStore
) -> None:
    ran = 0

    @tool
    async def work() -> str:
        """Work while the store goes away."""
        nonlocal ran
        ran += 1
        moody.away = True
        return "worked"

    on = await _open(opened, moody, _asking(Ask("work")), work)
    run = await on.say("work")
    await moody.refuses_somebody()
    moody.is_back()
    assert "unknown" in text_in(await on.told(run, RunFinished))
    assert isinstance((await on.outcomes(run))[0], Failure)
    assert ran == 1


@requirement("calls:wakes")
async def test_an_accepted_result_wakes_its_run_once_the_store_is_back(
    opened: list[Stage], moody: MoodyStore
) -> None:
    on = await _open(opened, moody, _asking(OPEN), open_url)
    run = await on.say("open it")
    await on.told(run)
    moody.refuses = ClaimRun
    await on.answer(await on.open_call(), Success({"viewKey": "v1"}))
    await moody.refuses_somebody()
    moody.is_back()
    assert text_in(await on.told(run, RunFinished)) == "{'viewKey': 'v1'}"


@requirement("runs:store-away")
async def test_a_recovery_that_the_store_interrupts_is_taken_up_again(
    opened: list[Stage], moody: MoodyStore
) -> None:
    begun = asyncio.Event()

    @tool
    async def work() -> str:
        """Work for ever."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    first = await _open(opened, moody, _asking(Ask("work")), work)
    run = await first.say("work")
    await begun.wait()
    first.farhand.worker.stop()
    await asyncio.wait([_serving(first)])
    moody._runs._runs[run.run_id] = _lapsed(moody._runs[run.run_id])
    moody.refuses = SwapCall
    async with asyncio.TaskGroup() as group:
        opening = group.create_task(_open(opened, moody, _asking(Ask("work")), work))
        await moody.refuses_somebody()
        moody.is_back()
    second = opening.result()
    assert "unknown" in text_in(await second.told(run, RunFinished))


@requirement("runs:store-away")
async def test_a_run_that_was_dropped_can_be_stopped_meanwhile(
    opened: list[Stage], moody: MoodyStore
) -> None:
    may_end = asyncio.Event()

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield Say(["An answer."])
        await may_end.wait()

    on = await _open(opened, moody, script)
    run = await on.say("speak")
    await on.told(run, TextAdded)
    moody.away = True
    may_end.set()
    await moody.refuses_somebody()
    await on.idle()
    moody.away = False
    assert await on.farhand.stop(run.owner, run.thread_id, "stopped by the user")
    await on.farhand.worker.sweep()
    assert (await on.stored(run)).state is RunState.STOPPED


@requirement("runs:store-away")
async def test_a_message_is_not_taken_while_the_store_is_away(opened: list[Stage], moody: MoodyStore) -> None:
    on = await _open(opened, moody, _asking("Hello."))
    moody.away = True
    with pytest.raises(StoreDown):
        await on.say("hi", message_id="m1")
    moody.is_back()
    assert text_in(await on.told(await on.say("hi", message_id="m1"))) == "Hello."


def _asking(step: Step) -> Script:
    def script(moment: Moment) -> Step:
        if isinstance(step, Ask) and not moment.results:
            return step
        told = [str(each.output) if each.kind == "success" else each.error for each in moment.results]
        return " ".join(told) or step

    return script


def _serving(on: Stage) -> asyncio.Task[None]:
    assert on.farhand._serving is not None
    return on.farhand._serving


def _lapsed(run: Run) -> Run:
    return replace(run, lease_until=0.0)


@requirement("streams:numbers")
async def test_what_was_told_before_the_store_went_away_is_not_told_again(
    moody: MoodyStore, clock: FakeClock
) -> None:
    run = Run(run_id="run_1", owner=LOCAL, thread_id="t1", started_at=0.0, lease_until=1e12)
    thread = Thread(owner=LOCAL, thread_id="t1", created_at=0.0, updated_at=0.0)
    await moody.commit(InsertThread(thread), InsertRun(run))
    heard: list[tuple[int, int, object]] = []
    with moody.hub.watch(run.run_id) as watch:
        async with asyncio.TaskGroup() as group:
            pen = RunLog(moody, run, group)
            pen.say(StepStarted(1))
            pen.say(TextAdded(0, "Once "))
            moody.away = True
            with pytest.raises(StoreDown):
                await pen.write()
            pen.say(TextAdded(0, "more."))
            with pytest.raises(StoreDown):
                await pen.write()
            before = pen.is_stored
            heard += [(each.seq, each.offset, each.event) for each in _told(watch)]
            moody.is_back()
            await pen.close()
    assert heard == [(1, 0, StepStarted(1)), (2, 0, TextAdded(0, "Once ")), (2, 5, TextAdded(0, "more."))]
    assert (before, pen.is_stored) == (False, True)
    assert [each.event for each in await moody.events(LOCAL, run.run_id)] == [
        StepStarted(1),
        TextAdded(0, "Once more."),
    ]


def _told(watch: Watch) -> list[Entry]:
    return [entry for entries in watch.news if isinstance(entries, list) for entry in entries]
