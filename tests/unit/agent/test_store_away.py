"""The store disappears and comes back: runs continue, nothing is reported twice, nothing reported is lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator

import pytest

from farhand.agent import execute, tool_context, worker
from farhand.agent.keyed_calls import Waiting
from farhand.core.event import (
    CallOpened,
    CallSettled,
    CallTaken,
    RunFinished,
    RunParked,
    RunResumed,
    StepFinished,
    TextAdded,
)
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL
from farhand.core.result import Accepted
from farhand.core.run import RunState
from farhand.core.settings import Settings, Timeouts
from farhand.errors import StoreDown
from farhand.eventlog.pubsub import thread_topic
from farhand.models.scripted import Ask, Moment, Say, Step
from farhand.models.scripted.model import Script
from farhand.store.base import Store
from farhand.tools.context import ask
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.failing_store import Moods
from tests.unit.agent.hands import ask_text, open_url
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, YES, Stage, text_in

TURNS = Settings(timeouts=Timeouts(hold_for=0.0))
OPEN = Ask("open_url", {"url": "https://example.org"})


@pytest.fixture
def moods(store: Store, monkeypatch: pytest.MonkeyPatch) -> Moods:
    monkeypatch.setattr(worker, "SWEEP_SEC", 0.01)
    monkeypatch.setattr(execute, "STORE_RETRY_SEC", 0.01)
    return Moods(store, monkeypatch)


@requirement("store-away:every-route")
async def test_words_that_come_while_the_store_is_away_are_told_and_kept_when_it_is_back(
    stage: MakeStage, moods: Moods
) -> None:
    more, last = asyncio.Event(), asyncio.Event()

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield Say(["Told. "])
        await more.wait()
        yield Say(["Kept "])
        await last.wait()
        yield Say(["and told."])

    on = await stage(script)
    run = await on.say("speak")
    heard = await on.heard(run, TextAdded)
    moods.is_away = True
    more.set()
    await moods.fails_somebody()
    await moods.fails_somebody()
    moods.go_back()
    last.set()
    rest = await on.told(run, RunFinished, after=heard[-1].end)
    assert text_in(rest) == "Kept and told."
    assert text_in(await on.journal(run)) == "Told. Kept and told."
    assert len(on.model.prompts) == 1


@requirement("store-away:every-route")
async def test_a_run_that_could_not_store_its_step_continues_when_the_store_is_back(
    stage: MakeStage, moods: Moods
) -> None:
    may_end = asyncio.Event()
    on = await stage(_ending_when(may_end))
    run = await on.say("speak")
    heard = await on.heard(run, TextAdded)
    moods.is_away = True
    may_end.set()
    await moods.fails_somebody()
    await on.idle()
    moods.go_back()
    rest = await on.told(run, RunFinished, after=heard[-1].end)
    assert text_in(rest) == "An answer."
    assert text_in(await on.told(run, RunFinished)) == "An answer."
    assert (await on.stored(run)).state is RunState.DONE


@requirement("store-away:every-route")
async def test_a_run_continues_though_first_its_step_and_then_its_claim_could_not_be_stored(
    stage: MakeStage, moods: Moods
) -> None:
    may_end = asyncio.Event()
    on = await stage(_ending_when(may_end))
    run = await on.say("speak")
    await on.heard(run, TextAdded)
    moods.refuses = StepFinished
    may_end.set()
    await moods.fails_somebody()
    moods.refuses = RunResumed
    await moods.fails_somebody()
    moods.go_back()
    await on.told(run, RunFinished)
    assert (await on.stored(run)).state is RunState.DONE


@requirement("store-away:every-route")
async def test_what_a_tool_returned_is_kept_until_the_store_is_back_and_it_is_not_run_again(
    stage: MakeStage, moods: Moods
) -> None:
    ran = 0

    @tool
    async def work() -> str:
        """Work while the store goes away."""
        nonlocal ran
        ran += 1
        moods.is_away = True
        return "worked"

    on = await stage(_asking(Ask("work")), work)
    run = await on.say("work")
    await moods.fails_somebody()
    moods.go_back()
    assert text_in(await on.told(run, RunFinished)) == "worked"
    assert await on.outcomes(run) == [Success("worked")]
    assert ran == 1


@requirement("store-away:every-route")
async def test_a_running_tool_continues_while_the_store_is_away_and_others_end_or_are_approved(
    stage: MakeStage, moods: Moods
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()
    ends: list[str] = []

    @tool
    async def slow() -> str:
        """Work for as long as the store is away."""
        begun.set()
        try:
            await may_end.wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        ends.append("slow")
        return "slow"

    @tool
    async def quick() -> str:
        """End while the store is away."""
        await begun.wait()
        moods.is_away = True
        return "quick"

    @tool(needs_approval=True)
    async def gated() -> str:
        """Wait for approval."""
        return "gated"

    def script(moment: Moment) -> Step | list[Step]:
        if moment.results:
            return " ".join(str(each.output) for each in moment.results)
        return [Ask("slow"), Ask("quick"), Ask("gated")]

    on = await stage(script, slow, quick, gated)
    run = await on.say("work")
    await moods.fails_somebody()
    on.log.broker.invalidate(thread_topic(LOCAL, THREAD))
    await moods.fails_somebody()
    moods.go_back()
    # the start of the tool that is approved now is refused: it is started later, when the others have ended
    moods.refuses = CallTaken
    assert await on.decide(await on.open_call("gated"), YES) == Accepted()
    await moods.fails_somebody()
    moods.go_back()
    may_end.set()
    assert text_in(await on.told(run, RunFinished)) == "slow quick gated"
    assert ends == ["slow"]


@requirement("store-away:every-route")
async def test_a_tool_that_asks_continues_though_the_end_of_its_hold_could_not_be_stored(
    stage: MakeStage, moods: Moods
) -> None:
    @tool
    async def asks() -> str:
        """Ask somebody."""
        return str(await ask("ask_text", {"question": "what?"}, timeout_sec=600))

    on = await stage(_asking(Ask("asks")), asks, ask_text, settings=TURNS)
    moods.refuses = RunParked
    run = await on.say("ask")
    await moods.fails_somebody()
    await moods.fails_somebody()
    moods.go_back()
    await on.told(run, RunParked)
    await on.answer(await on.open_call("ask_text"), Success("this"))
    assert text_in(await on.told(run, RunFinished)) == "this"


async def test_a_call_that_cannot_be_started_yet_is_not_logged_with_every_sweep(
    stage: MakeStage, moods: Moods, caplog: pytest.LogCaptureFixture
) -> None:
    started = asyncio.Event()

    @tool(needs_approval=True)
    async def tidy() -> str:
        """Tidy up."""
        started.set()
        return "tidy"

    on = await stage([], tidy)
    assert isinstance(await on.service.call("tidy", {}, thread=THREAD, key="k", within=0.0), Waiting)
    moods.refuses = CallTaken
    assert await on.decide(await on.open_call(), YES) == Accepted()
    for _ in range(3):
        await moods.fails_somebody()
    moods.go_back()
    await asyncio.wait_for(started.wait(), PATIENCE_SEC)
    assert [each.message for each in caplog.records if each.levelno >= logging.WARNING] == []


@requirement("store-away:every-route")
async def test_a_tool_asks_once_the_store_is_back(
    stage: MakeStage, moods: Moods, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_context, "STORE_RETRY_SEC", 0.01)

    @tool
    async def asks() -> str:
        """Ask somebody."""
        moods.refuses = CallOpened
        first = await ask("ask_text", {"question": "what?"}, timeout_sec=600)
        # this one is stored, and its answer is lost
        moods.loses = CallOpened
        return f"{first} {await ask('ask_text', {'question': 'and?'}, timeout_sec=600)}"

    on = await stage(_asking(Ask("asks")), asks, ask_text, settings=TURNS)
    run = await on.say("ask")
    await moods.fails_somebody()
    await moods.fails_somebody()
    moods.go_back()
    for answer in ("this", "that"):
        await on.told(run, RunParked)
        await on.answer(await on.open_call("ask_text"), Success(answer))
    assert text_in(await on.told(run, RunFinished)) == "this that"


@requirement("store-away:every-route")
async def test_a_held_run_that_continued_with_an_answer_the_store_refused_is_asked_with_the_next(
    stage: MakeStage, moods: Moods
) -> None:
    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        if not moment.results:
            yield OPEN
            return
        # the model thinks for longer than the store takes to refuse
        await asyncio.sleep(0.1)
        yield str(moment.results[0].output)

    on = await stage(script, open_url)
    run = await on.say("go", hold_for=60.0)
    with on.service.read(run):
        await on.told(run, CallOpened)
        call = await on.open_call()
        await asyncio.sleep(0.02)
        moods.refuses = CallSettled
        with pytest.raises(StoreDown):
            await on.answer(call, Success({"viewKey": "lost"}))
        moods.go_back()
        await on.answer(call, Success({"viewKey": "kept"}))
        assert "kept" in text_in(await on.told(run, RunFinished))
    assert await on.outcomes(run) == [Success({"viewKey": "kept"})]


@requirement("calls:first-wins")
async def test_a_model_never_gets_a_result_that_the_store_then_refuses(
    stage: MakeStage, moods: Moods
) -> None:
    seen: list[object] = []

    def script(moment: Moment) -> Step:
        if not moment.results:
            return OPEN
        seen.append(moment.results[0].output)
        return "Thanks."

    on = await stage(script, open_url)
    run = await on.say("go", hold_for=60.0)
    with on.service.read(run):
        await on.told(run, CallOpened)
        call = await on.open_call()
        moods.refuses = CallSettled
        for _ in range(3):
            with pytest.raises(StoreDown):
                await on.answer(call, Success({"viewKey": "lost"}))
        moods.go_back()
        await on.answer(call, Success({"viewKey": "kept"}))
        await on.told(run, RunFinished)
    assert seen == [{"viewKey": "kept"}]


@requirement("calls:wakes")
async def test_an_accepted_result_wakes_its_run_once_the_store_is_back(
    stage: MakeStage, moods: Moods
) -> None:
    on = await stage(_asking(OPEN), open_url, settings=TURNS)
    run = await on.say("open it")
    await on.told(run)
    call = await on.open_call()
    moods.refuses = RunResumed
    # the run continues with the result in the same append, so neither is stored without the other
    with pytest.raises(StoreDown):
        await on.answer(call, Success({"viewKey": "v1"}))
    moods.go_back()
    await on.answer(call, Success({"viewKey": "v1"}))
    assert text_in(await on.told(run, RunFinished)) == "{'viewKey': 'v1'}"


@requirement("store-away:every-route")
async def test_a_recovery_that_the_store_interrupts_is_taken_up_again(
    stage: MakeStage, moods: Moods, store: Store
) -> None:
    begun = asyncio.Event()

    @tool
    async def work() -> str:
        """Work forever."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    first = await stage(_asking(Ask("work")), work)
    run = await first.say("work")
    await begun.wait()
    first.service.worker.stop()
    await asyncio.wait([_serving(first)])
    await store.renew(first.service.worker.name, 0.0)
    moods.refuses = CallSettled
    async with asyncio.TaskGroup() as group:
        opening = group.create_task(_open(stage, work))
        await moods.fails_somebody()
        moods.go_back()
    second = opening.result()
    assert "unknown" in text_in(await second.told(run, RunFinished))


@requirement("store-away:every-route")
async def test_a_run_that_was_dropped_can_be_stopped_meanwhile(stage: MakeStage, moods: Moods) -> None:
    may_end = asyncio.Event()
    on = await stage(_ending_when(may_end))
    run = await on.say("speak")
    await on.told(run, TextAdded)
    moods.is_away = True
    may_end.set()
    await moods.fails_somebody()
    await on.idle()
    # whoever takes the run up again meanwhile must not come to its end
    may_end.clear()
    moods.go_back()
    assert await on.service.stop(run.owner, run.thread_id, "stopped by the user")
    await on.service.worker.sweep()
    assert (await on.stored(run)).state is RunState.STOPPED
    assert not on.service.worker._active


@requirement("store-away:every-route")
async def test_a_message_is_not_taken_while_the_store_is_away(stage: MakeStage, moods: Moods) -> None:
    on = await stage(_asking("Hello."))
    moods.is_away = True
    with pytest.raises(StoreDown):
        await on.say("hi", message_id="m1")
    moods.go_back()
    assert text_in(await on.told(await on.say("hi", message_id="m1"))) == "Hello."


async def _open(stage: MakeStage, *tools: object) -> Stage:
    return await stage(_asking(Ask("work")), *tools)


def _ending_when(may_end: asyncio.Event) -> Script:
    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield Say(["An answer."])
        await may_end.wait()

    return script


def _asking(step: Step) -> Script:
    def script(moment: Moment) -> Step:
        if isinstance(step, Ask) and not moment.results:
            return step
        told = [str(each.output) if each.kind == "success" else each.error for each in moment.results]
        return " ".join(told) or step

    return script


def _serving(on: Stage) -> asyncio.Task[None]:
    assert on.service._serving is not None
    return on.service._serving
