"""Hold, then park: far hands may take minutes or days, and the run continues where it was."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from farhand.core.event import CallOpened, CallSettled, RunFailed, RunFinished, RunParked, StepFinished
from farhand.core.outcome import Cancelled, Failure, Success, TimedOut
from farhand.core.principal import LOCAL, Owner
from farhand.core.result import Accepted, Refused, Result
from farhand.core.run import RunState
from farhand.core.settings import Limits, Settings, Timeouts
from farhand.core.thread import ResultsMessage, Text, UserMessage
from farhand.models.scripted import Ask, Moment, Step
from farhand.testing import FakeClock
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import add, ask_text, open_url
from tests.unit.agent.stage import comes_true, kinds, text_in, the

VIEW = Success({"viewKey": "v1"})
OPEN = Ask("open_url", {"url": "https://example.org"})


@requirement("runs:park")
async def test_a_run_that_waits_for_a_far_hand_parks_and_costs_no_task(stage: MakeStage) -> None:
    on = await stage([OPEN, _tell], open_url)
    run = await on.say("open it")
    events = await on.told(run)
    assert isinstance(events[-1], RunParked)
    await on.idle()
    stored = await on.stored(run)
    assert (stored.state, stored.parked) == (RunState.WAITING, True)
    assert await on.store.claimable(limit=10) == [], "nobody has to look after it"


@requirement("runs:park")
async def test_a_result_brings_a_parked_run_back_and_the_model_gets_exactly_that_result(
    stage: MakeStage,
) -> None:
    on = await stage([OPEN, _tell], open_url)
    run = await on.say("open it")
    parked = await on.heard(run)
    await on.answer(await on.open_call(), VIEW)
    rest = await on.told(run, after=parked[-1].end)
    assert kinds(rest)[:2] == ["CallSettled", "RunResumed"]
    assert text_in(rest) == "{'viewKey': 'v1'}"
    assert len(on.model.prompts) == 2
    [results] = [each for each in await on.messages() if isinstance(each, ResultsMessage)]
    assert [each.outcome for each in results.results] == [VIEW]


@requirement("runs:park")
async def test_a_run_continues_when_the_last_of_its_calls_is_answered(stage: MakeStage) -> None:
    on = await stage([[OPEN, Ask("ask_text", {"question": "?"})], _tell], open_url, ask_text)
    run = await on.say("both")
    await on.told(run)
    await on.answer(await on.open_call("ask_text"), Success("yes"))
    assert (await on.stored(run)).parked
    await on.answer(await on.open_call("open_url"), VIEW)
    assert text_in(await on.told(run, RunFinished)) == "{'viewKey': 'v1'} yes"


@requirement("runs:park")
async def test_the_far_and_the_near_tools_of_one_step_are_all_waited_for(stage: MakeStage) -> None:
    on = await stage([[OPEN, Ask("add", {"a": 1, "b": 2})], _tell], open_url, add)
    run = await on.say("both")
    await on.told(run)
    assert await on.outcomes(run) == [None, Success(3)]
    await on.answer(await on.open_call(), VIEW)
    assert text_in(await on.told(run, RunFinished)) == "{'viewKey': 'v1'} 3"


@requirement("runs:park")
async def test_a_far_hand_may_answer_while_a_near_tool_still_runs(stage: MakeStage) -> None:
    may_end = asyncio.Event()

    @tool
    async def work() -> str:
        """Work until told."""
        await may_end.wait()
        return "worked"

    on = await stage([[OPEN, Ask("work")], _tell], open_url, work)
    run = await on.say("both")
    await on.told(run, StepFinished)
    await on.answer(await on.open_call("open_url"), VIEW)
    may_end.set()
    events = await on.told(run, RunFinished)
    assert text_in(events) == "{'viewKey': 'v1'} worked"
    assert not any(isinstance(event, RunParked) for event in events)


async def test_of_many_results_at_once_the_model_gets_the_winner_once(stage: MakeStage) -> None:
    on = await stage([Ask("ask_text", {"question": "?"}), _tell], ask_text)
    run = await on.say("ask")
    await on.told(run)
    call = await on.open_call()
    results = [Result(call_id=call.call_id, outcome=Success(str(number))) for number in range(50)]
    receipts = await asyncio.gather(*(on.service.desk.settle(LOCAL, result) for result in results))
    won = results[receipts.index(Accepted())].outcome
    assert isinstance(won, Success)
    assert text_in(await on.told(run, RunFinished)) == won.output
    assert len(on.model.prompts) == 2


@requirement("runs:hold")
async def test_a_held_run_continues_in_the_same_stream_without_a_pause(stage: MakeStage) -> None:
    on = await stage([OPEN, _tell], open_url)
    run = await on.say("open it", hold_for=60)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(on.told(run))
        await on.told(run, StepFinished)
        await on.answer(await on.open_call(), VIEW)
    events = reading.result()
    assert not {"RunParked", "RunResumed"} & set(kinds(events))
    assert text_in(events) == "{'viewKey': 'v1'}"
    assert (await on.stored(run)).fence == 1


@requirement("runs:hold")
async def test_a_run_parks_when_it_was_held_long_enough(stage: MakeStage) -> None:
    on = await stage([OPEN, _tell], open_url)
    run = await on.say("open it", hold_for=0.05)
    assert isinstance((await on.told(run))[-1], RunParked)


@requirement("runs:hold")
async def test_a_held_run_that_nobody_reads_parks_early(stage: MakeStage) -> None:
    on = await stage([OPEN, _tell], open_url, settings=Settings(timeouts=Timeouts(unread_for=0.05)))
    run = await on.say("open it", hold_for=600)

    async def parked() -> bool:
        # reading would keep it from parking
        return (await on.stored(run)).parked

    await comes_true(parked)


@pytest.mark.slow
@requirement("runs:hold")
async def test_a_held_run_that_is_read_does_not_park_early(stage: MakeStage) -> None:
    on = await stage([OPEN, _tell], open_url, settings=Settings(timeouts=Timeouts(unread_for=0.4)))
    started = asyncio.get_running_loop().time()
    run = await on.say("open it", hold_for=1.2)
    await on.told(run, RunParked)
    assert asyncio.get_running_loop().time() - started >= 1.2


@requirement("runs:hold")
async def test_a_held_run_shows_as_waiting(stage: MakeStage) -> None:
    on = await stage([[OPEN, Ask("add", {"a": 1, "b": 2})], _tell], open_url, add)
    run = await on.say("both", hold_for=60)
    await on.told(run, CallSettled)

    async def waits() -> bool:
        return (await on.stored(run)).waits

    await comes_true(waits)
    assert not (await on.stored(run)).parked


@pytest.mark.parametrize("hold_for", [0.0, 60.0])
async def test_the_deadline_of_the_last_open_call_lets_the_run_continue(
    stage: MakeStage, clock: FakeClock, hold_for: float
) -> None:
    on = await stage([Ask("ask_text", {"question": "?"}), _tell], ask_text)
    run = await on.say("ask", hold_for=hold_for)
    await on.told(run, RunParked if hold_for == 0 else StepFinished)
    clock.advance(5)
    await on.service.deadlines.sweep(on.service.desk)
    assert text_in(await on.told(run, RunFinished)) == "timed out after 5 s"
    assert await on.outcomes(run) == [TimedOut(5.0)]


async def test_a_result_after_the_deadline_is_refused_and_the_model_hears_of_the_timeout(
    stage: MakeStage, clock: FakeClock
) -> None:
    on = await stage([Ask("ask_text", {"question": "?"}), _tell], ask_text)
    run = await on.say("ask")
    await on.told(run)
    call = await on.open_call()
    clock.advance(5)
    receipt = await on.service.desk.settle(LOCAL, Result(call_id=call.call_id, outcome=Success("late")))
    assert isinstance(receipt, Refused)
    assert text_in(await on.told(run, RunFinished)) == "timed out after 5 s"


@requirement("calls:deadline-defaults")
@pytest.mark.parametrize(("hold_for", "seconds"), [(0.0, 3 * 24 * 3600), (60.0, 60)])
async def test_a_call_may_take_as_long_as_its_run_waits(
    stage: MakeStage, clock: FakeClock, hold_for: float, seconds: float
) -> None:
    on = await stage([OPEN, _tell], open_url)
    run = await on.say("open it", hold_for=hold_for)
    opened = the(CallOpened, await on.told(run, StepFinished))
    assert opened.deadline == clock.now() + seconds


@requirement("runs:park")
async def test_steps_are_counted_across_pauses(stage: MakeStage) -> None:
    def script(moment: Moment) -> Step:
        return Ask("open_url", {"url": str(moment.steps)})

    turns = Settings(limits=Limits(max_steps=2), timeouts=Timeouts(hold_for=0.0))
    on = await stage(script, open_url, settings=turns)
    run = await on.say("go")
    after = (await on.heard(run))[-1].end
    for _ in range(2):
        await on.answer(await on.open_call(), VIEW)
        after = (await on.heard(run, after=after))[-1].end
    assert the(RunFailed, await on.journal(run)).code == "max_steps"
    assert len(on.model.prompts) == 2


async def test_a_far_hand_that_fails_three_times_ends_the_run_too(stage: MakeStage) -> None:
    on = await stage(lambda moment: OPEN, open_url, settings=Settings(timeouts=Timeouts(hold_for=0.0)))
    run = await on.say("go")
    after = (await on.heard(run))[-1].end
    for _ in range(3):
        await on.answer(await on.open_call(), Failure("popup blocked"))
        after = (await on.heard(run, after=after))[-1].end
    assert the(RunFailed, await on.journal(run)).code == "stuck"


@pytest.mark.parametrize("hold_for", [0.0, 60.0])
async def test_a_new_message_leaves_a_waiting_run_behind(stage: MakeStage, hold_for: float) -> None:
    on = await stage([OPEN, "Hello."], open_url)
    first = await on.say("open it", hold_for=hold_for)
    await on.told(first, RunParked if hold_for == 0 else StepFinished)
    call = await on.open_call()
    second = await on.say("never mind")
    assert text_in(await on.told(second)) == "Hello."
    left = await on.told(first, RunFinished)
    assert left[-1] == RunFinished(RunState.STOPPED, "the user moved on", delivered=True)
    assert await on.outcomes(first) == [Cancelled("the user moved on")]
    late = await on.service.desk.settle(LOCAL, Result(call_id=call.call_id, outcome=VIEW))
    assert isinstance(late, Refused)
    assert late.reason == "cancelled"


@requirement("calls:owner")
async def test_threads_of_two_owners_with_the_same_id_are_two(stage: MakeStage) -> None:
    on = await stage(lambda moment: f"To {moment.text}.")
    owners = [Owner("acme", "ann"), Owner("acme", "bob")]
    for owner in owners:
        message = UserMessage("m1", (Text(owner.subject),))
        started = await on.service.start(owner, "shared", message, hold_for=0.0)
        assert not started.again
        await on.told(started.run)
    runs = [await on.service.last_run(owner, "shared") for owner in owners]
    assert runs[0].run_id != runs[1].run_id
    assert await on.log.get_run(owners[1], runs[0].run_id) is None
    assert await on.log.entries(replace(runs[0], owner=owners[1])) == []


@requirement("runs:park")
async def test_a_second_pause_after_a_resume_parks_again(stage: MakeStage) -> None:
    on = await stage([OPEN, OPEN, _tell], open_url)
    run = await on.say("twice")
    after = (await on.heard(run))[-1].end
    on.service.worker.prefer(run.run_id, hold_for=0.0)
    await on.answer(await on.open_call(), VIEW)
    after = (await on.heard(run, RunParked, after=after))[-1].end
    await on.answer(await on.open_call(), VIEW)
    events = await on.told(run, RunFinished, after=after)
    assert kinds(events)[:2] == ["CallSettled", "RunResumed"]
    assert (await on.stored(run)).fence == 3


def _tell(moment: Moment) -> Step:
    return " ".join(str(each.output) if each.kind == "success" else each.error for each in moment.last)
