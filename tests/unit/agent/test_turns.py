"""Turns: what one message does to a thread, who may do it, and where its response begins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from msgspec.structs import replace

from farhand.agent.pause import PostedResult
from farhand.agent.turns import CallAnswers, NewMessage, Regeneration, Turn
from farhand.calls.desk import Reply, Submission
from farhand.core.event import RunFinished, RunParked, StepFinished, TextAdded
from farhand.core.outcome import Failure, Success
from farhand.core.position import START, Bookmark, Position
from farhand.core.principal import LOCAL, Principal
from farhand.core.result import Accepted, Refused, Repeated, Result
from farhand.core.settings import Settings, Timeouts
from farhand.core.thread import Text
from farhand.errors import NotAllowed, NotFound, TooLarge
from farhand.models.scripted import Ask, Moment, Say, Step
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import ask_text, open_url, take_photo
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, YES, Stage, comes_true, text_in

pytestmark = pytest.mark.timeout(PATIENCE_SEC)
OPEN = Ask("open_url", {"url": "https://example.org"})
PHOTO = Ask("take_photo", {"camera": "front"})
VIEW = Success({"viewKey": "v1"})
TURNS = Settings(timeouts=Timeouts(hold_for=0.0))
ME = Principal(LOCAL.tenant, LOCAL.subject, claims={"plan": "pro"})
NOBODY = "call_" + "0" * 32


async def test_a_message_moves_only_calls_of_its_own_run(stage: MakeStage) -> None:
    on = await stage([OPEN, _tell], open_url, settings=TURNS)
    run = await on.say("open it")
    await on.told(run)
    call = await on.open_call()
    foreign, own = Result(call_id=NOBODY, outcome=VIEW), Result(call_id=call.call_id, outcome=VIEW)
    assert (await _answer(on, call.call_id, foreign)).receipts == ()
    assert (await _answer(on, call.call_id, foreign, own)).receipts == ((own, Accepted()),)
    assert text_in(await on.told(run, RunFinished)) == "{'viewKey': 'v1'}"
    assert (await _answer(on, call.call_id, own)).receipts == ((own, Repeated()),)


@requirement("runs:hold")
async def test_a_run_that_a_message_resumes_holds_as_that_message_says(stage: MakeStage) -> None:
    settings = Settings(timeouts=Timeouts(hold_for=60.0))
    on = await stage([OPEN, OPEN, _tell], open_url, settings=settings)
    run = await on.say("open it", hold_for=0.0)
    after = (await on.heard(run))[-1].end
    call = await on.open_call()
    answers = CallAnswers((Result(call_id=call.call_id, outcome=VIEW),), (call.call_id,))
    turn = await on.service.turns.answer(ME, THREAD, answers, wait="hold")
    assert turn.is_followed
    await on.told(run, StepFinished, after=after)

    async def waits() -> bool:
        return (await on.stored(run)).waits

    await comes_true(waits)
    assert not (await on.stored(run)).parked
    await on.answer(await on.open_call(), VIEW)
    await on.told(run, RunFinished)


async def test_an_approval_and_an_output_in_one_message_are_both_accepted(stage: MakeStage) -> None:
    on = await stage([PHOTO, _tell], take_photo, settings=TURNS)
    run = await on.say("photo")
    await on.told(run)
    call = await on.open_call()
    assert call.approval is not None
    yes = Reply(call.approval.approval_id, YES)
    output = Result(call_id=call.call_id, outcome=Success("a photo"))
    turn = await _answer(on, call.call_id, yes, output)
    assert turn.receipts == ((replace(yes, by=ME.claims), Accepted()), (output, Accepted()))
    assert not turn.awaits_output
    assert text_in(await on.told(run, RunFinished)) == "a photo"
    [call] = (await on.service.turns.load(run)).calls
    assert call.approval is not None
    assert call.approval.by == {"plan": "pro"}


@pytest.mark.slow
async def test_an_approval_alone_waits_for_the_output_that_may_follow(stage: MakeStage) -> None:
    on = await stage([PHOTO, _tell], take_photo, settings=TURNS)
    await on.told(await on.say("photo"))
    call = await on.open_call()
    assert call.approval is not None
    yes = Reply(call.approval.approval_id, YES)
    turns = on.service.turns
    async with asyncio.TaskGroup() as group:
        approved = group.create_task(
            turns.take(ME, THREAD, CallAnswers((yes,), (call.call_id,)), output_grace=2.0)
        )
        await comes_true(lambda: _is_ready(on, call.call_id))
        await turns.answer_call(ME, Result(call_id=call.call_id, outcome=Success("a photo")))
    turn = approved.result()
    assert turn.awaits_output
    assert not turn.is_at_rest


async def test_a_result_for_another_input_than_the_stored_one_has_no_effect(stage: MakeStage) -> None:
    on = await stage([OPEN, _tell], open_url, settings=TURNS)
    await on.told(await on.say("open it"))
    call = await on.open_call()
    shown: dict[str, object] = {call.call_id: {"url": "https://evil.example"}}
    answers = CallAnswers((Result(call_id=call.call_id, outcome=VIEW),), (call.call_id,), shown)
    turn = await on.service.turns.answer(ME, THREAD, answers)
    assert (turn.receipts, set(turn.altered)) == ((), {call.call_id})
    assert turn.is_at_rest


@pytest.mark.parametrize(("scopes", "refused"), [({"chat", "approve"}, "answer"), ({"chat", "answer"}, None)])
async def test_a_result_needs_the_permission_to_answer(
    stage: MakeStage, scopes: set[str], refused: str | None
) -> None:
    on = await stage([OPEN, _tell], open_url, settings=TURNS)
    await on.told(await on.say("open it"))
    call = await on.open_call()
    result, who = Result(call_id=call.call_id, outcome=VIEW), replace(ME, scopes=frozenset(scopes))
    answers = CallAnswers((result,), (call.call_id,))
    if refused is None:
        assert (await on.service.turns.answer(who, THREAD, answers)).receipts == ((result, Accepted()),)
        return
    with pytest.raises(NotAllowed, match=f"may not {refused}"):
        await on.service.turns.answer(who, THREAD, answers)
    assert (await on.open_call()).call_id == call.call_id


async def test_an_error_that_is_too_long_is_refused_and_nothing_is_applied(stage: MakeStage) -> None:
    on = await stage([OPEN, _tell], open_url, settings=TURNS)
    await on.told(await on.say("open it"))
    call = await on.open_call()
    with pytest.raises(TooLarge):
        await _answer(on, call.call_id, Result(call_id=call.call_id, outcome=Failure("x" * 100_000)))
    assert (await on.open_call()).call_id == call.call_id


async def test_a_response_to_answers_begins_after_the_step_of_their_calls(stage: MakeStage) -> None:
    on = await stage([["Look. ", OPEN], _tell], open_url, settings=TURNS)
    run = await on.say("open it")
    entries = await on.heard(run, StepFinished)
    call = await on.open_call()
    assert (await _answer(on, call.call_id)).after == Position(entries[-1].seq)
    with pytest.raises(NotFound):
        await _answer(on, NOBODY)
    with pytest.raises(NotFound):
        await on.service.turns.answer(ME, "nowhere", CallAnswers((), (call.call_id,)))
    with pytest.raises(NotFound):
        await on.service.turns.answer_call(ME, Result(call_id=NOBODY, outcome=VIEW))


async def test_text_that_holds_json_is_read_unless_the_tool_returns_text(stage: MakeStage) -> None:
    on = await stage(
        [[OPEN, Ask("ask_text", {"question": "?"})], "Done."], open_url, ask_text, settings=TURNS
    )
    run = await on.say("both")
    await on.told(run, RunParked)
    page, text = await on.calls(run)
    sent = '{"viewKey": "v1"}'
    results = [Result(call_id=call.call_id, outcome=Success(sent)) for call in (page, text)]
    turn = await _answer(on, page.call_id, *results)
    assert [call.outcome for call in turn.calls] == [VIEW, Success(sent)]


async def test_a_message_that_is_known_gets_the_run_that_there_is(stage: MakeStage) -> None:
    on = await stage(["Hello.", "Again."])
    message = NewMessage("m1", (Text("hi"),))
    first = await on.service.turns.take(ME, THREAD, message)
    assert (first.is_new, first.run.claims) == (True, {"plan": "pro"})
    await on.told(first.run)
    known = await on.service.turns.take(ME, THREAD, message)
    assert (known.is_new, known.run.run_id) == (False, first.run.run_id)
    again = await on.service.turns.take(ME, THREAD, Regeneration(None))
    assert again.is_new
    assert again.run.run_id != first.run.run_id
    assert (await on.service.turns.load(first.run)).run.run_id == first.run.run_id


async def test_posted_results_are_taken_together_or_not_at_all(stage: MakeStage) -> None:
    on = await stage([[OPEN, PHOTO], _tell], open_url, take_photo, settings=TURNS)
    run = await on.say("both")
    await on.told(run, RunParked)
    page, photo = await on.calls(run)
    turns = on.service.turns
    sent = PostedResult(page.call_id, '{"viewKey": "v1"}')
    refused = await turns.answer_pause(ME, THREAD, [sent, PostedResult(photo.call_id, "a photo")])
    assert refused.is_refused
    assert refused.receipts == ((photo.call_id, Refused("not_approved")),)
    yes = PostedResult(photo.call_id, "a photo", approved=True)
    who = replace(ME, scopes=frozenset({"answer"}))
    with pytest.raises(NotAllowed):
        await turns.answer_pause(who, THREAD, [sent, yes])
    accepted = await turns.answer_pause(ME, THREAD, [sent, yes])
    assert accepted.ignored == ()
    await on.told(run, RunFinished)
    late = await turns.answer_pause(ME, THREAD, [sent, yes])
    assert [receipt for _, receipt in late.receipts] == [Repeated(), Repeated()]


async def test_an_answer_that_ended_while_nobody_read_is_replayed_until_it_was_read(
    stage: MakeStage, clock: FakeClock
) -> None:
    may_speak = asyncio.Event()

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        await may_speak.wait()
        yield "Hello."

    on = await stage(script)
    run = await on.say("hi")
    # an answer that is there before the one who asked could read would count as read
    may_speak.set()
    await on.idle()
    clock.advance(3_600)
    turn = await on.service.turns.resume(LOCAL, THREAD, None)
    assert turn is not None
    assert not turn.run.is_delivered
    await on.service.mark_delivered(turn.run)
    assert (await on.stored(run)).is_delivered
    assert await on.service.turns.resume(LOCAL, THREAD, None) is None


async def test_an_answer_that_was_read_is_replayed_for_a_moment(stage: MakeStage, clock: FakeClock) -> None:
    on = await stage([[Say(["Hello"]), Say([" you."])]])
    run = await on.say("hi")
    await on.told(run, TextAdded)
    assert await on.service.turns.resume(LOCAL, THREAD, None) is not None
    await on.told(run)
    await on.idle()
    await on.service.mark_delivered(run)
    assert await on.service.turns.resume(LOCAL, THREAD, None) is not None
    clock.advance(61)
    assert await on.service.turns.resume(LOCAL, THREAD, None) is None


async def test_a_reader_that_comes_back_continues_after_its_position(stage: MakeStage) -> None:
    on = await stage(["Hello."])
    run = await on.say("hi")
    entries = await on.heard(run, RunFinished)
    at = Position(entries[1].seq)
    turn = await on.service.turns.resume(LOCAL, THREAD, Bookmark(at))
    assert turn is not None
    assert turn.seen is not None
    assert (turn.after, [entry.seq for entry in turn.seen]) == (at, [1, 2])
    unknown = await on.service.turns.resume(LOCAL, THREAD, Bookmark(Position(999)))
    assert unknown is not None
    assert (unknown.after, unknown.seen) == (START, None)
    assert (await on.service.turns.find(LOCAL, THREAD, Bookmark(at))).after == at
    assert await on.service.turns.resume(LOCAL, "nowhere", None) is None
    with pytest.raises(NotFound):
        await on.service.turns.find(LOCAL, "nowhere")


async def _answer(on: Stage, call_id: str, *items: Submission) -> Turn:
    return await on.service.turns.answer(ME, THREAD, CallAnswers(items, (call_id,)), wait="turn")


async def _is_ready(on: Stage, call_id: str) -> bool:
    call = await on.service.log.get_call(LOCAL, call_id)
    return call is not None and call.approval is not None and call.approval.answer is not None


def _tell(moment: Moment) -> Step:
    output = moment.results[-1].outcome
    return str(output.output) if isinstance(output, Success) else "no"
