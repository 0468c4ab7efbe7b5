"""Server tools of calls that have no run: started by whoever hears the yes, once, within their time.

What a kill leaves behind is shown with real processes in `tests/chaos/test_direct_kill.py`.
"""

from __future__ import annotations

import asyncio

import pytest

from farhand.agent.direct import Direct
from farhand.agent.direct_executor import NOBODY_ASKS
from farhand.agent.endings import STOPPED_BY_USER
from farhand.agent.execute import CHANGED
from farhand.calls.desk import BACKSTOP_SEC
from farhand.core.call import Call, Phase, Request
from farhand.core.outcome import Cancelled, Outcome, Success, TimedOut
from farhand.core.principal import LOCAL
from farhand.core.result import Accepted
from farhand.errors import NotFound, StoreDown
from farhand.store.base import Commit, Write
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import open_url
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, YES, Stage, comes_true

pytestmark = pytest.mark.timeout(PATIENCE_SEC)


class Tools:
    def __init__(self) -> None:
        self.times = 0
        self.may_end = asyncio.Event()

        @tool(needs_approval=True, timeout_sec=30)
        async def delete(path: str) -> str:
            """Delete a file.

            Args:
                path: Which.
            """
            self.times += 1
            await self.may_end.wait()
            return f"deleted {path}"

        self.delete = delete


async def open_call(on: Stage, request_id: str | None = "job-1") -> Call:
    """Asked for by a caller that has left since."""
    wish = Direct(
        owner=LOCAL, thread_id=THREAD, tool="delete", input={"path": "a"}, request=Request(request_id)
    )
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(on.farhand.execute(wish))

        async def is_there() -> bool:
            return bool(await on.store.open_calls(LOCAL, THREAD))

        await comes_true(is_there)
        call = await on.open_call()
        waiting.cancel()
    return call


async def let_die(on: Stage) -> None:
    """Its worker works no more; the store stays open for the next one."""
    on.farhand.worker.stop()
    assert on.farhand._serving is not None
    await asyncio.wait([on.farhand._serving])


async def stored(on: Stage, call: Call) -> Call:
    found = await on.store.get_call(LOCAL, call.call_id)
    assert found is not None
    return found


async def outcome(on: Stage, call: Call) -> Outcome | None:
    async def is_settled() -> bool:
        return (await stored(on, call)).phase is Phase.SETTLED

    await comes_true(is_settled)
    return (await stored(on, call)).outcome


async def until_taken(on: Stage, call: Call) -> Call:
    async def is_taken() -> bool:
        return (await stored(on, call)).phase is Phase.TAKEN

    await comes_true(is_taken)
    return await stored(on, call)


@requirement("direct:deadline")
async def test_the_time_of_a_call_counts_from_the_yes_and_starting_it_does_not_renew_it(
    stage: MakeStage, clock: FakeClock
) -> None:
    tools = Tools()
    on = await stage([], tools.delete)
    call = await open_call(on)
    clock.advance(1_000)
    assert await on.decide(call, YES) == Accepted()
    taken = await until_taken(on, call)
    assert taken.deadline == clock.now() + 30 + BACKSTOP_SEC
    tools.may_end.set()
    assert await outcome(on, call) == Success("deleted a")


@requirement("direct:deadline")
async def test_a_call_that_nobody_started_in_time_is_not_run(stage: MakeStage, clock: FakeClock) -> None:
    tools = Tools()
    on = await stage([], tools.delete)
    call = await open_call(on)
    await let_die(on)
    # at a worker that stops before it starts the tool
    assert await on.decide(call, YES) == Accepted()
    ready = await stored(on, call)
    assert (ready.phase, ready.deadline) == (Phase.READY, clock.now() + 30 + BACKSTOP_SEC)
    clock.advance(32)
    later = Stage(on.store, clock, [], tools.delete)
    await later.farhand.open()
    try:
        assert await outcome(later, call) == TimedOut(30.0)
    finally:
        await let_die(later)
    assert tools.times == 0


@requirement("direct:deadline")
async def test_a_tool_for_which_no_time_is_left_is_not_called(stage: MakeStage, clock: FakeClock) -> None:
    tools = Tools()
    on = await stage([], tools.delete)
    call = await open_call(on)
    await let_die(on)
    assert await on.decide(call, YES) == Accepted()
    # only what is kept for a tool that does not return is left
    clock.advance(30.5)
    later = Stage(on.store, clock, [], tools.delete)
    await later.farhand.open()
    try:
        assert await outcome(later, call) == TimedOut(30.0)
    finally:
        await let_die(later)
    assert tools.times == 0


@requirement("direct:yes-after-restart")
async def test_what_was_approved_is_started_by_the_sweep_if_the_news_of_it_were_lost(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = Tools()
    tools.may_end.set()
    on = await stage([], tools.delete)
    call = await open_call(on)
    monkeypatch.setattr(on.store.hub, "watches", {})
    assert await on.decide(call, YES) == Accepted()
    monkeypatch.undo()
    assert (await stored(on, call)).phase is Phase.READY
    await on.farhand.worker.direct.sweep()
    assert await outcome(on, call) == Success("deleted a")
    assert tools.times == 1


@requirement("direct:yes-after-restart")
async def test_a_tool_that_changed_since_it_was_approved_is_not_run(
    stage: MakeStage, clock: FakeClock
) -> None:
    tools = Tools()
    on = await stage([], tools.delete)
    call = await open_call(on)
    await let_die(on)
    later = Stage(on.store, clock, [], open_url)
    await later.farhand.open()
    try:
        assert await later.decide(call, YES) == Accepted()
        assert await outcome(later, call) == CHANGED
    finally:
        await let_die(later)


@requirement("direct:without-request-id")
async def test_a_call_without_request_id_is_left_alone_while_its_worker_is_alive(stage: MakeStage) -> None:
    tools = Tools()
    on = await stage([], tools.delete)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(on.farhand.call("delete", {"path": "a"}, thread=THREAD))

        async def is_there() -> bool:
            return bool(await on.store.open_calls(LOCAL, THREAD))

        await comes_true(is_there)
        call = await on.open_call()
        await on.farhand.worker.direct.sweep()
        assert (await stored(on, call)).phase is Phase.ASKING
        waiting.cancel()


@requirement("direct:without-request-id")
async def test_a_call_without_request_id_of_a_former_worker_is_cancelled(
    stage: MakeStage, clock: FakeClock
) -> None:
    tools = Tools()
    on = await stage([], tools.delete)
    opened = on.farhand.call("delete", {"path": "a"}, thread=THREAD)
    waiting = asyncio.ensure_future(opened)

    async def is_there() -> bool:
        return bool(await on.store.open_calls(LOCAL, THREAD))

    await comes_true(is_there)
    call = await on.open_call()
    later = Stage(on.store, clock, [], tools.delete)
    await later.farhand.open()
    try:
        assert await outcome(later, call) == Cancelled(NOBODY_ASKS)
        assert await waiting == Cancelled(NOBODY_ASKS)
    finally:
        await let_die(later)


@requirement("direct:stop")
async def test_stopping_a_thread_cancels_its_calls_without_a_run_and_their_tools(stage: MakeStage) -> None:
    tools = Tools()
    on = await stage([], tools.delete)
    with pytest.raises(NotFound):
        await on.farhand.stop(LOCAL, THREAD, STOPPED_BY_USER)
    call = await open_call(on)
    assert await on.decide(call, YES) == Accepted()
    await until_taken(on, call)
    assert await on.farhand.stop(LOCAL, THREAD, STOPPED_BY_USER) is True
    assert await outcome(on, call) == Cancelled(STOPPED_BY_USER)
    assert await on.farhand.stop(LOCAL, THREAD, STOPPED_BY_USER) is False

    async def nothing_runs() -> bool:
        return not on.farhand.worker.direct._tasks

    await comes_true(nothing_runs)
    assert tools.times == 1


class MoodyStore(MemoryStore):
    """Away for a while, as far as writes are concerned."""

    is_away = False

    async def commit(self, *writes: Write) -> Commit:
        if self.is_away:
            raise StoreDown("The store is away.")
        return await super().commit(*writes)


@requirement("direct:yes-after-restart")
async def test_what_a_tool_brought_while_the_store_was_away_is_kept_until_it_is_back(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.agent.direct_executor.AGAIN_SEC", 0.01)
    tools, store = Tools(), MoodyStore(clock)
    on = Stage(store, clock, [], tools.delete)
    await on.farhand.open()
    try:
        call = await open_call(on)
        assert await on.decide(call, YES) == Accepted()
        await until_taken(on, call)
        store.is_away = True
        tools.may_end.set()
        await asyncio.sleep(0.1)
        assert (await stored(on, call)).phase is Phase.TAKEN
        store.is_away = False
        assert await outcome(on, call) == Success("deleted a")
    finally:
        await on.farhand.close()
    assert tools.times == 1


@requirement("direct:yes-after-restart")
async def test_a_drain_lets_the_tool_of_a_call_come_to_its_end(stage: MakeStage) -> None:
    tools = Tools()
    on = await stage([], tools.delete)
    call = await open_call(on)
    assert await on.decide(call, YES) == Accepted()
    await until_taken(on, call)
    async with asyncio.TaskGroup() as group:
        draining = group.create_task(on.farhand.drain(PATIENCE_SEC))
        await asyncio.sleep(0.05)
        assert not draining.done()
        tools.may_end.set()
    assert await outcome(on, call) == Success("deleted a")
