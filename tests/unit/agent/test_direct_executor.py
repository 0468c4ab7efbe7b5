"""Server tools of calls without a run: started once, by the worker that stores the approval, within their
time.

What a kill leaves behind is shown with real processes in `tests/chaos/test_direct_kill.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from farhand.agent.direct_calls import DirectCall
from farhand.agent.direct_executor import CALLER_LOST
from farhand.agent.start_run import STOPPED_BY_USER
from farhand.calls.desk import BACKSTOP_SEC
from farhand.core.call import Call, Phase, ProgramRequest
from farhand.core.decide.calls import CHANGED, UNKNOWN_END
from farhand.core.decide.direct import open_direct
from farhand.core.decide.opening import Opening
from farhand.core.outcome import Cancelled, Outcome, Success, TimedOut
from farhand.core.principal import LOCAL
from farhand.core.result import Accepted
from farhand.core.settings import Settings
from farhand.errors import NotFound, StoreDown
from farhand.store.base import Append, AppendResult
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
    direct = DirectCall(
        owner=LOCAL, thread_id=THREAD, tool="delete", input={"path": "a"}, request=ProgramRequest(request_id)
    )
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(on.service.execute(direct))

        async def is_there() -> bool:
            return bool(await on.log.open_calls(LOCAL, THREAD))

        await comes_true(is_there)
        call = await on.open_call()
        waiting.cancel()
    return call


async def open_call_of_caller_that_is_killed(on: Stage) -> Call:
    """Asked for without a request id, in a process that then stops without a word."""
    opening = Opening(
        call_id=on.clock.fresh("call"),
        tool=on.service.context.toolbox.tools()[0],
        input={"path": "a"},
        is_direct=True,
        timeout_sec=30.0,
        approval_id=on.clock.fresh("apr"),
        request=ProgramRequest(worker="wrk_killed"),
        worker="wrk_killed",
    )
    await on.log.decide(
        LOCAL,
        THREAD,
        lambda thread, now: open_direct(
            thread, opening, title="", now=now, settings=Settings(), calls_left=1
        ),
    )
    return await on.open_call()


async def ran_twice(tools: Tools) -> bool:
    return tools.times == 2


async def let_die(on: Stage) -> None:
    """Its worker works no more; the store stays open for the next one."""
    on.service.worker.stop()
    assert on.service._serving is not None
    await asyncio.wait([on.service._serving])


async def stored(on: Stage, call: Call) -> Call:
    found = await on.log.get_call(LOCAL, call.call_id)
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


@requirement("calls:deadline")
async def test_the_time_of_a_call_counts_from_the_approval_and_starting_it_does_not_renew_it(
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


@requirement("calls:deadline")
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
    await later.service.open()
    try:
        assert await outcome(later, call) == TimedOut(30.0)
    finally:
        await let_die(later)
    assert tools.times == 0


@requirement("calls:deadline")
async def test_a_tool_for_which_no_time_is_left_is_not_called(stage: MakeStage, clock: FakeClock) -> None:
    tools = Tools()
    on = await stage([], tools.delete)
    call = await open_call(on)
    await let_die(on)
    assert await on.decide(call, YES) == Accepted()
    # only what is kept for a tool that does not return is left
    clock.advance(30.5)
    later = Stage(on.store, clock, [], tools.delete)
    await later.service.open()
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
    monkeypatch.setattr(on.log.broker, "subscribers", {})
    assert await on.decide(call, YES) == Accepted()
    monkeypatch.undo()
    assert (await stored(on, call)).phase is Phase.READY
    await on.service.worker.direct.sweep()
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
    await later.service.open()
    try:
        assert await later.decide(call, YES) == Accepted()
        assert await outcome(later, call) == CHANGED
    finally:
        await let_die(later)


async def test_a_call_without_request_id_is_left_alone_while_its_worker_is_alive(stage: MakeStage) -> None:
    tools = Tools()
    on = await stage([], tools.delete)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(on.service.call("delete", {"path": "a"}, thread=THREAD))

        async def is_there() -> bool:
            return bool(await on.log.open_calls(LOCAL, THREAD))

        await comes_true(is_there)
        call = await on.open_call()
        await on.service.worker.direct.sweep()
        assert (await stored(on, call)).phase is Phase.ASKING
        waiting.cancel()


async def test_a_call_without_request_id_of_a_former_worker_is_cancelled(
    stage: MakeStage, clock: FakeClock
) -> None:
    tools = Tools()
    on = await stage([], tools.delete)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(on.service.call("delete", {"path": "a"}, thread=THREAD))

        async def is_there() -> bool:
            return bool(await on.log.open_calls(LOCAL, THREAD))

        await comes_true(is_there)
        call = await on.open_call()
        later = Stage(on.store, clock, [], tools.delete)
        await later.service.open()
        try:
            assert await outcome(later, call) == Cancelled(CALLER_LOST)
        finally:
            await let_die(later)
            # the caller of the former process: its own cancellation finds the call settled
            waiting.cancel()
    assert (await stored(later, call)).outcome == Cancelled(CALLER_LOST)


async def test_an_approval_in_the_moment_in_which_its_caller_is_found_gone_is_acted_on(
    stage: MakeStage, clock: FakeClock
) -> None:
    tools = Tools()
    tools.may_end.set()
    on = await stage([], tools.delete)
    call = await open_call_of_caller_that_is_killed(on)
    later = Stage(on.store, clock, [], tools.delete)
    # the sweep has seen the call before the approval
    seen = await later.log.direct_calls()
    assert await later.decide(call, YES) == Accepted()
    assert await later.service.desk.cancel_unwanted(seen, CALLER_LOST) == 0
    await later.service.open()
    try:
        assert await outcome(later, call) == Success("deleted a")
    finally:
        await let_die(later)


@pytest.mark.parametrize("is_idempotent", [False, True])
async def test_what_a_former_worker_was_running_is_run_again_only_if_it_may_be(
    stage: MakeStage, clock: FakeClock, is_idempotent: bool
) -> None:
    tools = Tools()
    tools.delete.tool = replace(tools.delete.tool, idempotent=is_idempotent)
    on = await stage([], tools.delete)
    call = await open_call(on)
    assert await on.decide(call, YES) == Accepted()
    await until_taken(on, call)
    later = Stage(on.store, clock, [], tools.delete)
    await later.service.open()
    try:
        if is_idempotent:
            await comes_true(lambda: ran_twice(tools))
            tools.may_end.set()
        assert await outcome(later, call) == (Success("deleted a") if is_idempotent else UNKNOWN_END)
    finally:
        await let_die(later)
    assert tools.times == (2 if is_idempotent else 1)


@requirement("runs:stop")
async def test_stopping_a_thread_cancels_its_calls_without_a_run_and_their_tools(stage: MakeStage) -> None:
    tools = Tools()
    on = await stage([], tools.delete)
    with pytest.raises(NotFound):
        await on.service.stop(LOCAL, THREAD, STOPPED_BY_USER)
    call = await open_call(on)
    assert await on.decide(call, YES) == Accepted()
    await until_taken(on, call)
    assert await on.service.stop(LOCAL, THREAD, STOPPED_BY_USER) is True
    assert await outcome(on, call) == Cancelled(STOPPED_BY_USER)
    assert await on.service.stop(LOCAL, THREAD, STOPPED_BY_USER) is False

    async def nothing_runs() -> bool:
        return not on.service.worker.direct._tasks

    await comes_true(nothing_runs)
    assert tools.times == 1


class MoodyStore(MemoryStore):
    """Away for a while, as far as writes are concerned."""

    is_away = False

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.refused = asyncio.Event()

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        if self.is_away:
            self.refused.set()
            raise StoreDown("The store is away.")
        return await super().append(appends)


@requirement("direct:yes-after-restart")
async def test_what_a_tool_brought_while_the_store_was_away_is_kept_until_it_is_back(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farhand.agent.execute.STORE_RETRY_SEC", 0.01)
    tools, store = Tools(), MoodyStore(clock)
    on = Stage(store, clock, [], tools.delete)
    await on.service.open()
    try:
        call = await open_call(on)
        assert await on.decide(call, YES) == Accepted()
        await until_taken(on, call)
        store.is_away = True
        tools.may_end.set()
        await store.refused.wait()
        assert (await stored(on, call)).phase is Phase.TAKEN
        store.is_away = False
        assert await outcome(on, call) == Success("deleted a")
    finally:
        await on.service.close()
    assert tools.times == 1


class SilentStore(MemoryStore):
    """Keeps what it is asked to keep, and then does not say so."""

    is_silent = False

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        results = await super().append(appends)
        if self.is_silent and any(each.body for each in appends):
            self.is_silent = False
            raise StoreDown("The store was lost before it answered.")
        return results


@pytest.mark.slow
@pytest.mark.parametrize("request_id", ["job-1", None])
async def test_a_call_that_was_opened_though_nobody_said_so_is_run_once_if_it_can_be_asked_for(
    clock: FakeClock, request_id: str | None
) -> None:
    times: list[str] = []

    @tool
    def count(name: str) -> str:
        """Count something.

        Args:
            name: What.
        """
        times.append(name)
        return f"counted {name}"

    store = SilentStore(clock)
    on = Stage(store, clock, [], count)
    await on.service.open()
    direct = DirectCall(
        owner=LOCAL, thread_id=THREAD, tool="count", input={"name": "a"}, request=ProgramRequest(request_id)
    )
    try:
        store.is_silent = True
        with pytest.raises(StoreDown):
            await on.service.execute(direct)
        [found] = await on.log.direct_calls()
        ended = await outcome(on, found)
    finally:
        await on.service.close()
    assert ended == (Success("counted a") if request_id is not None else Cancelled(CALLER_LOST))
    assert times == (["a"] if request_id is not None else [])


async def test_a_worker_that_was_stopped_looks_before_it_begins_a_call_that_it_opened(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools, store = Tools(), MemoryStore(clock)
    # others may write, too
    monkeypatch.setattr(store, "is_shared", True)
    on = Stage(store, clock, [], tools.delete)
    await on.service.open()
    try:
        call = await open_call(on)
        await on.decide(call, YES)
        await until_taken(on, call)
        taken = await stored(on, call)
        tools.may_end.set()
        await outcome(on, call)
        on.service.worker.direct.begin(taken)
        await on.service.drain(PATIENCE_SEC)
    finally:
        await on.service.close()
    assert tools.times == 1


@requirement("direct:yes-after-restart")
async def test_a_drain_lets_the_tool_of_a_call_come_to_its_end(stage: MakeStage) -> None:
    tools = Tools()
    on = await stage([], tools.delete)
    call = await open_call(on)
    assert await on.decide(call, YES) == Accepted()
    await until_taken(on, call)
    async with asyncio.TaskGroup() as group:
        draining = group.create_task(on.service.drain(PATIENCE_SEC))
        await asyncio.sleep(0.05)
        assert not draining.done()
        tools.may_end.set()
    assert await outcome(on, call) == Success("deleted a")


async def _opened_in_doubt(on: Stage, store: SilentStore) -> Call:
    """Stored, though its caller was told that nobody knows."""
    request = ProgramRequest("job-1")
    direct = DirectCall(owner=LOCAL, thread_id=THREAD, tool="delete", input={"path": "a"}, request=request)
    store.is_silent = True
    with pytest.raises(StoreDown):
        await on.service.execute(direct)
    return await on.open_call()


@requirement("direct:yes-after-restart")
async def test_a_call_in_doubt_is_run_once_though_a_sweep_looks_at_it_as_it_was_while_it_ran(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools, store = Tools(), SilentStore(clock)
    on = Stage(store, clock, [], tools.delete)
    await on.service.open()
    try:
        call = await _opened_in_doubt(on, store)
        assert await on.decide(call, YES) == Accepted()
        await until_taken(on, call)
        running = await on.log.direct_calls()
        tools.may_end.set()
        assert await outcome(on, call) == Success("deleted a")

        async def as_it_was() -> list[Call]:
            return running

        monkeypatch.setattr(on.log, "direct_calls", as_it_was)
        await on.service.worker.direct.sweep()
        await on.service.worker.direct.drain(PATIENCE_SEC)
    finally:
        await on.service.close()
    assert tools.times == 1


@requirement("direct:yes-after-restart")
async def test_a_call_in_doubt_that_another_worker_runs_is_left_to_that_worker(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools, store = Tools(), SilentStore(clock)
    on = Stage(store, clock, [], tools.delete)
    await on.service.open()
    monkeypatch.setattr(on.service.membership, "gone", _nobody)
    try:
        call = await _opened_in_doubt(on, store)
        with monkeypatch.context() as elsewhere:
            # what another worker appends is not started here
            elsewhere.setattr(on.service.worker.direct, "begin", lambda call: None)
            assert await on.decide(call, YES) == Accepted()
            approved = await stored(on, call)
            taken = await on.service.desk.start_direct(approved, tools.delete.tool, "wrk_other")
        assert taken is not None
        for _ in range(2):
            await on.service.worker.direct.sweep()
        assert not on.service.worker.direct._tasks
        assert (await stored(on, call)).take == taken.take
    finally:
        await on.service.close()
    assert tools.times == 0


async def _nobody(names: object) -> set[str]:
    return set()
