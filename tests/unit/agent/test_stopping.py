"""Stop ends whatever runs, and keeps what was written."""

from __future__ import annotations

import asyncio
import threading

import pytest

from farhand.core.event import CallSettled, RunFinished, RunParked, StepFinished, StepStarted, TextAdded
from farhand.core.outcome import Cancelled, Success
from farhand.core.principal import LOCAL, Owner
from farhand.core.result import Refused, Result
from farhand.core.run import RunState
from farhand.core.thread import ResultsMessage, Text, UserMessage, text_of
from farhand.errors import Busy, NotFound
from farhand.models.scripted import Ask, Say
from farhand.store.base import Store
from farhand.testing import FakeClock
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import add, open_url
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, Stage, text_in

REASON = "stopped by the user"
STOPPED = RunFinished(RunState.STOPPED, REASON, delivered=True)
OPEN = Ask("open_url", {"url": "https://example.org"})


async def stop(on: Stage) -> bool:
    async with asyncio.timeout(PATIENCE_SEC):
        return await on.service.stop(LOCAL, THREAD, REASON)


@requirement("runs:stop")
@pytest.mark.parametrize("hold_for", [0.0, 60.0])
async def test_a_waiting_run_is_stopped_with_its_calls(stage: MakeStage, hold_for: float) -> None:
    on = await stage([[OPEN, Ask("add", {"a": 1, "b": 2})], "Hello."], open_url, add)
    run = await on.say("open it", hold_for=hold_for)
    await on.told(run, CallSettled if hold_for else RunParked)
    call = await on.open_call("open_url")
    assert await stop(on)
    assert (await on.told(run, RunFinished))[-1] == STOPPED
    assert await on.outcomes(run) == [Cancelled(REASON), Success(3)]
    late = await on.service.desk.settle(LOCAL, Result(call_id=call.call_id, outcome=Success({})))
    assert isinstance(late, Refused)
    assert text_in(await on.told(await on.say("hi"))) == "Hello."


@requirement("runs:stop")
async def test_a_run_is_stopped_while_the_model_speaks_and_what_it_said_is_kept(stage: MakeStage) -> None:
    on = await stage([[Say(["So far. "]), Say("Never told.", delay=60)], "Hello."])
    run = await on.say("speak")
    await on.told(run, TextAdded)
    assert await stop(on)
    events = await on.told(run, RunFinished)
    assert text_in(events) == "So far. "
    assert events[-2:] == [StepFinished(1, "stopped"), STOPPED]
    assert text_of((await on.messages())[-1]) == "So far. "
    assert text_in(await on.told(await on.say("hi"))) == "Hello."
    assert [text_of(message) for message in on.model.prompts[-1].messages] == ["speak", "So far. ", "hi"]


@requirement("runs:stop")
async def test_a_run_is_stopped_before_the_model_said_a_word(stage: MakeStage) -> None:
    on = await stage([Say("Never told.", delay=60), "Hello."])
    run = await on.say("speak")
    await on.told(run, StepStarted)
    assert await stop(on)
    assert (await on.told(run, RunFinished))[-1] == STOPPED
    assert text_in(await on.told(await on.say("hi"))) == "Hello."


@requirement("runs:stop")
async def test_a_stop_while_the_model_speaks_of_results_keeps_the_results(stage: MakeStage) -> None:
    on = await stage([Ask("add", {"a": 1, "b": 2}), [Say(["It is "]), Say("3", delay=60)], "Hello."], add)
    run = await on.say("add")
    await on.told(run, TextAdded)
    assert await stop(on)
    await on.told(await on.say("hi"))
    messages = on.model.prompts[-1].messages
    [results] = [each for each in messages if isinstance(each, ResultsMessage)]
    assert results.results[0].outcome == Success(3)
    assert text_of(messages[-2]) == "It is "


@requirement("runs:stop")
async def test_an_async_tool_is_cancelled_by_a_stop(stage: MakeStage) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def work() -> str:
        """Work forever."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    on = await stage([Ask("work"), "Hello."], work)
    run = await on.say("work")
    await begun.wait()
    assert await stop(on)
    await ended.wait()
    assert await on.outcomes(run) == [Cancelled(REASON)]
    assert text_in(await on.told(await on.say("hi"))) == "Hello."


@requirement("runs:stop")
async def test_the_late_result_of_a_thread_is_refused_after_a_stop(stage: MakeStage) -> None:
    begun, may_end = threading.Event(), threading.Event()

    @tool
    def work() -> str:
        """Work until told."""
        begun.set()
        may_end.wait(10)
        return "late"

    on = await stage([Ask("work"), "Hello."], work)
    run = await on.say("work")
    await asyncio.to_thread(begun.wait, 10)
    assert await stop(on)
    may_end.set()
    assert await on.outcomes(run) == [Cancelled(REASON)]
    assert text_in(await on.told(await on.say("hi"))) == "Hello."
    assert len(on.model.prompts) == 2


@requirement("runs:stop")
async def test_a_tool_that_will_not_be_cancelled_does_not_hold_up_a_stop(stage: MakeStage) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    @tool
    async def stubborn() -> str:
        """Ignore every cancellation."""
        begun.set()
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue
        return "done after all"

    on = await stage([Ask("stubborn"), "Hello."], stubborn)
    run = await on.say("work")
    await begun.wait()
    assert await stop(on)
    assert await on.outcomes(run) == [Cancelled(REASON)]
    may_end.set()
    assert text_in(await on.told(await on.say("hi"))) == "Hello."


@requirement("runs:stop")
async def test_a_second_stop_is_told_that_nothing_ran(stage: MakeStage) -> None:
    on = await stage([OPEN], open_url)
    run = await on.say("open it")
    await on.told(run)
    answers = await asyncio.gather(*(stop(on) for _ in range(5)))
    assert sorted(answers) == [False] * 4 + [True]
    assert not await stop(on)
    assert [event for event in await on.journal(run) if isinstance(event, RunFinished)] == [STOPPED]


@requirement("runs:stop")
async def test_a_run_that_has_ended_cannot_be_stopped(stage: MakeStage) -> None:
    on = await stage(["Hello."])
    await on.told(await on.say("hi"))
    assert not await stop(on)


@requirement("runs:stop")
@pytest.mark.parametrize("owner", [LOCAL, Owner("acme", "bob")])
async def test_an_unknown_thread_is_not_found(stage: MakeStage, owner: Owner) -> None:
    on = await stage([OPEN], open_url)
    await on.told(await on.say("open it"))
    with pytest.raises(NotFound):
        await on.service.stop(owner, THREAD if owner is not LOCAL else "other", REASON)


@requirement("runs:stop")
async def test_a_stop_and_the_last_result_at_once_leave_one_end(stage: MakeStage) -> None:
    on = await stage(lambda moment: "Hello." if moment.last or moment.text == "hi" else OPEN, open_url)
    run = await on.say("open it", hold_for=60)
    await on.told(run, StepFinished)
    call = await on.open_call()
    await asyncio.gather(
        stop(on), on.service.desk.settle(LOCAL, Result(call_id=call.call_id, outcome=Success({})))
    )
    events = await on.told(run, RunFinished)
    assert [event.state for event in events if isinstance(event, RunFinished)] in (
        [RunState.STOPPED],
        [RunState.DONE],
    )
    assert text_in(await on.told(await on.say("hi"))) == "Hello."


@requirement("runs:one-at-a-time")
async def test_a_new_message_while_the_model_speaks_is_busy(stage: MakeStage) -> None:
    on = await stage([[Say("a"), Say("b", delay=60)]])
    run = await on.say("speak")
    await on.told(run, TextAdded)
    with pytest.raises(Busy):
        await on.say("hurry")
    assert (await on.stored(run)).active
    assert [text_of(message) for message in await on.messages()] == ["speak"]
    await stop(on)


@requirement("runs:one-at-a-time")
async def test_a_new_message_while_a_server_tool_runs_is_busy(stage: MakeStage) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    @tool
    async def work() -> str:
        """Work until told."""
        begun.set()
        await may_end.wait()
        return "worked"

    on = await stage([[Ask("work"), OPEN], "Hello."], work, open_url)
    await on.say("work")
    await begun.wait()
    with pytest.raises(Busy):
        await on.say("hurry")
    may_end.set()
    await on.told(await on.service.last_run(LOCAL, THREAD), RunParked)
    assert text_in(await on.told(await on.say("now"))) == "Hello."


@requirement("runs:one-at-a-time")
async def test_of_many_messages_at_once_one_starts_a_run(stage: MakeStage) -> None:
    on = await stage(lambda moment: Say(moment.text, delay=0.01))
    tried = await asyncio.gather(*(on.say(str(number)) for number in range(20)), return_exceptions=True)
    started = [each for each in tried if not isinstance(each, BaseException)]
    assert len(started) == 1
    assert all(isinstance(each, Busy) for each in tried if isinstance(each, BaseException))
    await on.told(started[0])


async def test_a_message_that_is_posted_again_starts_nothing(stage: MakeStage) -> None:
    on = await stage(["Hello.", "Never."])
    message = UserMessage("m1", (Text("hi"),))
    first = await on.service.start(LOCAL, THREAD, message, hold_for=0.0)
    again = await on.service.start(LOCAL, THREAD, message, hold_for=0.0)
    assert (first.again, again.again) == (False, True)
    assert first.run.run_id == again.run.run_id
    assert text_in(await on.told(again.run)) == "Hello."
    after = await on.service.start(LOCAL, THREAD, message, hold_for=0.0)
    assert after.again
    assert len(on.model.prompts) == 1


async def test_a_message_that_is_posted_many_times_at_once_starts_one_run(stage: MakeStage) -> None:
    on = await stage(["Hello."])
    message = UserMessage("m1", (Text("hi"),))
    started = await asyncio.gather(
        *(on.service.start(LOCAL, THREAD, message, hold_for=0.0) for _ in range(20))
    )
    assert sum(not each.again for each in started) == 1
    assert len({each.run.run_id for each in started}) == 1
    await on.told(started[0].run)


async def test_answers_are_taken_while_a_cancelled_worker_waits_for_its_tools(
    store: Store, clock: FakeClock
) -> None:
    is_running, is_ending, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> str:
        """Takes its time, also to end."""
        is_running.set()
        try:
            await asyncio.Event().wait()
        finally:
            is_ending.set()
            await may_end.wait()
        return ""

    on = Stage(store, clock, [OPEN, Ask("slow")], open_url, slow)
    await on.service.open()
    await on.told(await on.say("go"))
    call = await on.open_call()
    await on.service.start(LOCAL, "t2", UserMessage("m2", (Text("go"),)), hold_for=0.0)
    await is_running.wait()
    serving = on.service._serving
    assert serving is not None
    serving.cancel()
    await is_ending.wait()
    async with asyncio.timeout(PATIENCE_SEC):
        await on.answer(call, Success({"viewKey": "v1"}))
        await on.service.start(LOCAL, "t3", UserMessage("m3", (Text("go"),)), hold_for=0.0)
    may_end.set()
    await on.service.close()
