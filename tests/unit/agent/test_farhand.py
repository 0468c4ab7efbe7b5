"""What faces ask of an agent at work: threads, answers of one message, whether an answer was heard."""

from __future__ import annotations

import pytest

from farhand.calls.change import Reply
from farhand.core.event import Position, RunFinished, RunParked, StepFinished, TextAdded
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL, Owner
from farhand.core.result import Accepted, Repeated, Result
from farhand.core.run import RunState
from farhand.core.settings import Patience, Settings
from farhand.errors import NotFound
from farhand.models.scripted import Ask, Moment, Say, Step
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import ask_text, open_url, take_photo
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, YES, comes_true, text_in

pytestmark = pytest.mark.timeout(PATIENCE_SEC)
OPEN = Ask("open_url", {"url": "https://example.org"})
VIEW = Success({"viewKey": "v1"})
TURNS = Settings(patience=Patience(hold_for=0.0))


@requirement("calls:together")
async def test_a_message_moves_only_calls_of_its_own_run(stage: MakeStage) -> None:
    on = await stage([OPEN, _tell], open_url, settings=TURNS)
    run = await on.say("open it")
    await on.told(run)
    call = await on.open_call()
    foreign = Result(call_id="call_" + "0" * 32, outcome=VIEW)
    own = Result(call_id=call.call_id, outcome=VIEW)
    assert await on.farhand.accept(run, [foreign], hold_for=0.0) == []
    assert await on.farhand.accept(run, [foreign, own], hold_for=0.0) == [(own, Accepted())]
    assert text_in(await on.told(run, RunFinished)) == "{'viewKey': 'v1'}"
    assert await on.farhand.accept(run, [own], hold_for=0.0) == [(own, Repeated())]


@requirement("runs:hold")
async def test_a_run_that_a_message_brings_back_holds_as_that_message_wishes(stage: MakeStage) -> None:
    on = await stage([OPEN, OPEN, _tell], open_url, settings=TURNS)
    run = await on.say("open it")
    after = (await on.heard(run))[-1].end
    call = await on.open_call()
    await on.farhand.accept(run, [Result(call_id=call.call_id, outcome=VIEW)], hold_for=60.0)
    await on.told(run, StepFinished, after=after)

    async def waits() -> bool:
        return (await on.stored(run)).waits

    await comes_true(waits)
    assert not (await on.stored(run)).parked
    await on.answer(await on.open_call(), VIEW)
    await on.told(run, RunFinished)


@requirement("calls:together")
async def test_a_yes_and_an_output_in_one_message_are_both_taken(stage: MakeStage) -> None:
    on = await stage([Ask("take_photo", {"camera": "front"}), _tell], take_photo, settings=TURNS)
    run = await on.say("photo")
    await on.told(run)
    call = await on.open_call()
    assert call.approval is not None
    yes = Reply(call.approval.approval_id, YES)
    output = Result(call_id=call.call_id, outcome=Success("a photo"))
    told = await on.farhand.accept(run, [yes, output], hold_for=0.0)
    assert told == [(yes, Accepted()), (output, Accepted())]
    assert text_in(await on.told(run, RunFinished)) == "a photo"


async def test_the_end_of_the_step_of_a_call_is_where_its_outcome_follows(stage: MakeStage) -> None:
    on = await stage([["Look. ", OPEN], _tell], open_url, settings=TURNS)
    run = await on.say("open it")
    entries = await on.heard(run, StepFinished)
    call = await on.open_call()
    assert await on.farhand.end_of_step(run, [call.call_id]) == Position(entries[-1].seq)
    with pytest.raises(NotFound):
        await on.farhand.end_of_step(run, ["call_" + "0" * 32])


@requirement("streams:unheard")
async def test_an_answer_that_ended_while_nobody_read_is_to_be_heard_until_it_was(
    stage: MakeStage, clock: FakeClock
) -> None:
    on = await stage(["Hello."])
    run = await on.say("hi")
    await on.idle()
    clock.advance(3_600)
    ended = await on.stored(run)
    assert await on.farhand.is_unheard(ended)
    assert await on.farhand.is_to_be_heard(ended)
    await on.farhand.heard(ended)
    ended = await on.stored(run)
    assert not await on.farhand.is_unheard(ended)
    assert not await on.farhand.is_to_be_heard(ended)


@requirement("streams:unheard")
async def test_an_answer_that_was_heard_stays_to_be_heard_for_a_moment(
    stage: MakeStage, clock: FakeClock
) -> None:
    on = await stage([[Say(["Hello"]), Say([" you."])]])
    run = await on.say("hi")
    await on.told(run, TextAdded)
    assert await on.farhand.is_to_be_heard(run)
    assert not await on.farhand.is_unheard(run)
    await on.told(run)
    await on.idle()
    ended = await on.stored(run)
    if await on.farhand.is_unheard(ended):
        await on.farhand.heard(ended)
    assert await on.farhand.is_to_be_heard(ended)
    clock.advance(61)
    assert not await on.farhand.is_to_be_heard(await on.stored(run))


@requirement("runs:delete")
async def test_a_deleted_thread_is_gone_with_its_run_and_its_calls(stage: MakeStage) -> None:
    on = await stage([OPEN, "Fresh."], open_url)
    run = await on.say("open it", hold_for=60)
    await on.told(run, StepFinished)
    call = await on.open_call()
    await on.farhand.delete(LOCAL, THREAD)
    assert await on.farhand.thread(LOCAL, THREAD) is None
    assert await on.farhand.find_run(LOCAL, THREAD) is None
    assert await on.farhand.call_of(LOCAL, call.call_id) is None
    await on.idle()
    assert text_in(await on.told(await on.say("again"))) == "Fresh."


@requirement("runs:delete")
async def test_another_owners_thread_is_not_deleted(stage: MakeStage) -> None:
    on = await stage(["Hello."])
    await on.told(await on.say("hi"))
    await on.farhand.delete(Owner("acme", "bob"), THREAD)
    assert await on.farhand.thread(LOCAL, THREAD) is not None


async def test_threads_are_listed_and_renamed(stage: MakeStage) -> None:
    on = await stage(["Hello."])
    await on.told(await on.say("hi"))
    await on.farhand.rename(LOCAL, THREAD, "Greetings")
    [thread] = await on.farhand.threads(LOCAL, limit=10)
    assert (thread.thread_id, thread.title) == (THREAD, "Greetings")
    assert await on.farhand.threads(Owner("acme", "bob"), limit=10) == []


async def test_a_tool_that_returns_text_is_known_as_such(stage: MakeStage) -> None:
    on = await stage([[OPEN, Ask("ask_text", {"question": "?"})]], open_url, ask_text)
    run = await on.say("both")
    await on.told(run, RunParked)
    page, text = await on.calls(run)
    assert not await on.farhand.returns_text(page)
    assert await on.farhand.returns_text(text)


async def test_a_farhand_that_is_open_is_not_opened_twice(stage: MakeStage) -> None:
    on = await stage(["Hello."])
    await on.farhand.open()
    await on.farhand.ping()
    await on.told(await on.say("hi"))
    assert (await on.farhand.last_run(LOCAL, THREAD)).state is RunState.DONE


def _tell(moment: Moment) -> Step:
    return " ".join(str(each.output) if each.kind == "success" else each.error for each in moment.last)
