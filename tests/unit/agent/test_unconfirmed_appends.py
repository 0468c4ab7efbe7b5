"""A store that writes an append but does not confirm it: the run continues once, nothing is doubled or
lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest

from farhand.agent import worker
from farhand.core.call import Call
from farhand.core.event import (
    CallOpened,
    CallSettled,
    Event,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import Success
from farhand.core.position import START, Entry
from farhand.core.principal import LOCAL
from farhand.core.result import Accepted, Receipt, Repeated, Result
from farhand.core.run import Run, RunState
from farhand.core.thread import AssistantMessage, ResultsMessage, UserMessage
from farhand.errors import StoreDown
from farhand.eventlog.codec import without_discarded
from farhand.models.scripted import Ask, Moment, Say, Step
from farhand.store.base import Store
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.failing_store import Moods
from tests.unit.agent.hands import open_url
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, Stage, comes_true, text_in

VIEW = Success({"viewKey": "v1"})
ANSWER = "Let me look. Thanks."

pytestmark = pytest.mark.timeout(PATIENCE_SEC * 2)


@pytest.fixture
def moods(store: Store, monkeypatch: pytest.MonkeyPatch) -> Moods:
    monkeypatch.setattr(worker, "SWEEP_SEC", 0.01)
    return Moods(store, monkeypatch)


@requirement("store-away:every-route")
@pytest.mark.parametrize(
    "kind",
    [RunStarted, StepStarted, TextAdded, StepFinished, RunParked, CallSettled, RunResumed, RunFinished],
)
async def test_a_parked_run_continues_once_whichever_answer_of_the_store_was_lost(
    stage: MakeStage, moods: Moods, kind: type[Event]
) -> None:
    on = await stage(_script, open_url)
    await _go_through(on, moods, kind, hold_for=0.0)


@requirement("store-away:every-route")
@pytest.mark.parametrize("kind", [RunStarted, StepFinished, CallSettled, RunFinished])
async def test_a_held_run_continues_once_whichever_answer_of_the_store_was_lost(
    stage: MakeStage, moods: Moods, kind: type[Event]
) -> None:
    on = await stage(_script, open_url)
    await _go_through(on, moods, kind, hold_for=60.0)


@requirement("store-away:every-route")
async def test_the_outcome_of_a_tool_that_was_stored_though_nobody_said_so_is_the_tools_own(
    stage: MakeStage, moods: Moods
) -> None:
    begun = 0

    @tool
    async def work() -> str:
        """Work."""
        nonlocal begun
        begun += 1
        moods.loses = CallSettled
        return "worked"

    def script(moment: Moment) -> Step:
        return str(moment.results[0].output) if moment.results else Ask("work")

    on = await stage(script, work)
    run = await on.say("go")
    assert text_in(await on.told(run, RunFinished)) == "worked"
    assert begun == 1


@requirement("store-away:every-route")
async def test_a_tool_whose_call_was_stored_though_nobody_said_so_begins_once_at_most(
    stage: MakeStage, moods: Moods
) -> None:
    begun = 0

    @tool
    async def work() -> str:
        """Work."""
        nonlocal begun
        begun += 1
        return "worked"

    def script(moment: Moment) -> Step:
        return moment.results[0].error or "worked" if moment.results else Ask("work")

    on = await stage(script, work)
    moods.loses = CallOpened
    run = await on.say("go")
    said = text_in(await on.told(run, RunFinished))
    assert (said == "worked", begun) in ((True, 1), (False, 0))
    assert sum(isinstance(event, CallOpened) for event in await on.journal(run)) == 1


async def _script(moment: Moment) -> AsyncGenerator[Step, None]:
    if moment.results:
        yield "Thanks."
        return
    yield Say(["Let me "])
    # in a later turn of the loop, so that the words before are stored by themselves
    await asyncio.sleep(0.01)
    yield Say(["look. "])
    yield Ask("open_url", {"url": "https://example.org"})


async def _go_through(on: Stage, moods: Moods, kind: type[Event], *, hold_for: float) -> None:
    moods.loses = kind
    run = await _say(on, hold_for=hold_for)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(_read(on, run))
        if kind not in (CallSettled, RunResumed, RunFinished):
            await comes_true(moods.has_lost)
        elif hold_for == 0:
            await on.told(run, RunParked)
        receipts = await _answer(on)
    await on.idle()
    assert await moods.has_lost()
    assert receipts[-1] == (Repeated() if len(receipts) > 1 else Accepted())
    await _check(on, run, reading.result())


async def _say(on: Stage, *, hold_for: float) -> Run:
    """As a person does who is told to try again."""
    try:
        return await on.say("go", hold_for=hold_for, message_id="m1")
    except StoreDown:
        return await on.say("go", hold_for=hold_for, message_id="m1")


async def _read(on: Stage, run: Run) -> list[Event]:
    """As a page does that reconnects where it was cut."""
    heard: list[Entry] = []
    while not heard or not isinstance(heard[-1].event, RunFinished):
        with on.service.read(run, heard[-1].end if heard else START) as reader, suppress(StoreDown):
            heard += await reader.next(PATIENCE_SEC) or []
    stored = await on.log.entries(run)
    # a reader that begins after a step was discarded gets the run without it
    assert [entry.seq for entry in heard] in (_numbers(stored), _numbers(without_discarded(stored)))
    return [entry.event for entry in heard]


def _numbers(entries: list[Entry]) -> list[int]:
    return [entry.seq for entry in entries]


async def _answer(on: Stage) -> list[Receipt | None]:
    """What each try was told; None if that the store is down."""
    calls: list[Call] = []

    async def is_asked() -> bool:
        try:
            calls[:] = await on.log.open_calls(LOCAL, THREAD)
        except StoreDown:
            # whoever reads while something is stored is told that the store is down, too
            return False
        return bool(calls)

    await comes_true(is_asked)
    result = Result(call_id=calls[0].call_id, outcome=VIEW)
    receipts: list[Receipt | None] = []
    while not receipts or receipts[-1] is None:
        try:
            receipts.append(await on.service.desk.settle(LOCAL, result))
        except StoreDown:
            receipts.append(None)
    return receipts


async def _check(on: Stage, run: Run, heard: list[Event]) -> None:
    assert _shown(heard) == ANSWER
    assert text_in(await on.told(run, RunFinished)) == ANSWER, "so it is when it is read again"
    assert [type(each) for each in await on.messages()] == [
        UserMessage,
        AssistantMessage,
        ResultsMessage,
        AssistantMessage,
    ]
    assert await on.outcomes(run) == [VIEW]
    journal = await on.journal(run)
    for once in (RunStarted, CallOpened, CallSettled, RunFinished):
        assert sum(isinstance(event, once) for event in journal) == 1, once
    assert [each.run_id for each in await on.log.runs(LOCAL, limit=10)] == [run.run_id]
    assert (await on.stored(run)).state is RunState.DONE

    async def nothing_is_in_doubt() -> bool:
        return not on.service.worker._interrupted

    await comes_true(nothing_is_in_doubt)


def _shown(events: list[Event]) -> str:
    """What a reader has on its screen: the words of a step that was discarded are gone from it."""
    shown, before = "", ""
    for event in events:
        match event:
            case StepStarted():
                before = shown
            case StepDiscarded():
                shown = before
            case TextAdded(text=text):
                shown += text
            case _:
                pass
    return shown
