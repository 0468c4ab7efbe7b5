"""Posts: what a request with tools, results, answers and a message at once means."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from farhand.agent.post_content import Post, PostedMessage, PostedTurn, PostView, QuestionAnswer
from farhand.core.approval import Answer
from farhand.core.call import Phase
from farhand.core.event import RunFinished, RunParked
from farhand.core.outcome import Failure, Success
from farhand.core.position import START, Position
from farhand.core.principal import LOCAL, Principal
from farhand.core.result import Result
from farhand.core.settings import Settings, Timeouts
from farhand.core.thread import Text, text_of
from farhand.errors import Busy, Malformed, NotAllowed, NotFound, Unanswered
from farhand.models.scripted import Ask
from farhand.tools.decorate import tool
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import open_url, take_photo
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, YES, Stage, text_in

pytestmark = pytest.mark.timeout(PATIENCE_SEC)
OPEN = Ask("open_url", {"url": "https://example.org"})
PHOTO = Ask("take_photo", {"camera": "front"})
TURNS = Settings(timeouts=Timeouts(hold_for=0.0))
ME = Principal(LOCAL.tenant, LOCAL.subject)
HELLO = PostedMessage("m1", (Text("hello"),))
MORE = PostedMessage("m2", (Text("more"),))


def _post(alias: str = "r1", **more: object) -> Post:
    return Post(thread_id=THREAD, alias=alias, **more)  # type: ignore[arg-type]


async def _take(on: Stage, post: Post) -> PostedTurn:
    return await on.service.posts.take(ME, post)


async def test_the_newest_name_of_a_run_is_the_one_that_stops_it(stage: MakeStage) -> None:
    on = await stage([OPEN, OPEN, "x"], open_url, settings=TURNS)
    turn = await _take(on, _post("first", messages=(HELLO,)))
    await on.told(turn.run, RunParked)
    call = await on.open_call()
    posts = on.service.posts
    assert not await posts.stop(LOCAL, THREAD, "other")
    result = Result(call_id=call.call_id, outcome=Success({"viewKey": "v"}))
    turn = await _take(on, _post("second", results=(result,)))
    assert (await on.stored(turn.run)).alias == "second"
    assert not await posts.stop(LOCAL, THREAD, "first")
    assert await posts.stop(LOCAL, THREAD, "second")
    assert not await posts.stop(LOCAL, THREAD, None)
    assert not await posts.stop(LOCAL, "nowhere", None)


async def test_a_new_run_is_read_from_its_first_event_however_far_it_got(stage: MakeStage) -> None:
    on = await stage([OPEN, "Next."], open_url, settings=TURNS)
    first = await _take(on, _post(messages=(HELLO,)))
    await on.told(first.run, RunParked)
    call = await on.open_call()
    result = Result(call_id=call.call_id, outcome=Success({"viewKey": "v"}))
    turn = await _take(on, _post("r2", messages=(MORE,), results=(result,)))
    assert turn.after.seq == 1
    assert text_in(await on.told(turn.run, RunFinished, after=turn.after)) == "Next."
    settled = await on.log.get_call(LOCAL, call.call_id)
    assert settled is not None
    assert settled.outcome == Success({"viewKey": "v"})


async def test_what_makes_no_sense_in_a_thread_is_reported_and_changes_nothing(stage: MakeStage) -> None:
    on = await stage([PHOTO, "x"], take_photo, settings=TURNS)
    with pytest.raises(NotFound):
        await _take(on, _post())
    answer = QuestionAnswer("apr_0", Answer(approved=True), Success(None))
    with pytest.raises(Unanswered):
        await _take(on, _post(answers=(answer,)))
    turn = await _take(on, _post(messages=(HELLO,)))
    await on.told(turn.run, RunParked)
    call = await on.open_call()
    assert call.approval is not None
    approval_id = call.approval.approval_id
    with pytest.raises(Unanswered):
        await _take(on, _post(messages=(MORE,)))
    with pytest.raises(Malformed):
        await _take(on, _post(answers=(QuestionAnswer(approval_id, None, Success("yes")),)))
    version = (await on.stored(turn.run)).last_seq
    answer = QuestionAnswer(approval_id, Answer(approved=True), Success(None))
    chatting = Principal(LOCAL.tenant, LOCAL.subject, frozenset({"chat"}))
    with pytest.raises(NotAllowed):
        await on.service.posts.take(chatting, _post(answers=(answer,)))
    assert (await on.stored(turn.run)).last_seq == version


async def test_an_approval_that_opens_while_a_message_comes_in_is_not_passed_over(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = await stage([OPEN, PHOTO, "x"], open_url, take_photo, settings=TURNS)
    turn = await _take(on, _post(messages=(HELLO,)))
    await on.told(turn.run, RunParked)
    call = await on.open_call()

    async def happen() -> None:
        after = Position((await on.stored(turn.run)).last_seq)
        await on.answer(call, Success({"viewKey": "v"}))
        await on.told(turn.run, RunParked, after=after)

    _after_the_first_look(on, monkeypatch, happen)
    with pytest.raises(Unanswered):
        await _take(on, _post(messages=(MORE,)))
    asking = await on.open_call()
    assert asking.phase is Phase.ASKING


async def test_an_answer_is_not_replaced_if_the_thread_continued_meanwhile(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = await stage(["One.", "Two.", "Three."], settings=TURNS)
    turn = await _take(on, _post(messages=(HELLO,)))
    await on.told(turn.run, RunFinished)
    await on.service.mark_delivered(turn.run)

    async def happen() -> None:
        more = await _take(on, _post("r2", messages=(MORE,)))
        await on.told(more.run, RunFinished)

    _after_the_first_look(on, monkeypatch, happen)
    with pytest.raises(Busy):
        await _take(on, _post("r3", messages=(HELLO,)))
    said = [text_of(each) for each in await on.log.messages(LOCAL, THREAD)]
    assert said == ["hello", "One.", "more", "Two."]


def _after_the_first_look(
    on: Stage, monkeypatch: pytest.MonkeyPatch, happen: Callable[[], Awaitable[None]]
) -> None:
    """Between what a post reads and what it decides, something else is stored."""
    read = on.log.read

    # Any: it reads whatever the one that it stands for reads
    async def read_then(*arguments: Any) -> Any:
        seen = await read(*arguments)
        if isinstance(seen, PostView):
            monkeypatch.setattr(on.log, "read", read)
            await happen()
        return seen

    monkeypatch.setattr(on.log, "read", read_then)


async def test_calls_that_the_client_was_not_shown_are_hidden_in_a_correction(stage: MakeStage) -> None:
    on = await stage([[OPEN, OPEN], "x"], open_url, settings=TURNS)
    turn = await _take(on, _post(messages=(HELLO,)))
    await on.told(turn.run, RunParked)
    first, second = await on.log.open_calls(LOCAL, THREAD)
    await on.answer(first, Failure("somebody was faster"))
    late = Result(call_id=first.call_id, outcome=Success({}))
    turn = await _take(on, _post(results=(late,), shown_calls=frozenset({first.call_id})))
    assert turn.history is not None
    assert turn.hidden == {second.call_id}
    assert [call.call_id for call in turn.settled] == [first.call_id]
    assert turn.is_at_rest


async def test_an_answer_whose_events_were_removed_is_its_messages_alone(stage: MakeStage) -> None:
    on = await stage(["Hello."], settings=TURNS)
    turn = await _take(on, _post(messages=(HELLO,)))
    await on.told(turn.run, RunFinished)
    whole = await on.service.posts.connect(ME, THREAD, ())
    assert whole is not None
    assert whole.after == START
    await on.log.purge(before=on.log.now() + 1.0)
    kept = await on.service.posts.connect(ME, THREAD, ())
    assert kept is not None
    assert (kept.is_at_rest, len(kept.history or ())) == (True, 2)
    assert await on.service.posts.connect(ME, "nowhere", ()) is None


async def test_a_new_message_does_not_stop_what_somebody_has_approved(stage: MakeStage) -> None:
    """Though nobody reads the run: the approval was given elsewhere."""
    may_end, deleted = asyncio.Event(), []

    @tool(needs_approval=True)
    async def delete_file(path: str) -> str:
        """Delete a file.

        Args:
            path: Which.
        """
        await may_end.wait()
        deleted.append(path)
        return f"deleted {path}"

    on = await stage([Ask("delete_file", {"path": "a.txt"}), "Gone.", "Next."], delete_file, settings=TURNS)
    turn = await _take(on, _post(messages=(HELLO,)))
    await on.told(turn.run, RunParked)
    await on.decide(await on.open_call(), YES)
    with pytest.raises(Busy):
        await _take(on, _post("r2", messages=(MORE,)))
    may_end.set()
    assert text_in(await on.told(turn.run, RunFinished)) == "Gone."
    assert deleted == ["a.txt"]
    following = await _take(on, _post("r2", messages=(MORE,)))
    assert text_in(await on.told(following.run, RunFinished)) == "Next."
