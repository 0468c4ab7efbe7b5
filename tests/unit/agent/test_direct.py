"""Calls without a run: a program puts one on the desk and waits for its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest

from farhand.agent.direct import CALLER_GONE
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.principal import LOCAL, Owner
from farhand.core.result import Accepted, Result
from farhand.errors import Misuse, StoreDown
from farhand.store.base import Commit, Committed
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
        return bool(await on.store.open_calls(LOCAL, THREAD))

    await comes_true(is_there)
    return await on.open_call()


async def _meanwhile(
    on: Stage, name: str, input: dict[str, object], *acts: Callable[[Call], Awaitable[object]]
) -> Outcome:
    """The outcome of the call, while this is done to it."""
    async with asyncio.TaskGroup() as group:
        outcome = group.create_task(on.farhand.call(name, input, thread=THREAD))
        call = await _opened(on)
        for act in acts:
            await act(call)
    return outcome.result()


@requirement("api:call")
async def test_a_call_to_a_far_hand_returns_its_result(stage: MakeStage) -> None:
    on = await _on(stage)
    assert await _meanwhile(on, "open_url", URL, lambda call: on.answer(call, VIEW)) == VIEW


@requirement("api:call")
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
    assert await on.farhand.call(name, input, thread=THREAD) == outcome
    assert await on.store.open_calls(LOCAL, THREAD) == []


@requirement("api:call")
async def test_a_server_tool_behind_a_yes_runs_after_it(stage: MakeStage) -> None:
    on = await _on(stage)
    path: dict[str, object] = {"path": "a.txt"}
    yes = await _meanwhile(on, "delete_file", path, lambda call: on.decide(call, YES))
    no = await _meanwhile(on, "delete_file", path, lambda call: on.decide(call, NO))
    assert (yes, no) == (Success("deleted a.txt"), Denied("too dear"))


@requirement("calls:always-in-thread")
async def test_a_yes_for_the_thread_counts_for_calls_without_a_run(stage: MakeStage) -> None:
    on = await _on(stage)
    always = Answer(approved=True, scope="thread")
    await _meanwhile(on, "delete_file", {"path": "a.txt"}, lambda call: on.decide(call, always))
    assert await on.farhand.call("delete_file", {"path": "b.txt"}, thread=THREAD) == Success("deleted b.txt")


@requirement("calls:always-in-thread")
async def test_a_yes_for_the_thread_allows_no_other_tool_without_a_run(stage: MakeStage) -> None:
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
    on.store.hub.recheck = 0.05

    async def answer_unheard(call: Call) -> None:
        with monkeypatch.context() as deaf:
            deaf.setattr(on.store.hub, "tell", lambda topic, item: None)
            await on.answer(call, VIEW)

    assert await _meanwhile(on, "open_url", URL, answer_unheard) == VIEW


@requirement("api:call")
async def test_a_far_hand_behind_a_yes_answers_after_it(stage: MakeStage) -> None:
    on = await _on(stage)
    outcome = await _meanwhile(
        on,
        "take_photo",
        {"camera": "front"},
        lambda call: on.decide(call, YES),
        lambda call: on.answer(call, Success("a photo")),
    )
    assert outcome == Success("a photo")


@requirement("api:call")
async def test_a_call_that_nobody_answers_times_out(stage: MakeStage, clock: FakeClock) -> None:
    on = await _on(stage)

    async def wait_too_long(call: Call) -> None:
        clock.advance(5)
        await on.farhand.deadlines.sweep(on.farhand.desk)

    assert await _meanwhile(on, "ask_text", {"question": "?"}, wait_too_long) == TimedOut(5.0)


@requirement("api:call")
async def test_a_call_may_bring_its_own_time(stage: MakeStage, clock: FakeClock) -> None:
    on = await _on(stage)
    async with asyncio.TaskGroup() as group:
        group.create_task(on.farhand.call("open_url", URL, thread=THREAD, timeout_sec=7))
        call = await _opened(on)
        assert call.deadline == clock.now() + 7
        await on.answer(call, VIEW)


@requirement("api:call")
async def test_a_cancelled_call_returns_so(stage: MakeStage) -> None:
    on = await _on(stage)

    async def cancel(call: Call) -> None:
        assert isinstance(await on.farhand.desk.cancel([call], "no longer needed"), Committed)

    assert await _meanwhile(on, "open_url", URL, cancel) == Cancelled("no longer needed")


@requirement("api:call")
@pytest.mark.parametrize(
    ("name", "input", "words"), [("open_file", {}, "open_file"), ("open_url", {"url": 5}, "url")]
)
async def test_an_unknown_tool_or_a_bad_input_is_a_failure_and_opens_nothing(
    stage: MakeStage, name: str, input: dict[str, object], words: str
) -> None:
    on = await _on(stage)
    outcome = await on.farhand.call(name, input, thread=THREAD)
    assert isinstance(outcome, Failure)
    assert words in outcome.error
    assert await on.store.get_thread(LOCAL, THREAD) is None


@requirement("calls:owner")
async def test_a_call_belongs_to_its_owner(stage: MakeStage) -> None:
    on = await _on(stage)
    ann, bob = Owner("acme", "ann"), Owner("acme", "bob")
    async with asyncio.TaskGroup() as group:
        outcome = group.create_task(on.farhand.call("open_url", URL, thread=THREAD, owner=ann))

        async def is_there() -> bool:
            return bool(await on.store.open_calls(ann))

        await comes_true(is_there)
        [call] = await on.store.open_calls(ann)
        result = Result(call_id=call.call_id, outcome=VIEW)
        assert await on.farhand.desk.settle(bob, result) != Accepted()
        assert await on.farhand.desk.settle(ann, result) == Accepted()
    assert outcome.result() == VIEW


@requirement("api:call-cancelled")
@pytest.mark.parametrize("name", ["open_url", "take_photo"], ids=["ready", "asking"])
async def test_a_call_whose_caller_is_cancelled_is_cancelled(stage: MakeStage, name: str) -> None:
    on = await _on(stage)
    input: dict[str, object] = URL if name == "open_url" else {"camera": "front"}
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(on.farhand.call(name, input, thread=THREAD))
        call = await _opened(on)
        waiting.cancel()
    assert waiting.cancelled()
    assert (await _stored(on, call)).outcome == Cancelled(CALLER_GONE)


@requirement("api:call-cancelled")
async def test_a_call_that_somebody_works_on_is_cancelled_with_its_caller_too(stage: MakeStage) -> None:
    on = await _on(stage)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(on.farhand.call("open_url", URL, thread=THREAD))
        call = await _opened(on)
        assert await on.farhand.desk.take(LOCAL, call.call_id, "tab") == Accepted()
        waiting.cancel()
    assert (await _stored(on, call)).outcome == Cancelled(CALLER_GONE)


@requirement("api:call-cancelled")
async def test_a_scope_that_cancels_again_and_again_leaves_no_call_behind(stage: MakeStage) -> None:
    on = await _on(stage)
    calls: list[Call] = []

    async def leave(scope: anyio.CancelScope) -> None:
        calls.append(await _opened(on))
        scope.cancel()

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            group.start_soon(leave, scope)
            await on.farhand.call("open_url", URL, thread=THREAD)
    assert (await _stored(on, calls[0])).outcome == Cancelled(CALLER_GONE)


@requirement("api:call-cancelled")
@pytest.mark.parametrize("turns", range(8))
async def test_a_caller_that_is_cancelled_while_the_call_is_opened_leaves_none_open(
    stage: MakeStage, turns: int
) -> None:
    on = await _on(stage)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(on.farhand.call("open_url", URL, thread=THREAD))
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.cancel()
    # whatever was written before it is written now
    assert await on.farhand.call("add", {"a": 1, "b": 2}, thread=THREAD) == Success(3)
    assert await on.store.open_calls(LOCAL) == []


@requirement("api:call-cancelled")
async def test_a_caller_leaves_also_while_the_store_is_away(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    on = await _on(stage)

    async def away(*writes: object) -> Commit:
        raise StoreDown("The store is away.")

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(on.farhand.call("open_url", URL, thread=THREAD))
        call = await _opened(on)
        monkeypatch.setattr(on.store, "commit", away)
        waiting.cancel()
    assert waiting.cancelled()
    assert "is left to its deadline" in caplog.text
    monkeypatch.undo()
    assert (await _stored(on, call)).phase is Phase.READY


async def _stored(on: Stage, call: Call) -> Call:
    found = await on.store.get_call(LOCAL, call.call_id)
    assert found is not None
    return found


@requirement("api:call-timeout")
@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1, 0, 0.5, 86_401, 1e9, True])
async def test_a_timeout_out_of_bounds_is_refused_before_anything_is_opened(
    stage: MakeStage, seconds: float
) -> None:
    on = await _on(stage)
    with pytest.raises(Misuse, match="a number of seconds from 1 to 86400"):
        await on.farhand.call("open_url", URL, thread=THREAD, timeout_sec=seconds)
    assert await on.store.open_calls(LOCAL) == []
