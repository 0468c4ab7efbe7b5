"""Durability comes first: no model is asked with a result that may be lost, and no tool starts for a call
that has its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import pytest

from farhand.agent import loop, worker
from farhand.core.call import Phase
from farhand.core.decide import calls
from farhand.core.decide.decision import Decision
from farhand.core.event import CallOpened, CallSettled, RunFinished
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL, Owner
from farhand.core.result import Refused, Result
from farhand.core.state import ThreadState
from farhand.core.thread import ResultsMessage
from farhand.errors import StoreDown
from farhand.models.scripted import Ask, Moment, Step
from farhand.store.base import Append, AppendResult, Store
from farhand.tools.context import current
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.failing_store import events_of
from tests.unit.agent.hands import open_url
from tests.unit.agent.stage import THREAD, Stage, comes_true
from tests.unit.agent.test_two_workers import Hire, _stall, hire

__all__ = ["hire"]
"""The fixture, for this file, too."""

T = TypeVar("T")
OPEN = Ask("open_url", {"url": "https://example.org"})
LOST, WON = Success({"viewKey": "lost"}), Success({"viewKey": "won"})


def _script(moment: Moment) -> Step:
    return "Thanks." if moment.results else OPEN


class Dying:
    """A store that is given one append to keep, and dies with it: what was decided is taken back."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.has_begun, self.may_die = asyncio.Event(), asyncio.Event()
        self._append = store.append
        self._is_dead = False
        monkeypatch.setattr(store, "append", self.append)

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        settles = any(isinstance(event, CallSettled) for each in appends for event in events_of(each))
        if settles and not self._is_dead:
            self._is_dead = True
            self.has_begun.set()
            await self.may_die.wait()
            raise StoreDown("It was killed.")
        return await self._append(appends)


@requirement("runs:recovery")
@pytest.mark.parametrize("hold_for", [60.0, 0.0], ids=["held", "parked"])
async def test_a_model_is_never_asked_with_a_result_that_the_store_did_not_keep(
    stage: MakeStage, store: Store, monkeypatch: pytest.MonkeyPatch, hold_for: float
) -> None:
    monkeypatch.setattr(worker, "SWEEP_SEC", 0.01)
    on = await stage(_script, open_url)
    run = await on.say("go", hold_for=hold_for)
    await on.told(run, *([CallOpened] if hold_for else []))
    call = await on.open_call()
    dying = Dying(store, monkeypatch)
    sent = Result(call_id=call.call_id, outcome=LOST)
    async with asyncio.TaskGroup() as group:
        losing = group.create_task(_refused(on, sent))
        await dying.has_begun.wait()
        for _ in range(100):
            # whoever continues with what is only decided continues here
            await asyncio.sleep(0)
        dying.may_die.set()
    assert losing.done()
    await comes_true(lambda: _settles(on, Result(call_id=call.call_id, outcome=WON)))
    await on.told(run, RunFinished)
    given = [
        each.outcome
        for prompt in on.model.prompts
        for message in prompt.messages
        if isinstance(message, ResultsMessage)
        for each in message.results
    ]
    assert set(map(repr, given)) == {repr(WON)}, "and never with what nobody was told is kept"


async def _refused(on: Stage, sent: Result) -> None:
    with pytest.raises(StoreDown):
        await on.service.desk.settle(LOCAL, sent)


async def _settles(on: Stage, sent: Result) -> bool:
    await on.service.desk.settle(LOCAL, sent)
    call = await on.log.get_call(LOCAL, sent.call_id)
    return call is not None and call.phase is Phase.SETTLED


class Digging:
    """An idempotent tool that notes how its call was stored when it began, and ends when it is told."""

    def __init__(self) -> None:
        self.begun: list[Phase] = []
        self.may_end: list[asyncio.Event] = []

    def tool(self, on: list[Stage]) -> object:
        @tool(idempotent=True)
        async def dig() -> str:
            """Dig."""
            call = await on[-1].log.get_call(LOCAL, current().call_id)
            assert call is not None
            gate = asyncio.Event()
            self.may_end.append(gate)
            self.begun.append(call.phase)
            number = len(self.begun)
            await gate.wait()
            return f"dug {number}"

        return dig

    async def has_begun(self, times: int) -> bool:
        return len(self.begun) >= times


@requirement("workers:takeover")
async def test_the_outcome_of_a_tool_whose_run_was_taken_over_changes_nothing(hire: Hire) -> None:
    digging, workers = Digging(), list[Stage]()
    dig = digging.tool(workers)
    workers.append(await hire([Ask("dig", {}), "never"], dig))
    [one] = workers
    run = await one.say("dig")
    await comes_true(lambda: digging.has_begun(1))
    await _stall(one)
    workers.append(await hire(["Done."], dig))
    other = workers[-1]
    await comes_true(lambda: digging.has_begun(2))
    # the first worker was stopped in its tool, continues now, and knows nothing of the claim
    [call] = await other.calls(run)
    assert await one.service.desk.finish(call, Success("dug 1"), fence=1) == Refused("taken")
    digging.may_end[1].set()
    await other.told(run, RunFinished)
    assert await other.outcomes(run) == [Success("dug 2")]
    assert digging.begun == [Phase.TAKEN] * 2, "never after its result was stored"


@requirement("workers:takeover")
async def test_a_tool_is_not_begun_for_a_call_that_ended_before_the_intent_was_durable(
    hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:
    digging, workers = Digging(), list[Stage]()
    workers.append(await hire([Ask("dig", {}), "Done."], digging.tool(workers)))
    [one] = workers
    read, is_over = one.log.read, False

    async def read_late(owner: Owner, thread_id: str, view: Callable[[ThreadState], T]) -> T:
        """Between the look at the step and the read that makes its intent durable, the call ends."""
        nonlocal is_over
        if isinstance(view, partial) and view.func is loop._held_ids and not is_over:
            is_over = True
            [call] = await read(owner, thread_id, ThreadState.open_calls)
            end = calls.settled(call, Success("elsewhere"))
            await one.log.decide(LOCAL, THREAD, lambda thread, now: Decision("ended", (end,)))
        return await read(owner, thread_id, view)

    monkeypatch.setattr(one.log, "read", read_late)
    run = await one.say("dig")
    await one.told(run, RunFinished)
    assert is_over
    assert digging.begun == []
    assert await one.outcomes(run) == [Success("elsewhere")]
