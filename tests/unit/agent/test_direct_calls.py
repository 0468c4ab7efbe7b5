"""Calls without a run: a program makes one and waits for its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest
from msgspec.structs import replace

from farhand.agent import direct_calls
from farhand.agent.direct_calls import CALLER_GONE, CALLER_TIMED_OUT, DirectCall, Overdue
from farhand.agent.keyed_calls import Waiting
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase, ProgramRequest
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.principal import LOCAL, Owner
from farhand.core.result import Accepted, Result
from farhand.errors import Misuse, NameTaken, ShuttingDown, StoreDown
from farhand.eventlog.log import EventLog
from farhand.testing import FakeClock
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import add, ask_text, broken, open_url, take_photo
from tests.unit.agent.stage import NO, PATIENCE_SEC, THREAD, YES, Stage, comes_true

pytestmark = pytest.mark.timeout(PATIENCE_SEC)
URL: dict[str, object] = {"url": "https://example.org"}
VIEW = Success({"viewKey": "v1"})


@tool(needs_approval=True)
def delete_file(path: str) -> str:
    """Delete a file.

    Args:
        path: Which.
    """
    return f"deleted {path}"


async def _on(stage: MakeStage) -> Stage:
    return await stage([], add, ask_text, broken, delete_file, open_url, take_photo)


async def _opened(on: Stage) -> Call:
    async def is_there() -> bool:
        return bool(await on.log.open_calls(LOCAL, THREAD))

    await comes_true(is_there)
    return await on.open_call()


async def _meanwhile(
    on: Stage, name: str, input: dict[str, object], *acts: Callable[[Call], Awaitable[object]]
) -> Outcome:
    """The outcome of the call, while this is done to it."""
    async with asyncio.TaskGroup() as group:
        outcome = group.create_task(on.service.call(name, input, thread=THREAD))
        call = await _opened(on)
        for act in acts:
            await act(call)
    ended = outcome.result()
    assert not isinstance(ended, Waiting), "nobody limited the wait"
    return ended


async def test_a_call_to_a_far_hand_returns_its_result(stage: MakeStage) -> None:
    on = await _on(stage)
    assert await _meanwhile(on, "open_url", URL, lambda call: on.answer(call, VIEW)) == VIEW


@pytest.mark.parametrize(
    ("name", "input", "outcome"),
    [
        ("add", {"a": 1, "b": 2}, Success(3)),
        ("broken", {"why": "no disk"}, Failure("ValueError: no disk")),
    ],
)
async def test_a_call_to_a_server_tool_runs_it_here(
    stage: MakeStage, name: str, input: dict[str, object], outcome: Outcome
) -> None:
    on = await _on(stage)
    assert await on.service.call(name, input, thread=THREAD) == outcome
    assert await on.log.open_calls(LOCAL, THREAD) == []


async def test_a_server_tool_behind_an_approval_runs_after_it(stage: MakeStage) -> None:
    on = await _on(stage)
    path: dict[str, object] = {"path": "a.txt"}
    yes = await _meanwhile(on, "delete_file", path, lambda call: on.decide(call, YES))
    no = await _meanwhile(on, "delete_file", path, lambda call: on.decide(call, NO))
    assert (yes, no) == (Success("deleted a.txt"), Denied("too dear"))


@requirement("calls:always-in-thread")
async def test_an_approval_for_the_thread_counts_for_calls_without_a_run(stage: MakeStage) -> None:
    on = await _on(stage)
    always = Answer(approved=True, scope="thread")
    await _meanwhile(on, "delete_file", {"path": "a.txt"}, lambda call: on.decide(call, always))
    assert await on.service.call("delete_file", {"path": "b.txt"}, thread=THREAD) == Success("deleted b.txt")


@requirement("calls:always-in-thread")
async def test_an_approval_for_the_thread_allows_no_other_tool_without_a_run(stage: MakeStage) -> None:
    on = await _on(stage)
    always = Answer(approved=True, scope="thread")
    await _meanwhile(on, "delete_file", {"path": "a.txt"}, lambda call: on.decide(call, always))
    photo = await _meanwhile(on, "take_photo", {"camera": "front"}, lambda call: on.decide(call, NO))
    assert photo == Denied("too dear")


@requirement("calls:wakes")
async def test_a_call_without_a_run_looks_at_the_record_if_it_may_have_missed_something(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = await _on(stage)
    on.log.broker.recheck = 0.05

    async def answer_unheard(call: Call) -> None:
        with monkeypatch.context() as deaf:
            deaf.setattr(on.log.broker, "publish", lambda topic, item: None)
            await on.answer(call, VIEW)

    assert await _meanwhile(on, "open_url", URL, answer_unheard) == VIEW


async def test_a_far_hand_behind_an_approval_answers_after_it(stage: MakeStage) -> None:
    on = await _on(stage)
    outcome = await _meanwhile(
        on,
        "take_photo",
        {"camera": "front"},
        lambda call: on.decide(call, YES),
        lambda call: on.answer(call, Success("a photo")),
    )
    assert outcome == Success("a photo")


async def test_a_call_that_nobody_answers_times_out(stage: MakeStage, clock: FakeClock) -> None:
    on = await _on(stage)

    async def wait_too_long(call: Call) -> None:
        clock.advance(5)
        await on.service.deadlines.sweep(on.service.desk)

    assert await _meanwhile(on, "ask_text", {"question": "?"}, wait_too_long) == TimedOut(5.0)


async def test_a_call_may_bring_its_own_time(stage: MakeStage, clock: FakeClock) -> None:
    on = await _on(stage)
    async with asyncio.TaskGroup() as group:
        group.create_task(on.service.call("open_url", URL, thread=THREAD, timeout_sec=7))
        call = await _opened(on)
        assert call.deadline == clock.now() + 7
        await on.answer(call, VIEW)


async def test_a_cancelled_call_returns_so(stage: MakeStage) -> None:
    on = await _on(stage)

    async def cancel(call: Call) -> None:
        assert await on.service.desk.cancel([call], "no longer needed") == 1

    assert await _meanwhile(on, "open_url", URL, cancel) == Cancelled("no longer needed")


@pytest.mark.parametrize(
    ("name", "input", "words"), [("open_file", {}, "open_file"), ("open_url", {"url": 5}, "url")]
)
async def test_an_unknown_tool_or_a_bad_input_is_a_failure_and_opens_nothing(
    stage: MakeStage, name: str, input: dict[str, object], words: str
) -> None:
    on = await _on(stage)
    outcome = await on.service.call(name, input, thread=THREAD)
    assert isinstance(outcome, Failure)
    assert words in outcome.error
    assert await on.log.get_thread(LOCAL, THREAD) is None


@requirement("calls:owner")
async def test_a_call_belongs_to_its_owner(stage: MakeStage) -> None:
    on = await _on(stage)
    ann, bob = Owner("acme", "ann"), Owner("acme", "bob")
    async with asyncio.TaskGroup() as group:
        outcome = group.create_task(on.service.call("open_url", URL, thread=THREAD, owner=ann))

        async def is_there() -> bool:
            return bool(await on.log.open_calls(ann))

        await comes_true(is_there)
        [call] = await on.log.open_calls(ann)
        result = Result(call_id=call.call_id, outcome=VIEW)
        assert await on.service.desk.settle(bob, result) != Accepted()
        assert await on.service.desk.settle(ann, result) == Accepted()
    assert outcome.result() == VIEW


@pytest.mark.parametrize("name", ["open_url", "take_photo"], ids=["ready", "asking"])
async def test_a_call_whose_caller_is_cancelled_is_cancelled(stage: MakeStage, name: str) -> None:
    on = await _on(stage)
    input: dict[str, object] = URL if name == "open_url" else {"camera": "front"}
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(on.service.call(name, input, thread=THREAD))
        call = await _opened(on)
        waiting.cancel()
    assert waiting.cancelled()
    assert (await _stored(on, call)).outcome == Cancelled(CALLER_GONE)


async def test_a_call_that_somebody_works_on_is_cancelled_with_its_caller_too(stage: MakeStage) -> None:
    on = await _on(stage)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(on.service.call("open_url", URL, thread=THREAD))
        call = await _opened(on)
        assert await on.service.desk.take(LOCAL, call.call_id, "tab") == Accepted()
        waiting.cancel()
    assert (await _stored(on, call)).outcome == Cancelled(CALLER_GONE)


async def test_a_scope_that_cancels_again_and_again_leaves_no_call_behind(stage: MakeStage) -> None:
    on = await _on(stage)
    calls: list[Call] = []

    async def leave(scope: anyio.CancelScope) -> None:
        calls.append(await _opened(on))
        scope.cancel()

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            group.start_soon(leave, scope)
            await on.service.call("open_url", URL, thread=THREAD)
    assert (await _stored(on, calls[0])).outcome == Cancelled(CALLER_GONE)


@pytest.mark.parametrize("turns", range(8))
async def test_a_caller_that_is_cancelled_while_the_call_is_opened_leaves_none_open(
    stage: MakeStage, turns: int
) -> None:
    on = await _on(stage)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(on.service.call("open_url", URL, thread=THREAD))
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.cancel()
    # whatever was written before it is written now
    assert await on.service.call("add", {"a": 1, "b": 2}, thread=THREAD) == Success(3)
    assert await on.log.open_calls(LOCAL) == []


async def test_a_caller_leaves_also_while_the_store_is_away(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    on = await _on(stage)

    async def away(*appends: object) -> None:
        raise StoreDown("The store is away.")

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(on.service.call("open_url", URL, thread=THREAD))
        call = await _opened(on)
        monkeypatch.setattr(on.store, "append", away)
        waiting.cancel()
    assert waiting.cancelled()
    assert f"could not cancel calls {call.call_id}; they stay open until their deadlines" in caplog.text
    monkeypatch.undo()
    assert (await _stored(on, call)).phase is Phase.READY


async def _stored(on: Stage, call: Call) -> Call:
    found = await on.log.get_call(LOCAL, call.call_id)
    assert found is not None
    return found


@requirement("calls:deadline-defaults")
@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1, 0, 0.5, 86_401, 1e9, True])
async def test_a_timeout_out_of_bounds_is_refused_before_anything_is_opened(
    stage: MakeStage, seconds: float
) -> None:
    on = await _on(stage)
    with pytest.raises(Misuse, match="a number of seconds from 1 to 86400"):
        await on.service.call("open_url", URL, thread=THREAD, timeout_sec=seconds)
    assert await on.log.open_calls(LOCAL) == []


def _request(thread_id: str = THREAD, *, url: object = URL["url"], keep: bool = False) -> DirectCall:
    return DirectCall(
        owner=LOCAL,
        thread_id=thread_id,
        tool="open_url",
        input={"url": url},
        request=ProgramRequest("job-1"),
        caller_timeout_sec=0.01 if keep else None,
        keep_after_timeout=keep,
    )


@requirement("client-tools:request-key")
@pytest.mark.parametrize("threads", [(THREAD, THREAD), (THREAD, "t2")], ids=["one thread", "two threads"])
async def test_of_many_calls_with_one_request_id_at_once_one_is_opened(
    stage: MakeStage, threads: tuple[str, str]
) -> None:
    on = await _on(stage)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_caught(on, _request(thread_id))) for thread_id in threads * 5]

        async def others_are_refused() -> bool:
            return sum(task.done() for task in tasks) == 9

        await comes_true(others_are_refused)
        [call] = await on.log.open_calls(LOCAL)
        await on.answer(call, VIEW)
    answers = [task.result() for task in tasks]
    assert answers.count("The call with this request id is still in progress.") == 9
    assert [each.outcome for each in answers if isinstance(each, Call)] == [VIEW]


@requirement("client-tools:request-key")
@pytest.mark.parametrize("thread_id", [THREAD, "t2"])
async def test_a_request_id_that_was_used_is_answered_with_its_call_and_opens_nothing(
    stage: MakeStage, thread_id: str
) -> None:
    on = await _on(stage)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(on.service.execute(_request()))
        await on.answer(await _opened(on), VIEW)
    assert await on.service.execute(_request(thread_id)) == first.result()
    assert await _caught(on, _request(thread_id, url="https://example.com")) == (
        "This request id was used for another call."
    )
    assert await on.log.open_calls(LOCAL) == []


@requirement("client-tools:request-key")
async def test_a_call_whose_caller_ran_out_of_time_stays_if_it_is_kept_and_is_asked_for_again(
    stage: MakeStage,
) -> None:
    on = await _on(stage)
    overdue = await on.service.execute(_request(keep=True))
    call = await on.open_call()
    assert overdue == Overdue(call)
    await on.answer(call, VIEW)
    assert await on.service.execute(_request()) == await _stored(on, call)


async def test_a_call_whose_caller_ran_out_of_time_is_cancelled_and_everybody_is_told_so(
    stage: MakeStage,
) -> None:
    on = await _on(stage)
    asked = replace(_request(), caller_timeout_sec=0.01)
    overdue = await on.service.execute(asked)
    assert isinstance(overdue, Overdue)
    assert overdue.call.outcome == Cancelled(CALLER_TIMED_OUT)
    assert await on.service.execute(asked) == overdue


async def test_what_was_faster_than_the_callers_time_is_answered_anyway(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = await _on(stage)

    async def answered_meanwhile(eventlog: EventLog, opened: Call) -> Call | None:
        await on.answer(await on.open_call(), VIEW)
        raise TimeoutError

    monkeypatch.setattr(direct_calls, "wait_until_settled", answered_meanwhile)
    call = await on.service.execute(replace(_request(), caller_timeout_sec=60.0))
    assert isinstance(call, Call)
    assert call.outcome == VIEW


@requirement("runs:stop")
async def test_when_the_process_stops_only_what_nobody_asks_for_again_or_has_approved_is_cancelled(
    stage: MakeStage,
) -> None:
    on = await _on(stage)
    async with asyncio.TaskGroup() as group:
        group.create_task(_caught_call(on, "open_url", URL))
        group.create_task(_caught_call(on, "take_photo", {"camera": "front"}))
        group.create_task(_caught(on, _request("t2")))

        async def are_open() -> bool:
            return len(await on.log.open_calls(LOCAL)) == 3

        await comes_true(are_open)
        calls = {call.tool: call for call in await on.log.open_calls(LOCAL, THREAD)}
        await on.decide(calls["take_photo"], YES)
        on.log.broker.close()
    assert (await _stored(on, calls["open_url"])).outcome == Cancelled(CALLER_GONE)
    assert (await _stored(on, calls["take_photo"])).phase is Phase.READY
    assert len(await on.log.open_calls(LOCAL, "t2")) == 1


async def test_a_thread_is_stopped_also_while_the_store_is_away(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    on = await _on(stage)
    assert isinstance(await on.service.execute(_request(keep=True)), Overdue)

    async def away(*appends: object) -> None:
        raise StoreDown("The store is away.")

    assert not await direct_calls.stop_calls(on.service.context, LOCAL, "t2", "stopped")
    with monkeypatch.context() as patch:
        patch.setattr(on.store, "append", away)
        assert await direct_calls.stop_calls(on.service.context, LOCAL, THREAD, "stopped")
    assert "could not cancel 1 calls; they stay open until their deadlines" in caplog.text


async def _caught(on: Stage, asked: DirectCall) -> object:
    try:
        return await on.service.execute(asked)
    except (NameTaken, ShuttingDown) as error:
        return error.message


async def _caught_call(on: Stage, name: str, input: dict[str, object]) -> object:
    try:
        return await on.service.call(name, input, thread=THREAD)
    except ShuttingDown as error:
        return error.message


async def test_a_request_id_may_be_used_again_once_its_call_was_purged(
    stage: MakeStage, clock: FakeClock
) -> None:
    on = await _on(stage)
    direct = DirectCall(
        owner=LOCAL, thread_id=THREAD, tool="add", input={"a": 1, "b": 2}, request=ProgramRequest("job-1")
    )
    first = await on.service.execute(direct)
    assert isinstance(first, Call)
    assert await on.service.execute(direct) == first, "the same call, as long as it is kept"
    clock.advance(8 * 86_400)
    assert (await on.log.purge(before=clock.now() - 7 * 86_400)).calls == 1
    async with asyncio.timeout(PATIENCE_SEC / 2):
        again = await on.service.execute(direct)
    assert isinstance(again, Call)
    assert (again.outcome, again.call_id == first.call_id) == (Success(3), False)
