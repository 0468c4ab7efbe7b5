"""Several callers of one keyed call that ends with them: it ends with the last one, unless somebody elsewhere
may wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from farhand.agent.direct_calls import RUN_CANCELLED
from farhand.core.outcome import Cancelled, Outcome, Success
from farhand.core.principal import LOCAL, Principal
from farhand.errors import Misuse
from farhand.store.base import Append, AppendResult
from farhand.testing import FakeClock
from farhand.tools.context import current
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import ask_text
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, Stage, comes_true
from tests.unit.agent.test_recovery import Machine, asking
from tests.unit.agent.test_two_workers import Hire, hire

__all__ = ["hire"]
"""The fixture, for this file, too."""

QUESTION = {"question": "Which size?"}


@pytest.fixture
async def machine(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Machine]:
    made = Machine(tmp_path, clock)
    yield made
    await made.close()


def _call(on: Stage, *, ends_with_caller: bool = True) -> asyncio.Task[Any]:
    return asyncio.create_task(
        on.service.call("ask_text", QUESTION, thread=THREAD, key="k", ends_with_caller=ends_with_caller)
    )


async def _leave(caller: asyncio.Task[Any]) -> None:
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


async def _outcome(on: Stage) -> Outcome | None:
    call = await on.service.keyed_call("k")
    assert call is not None
    return call.outcome


async def _waits(on: Stage, callers: int = 1) -> None:
    """Until the call is open and so many wait for it at this worker."""

    async def are_there() -> bool:
        call = await on.service.keyed_call("k")
        return call is not None and on.log.broker.count(call.call_id) >= callers

    await comes_true(are_there)


async def _is_shared(on: Stage) -> bool:
    call = await on.service.keyed_call("k")
    return call is not None and call.request is not None and call.request.worker is None


@requirement("bridges:cancel")
async def test_the_call_stays_for_the_others_and_ends_with_the_last(stage: MakeStage) -> None:
    on = await stage([], ask_text)
    first = _call(on)
    await _waits(on)
    second = _call(on)
    await _waits(on, 2)
    await _leave(first)
    assert await _outcome(on) is None
    await _leave(second)
    assert await _outcome(on) == Cancelled(RUN_CANCELLED)


@requirement("bridges:cancel")
@pytest.mark.parametrize("is_near", [True, False], ids=["a server tool", "a far hand"])
async def test_a_call_whose_opener_leaves_while_it_is_stored_stays_for_who_came_before_that(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch, is_near: bool
) -> None:
    on = await stage([], _answer_text if is_near else ask_text)
    appending, may_append = _hold_up(on, monkeypatch)
    opener = _call(on)
    async with asyncio.timeout(PATIENCE_SEC):
        await appending.wait()
        other = _call(on)
        await comes_true(lambda: _are_counted(on, 2))
        opener.cancel()
        await comes_true(lambda: _are_counted(on, 1))
        may_append.set()
        with pytest.raises(asyncio.CancelledError):
            await opener
        if not is_near:
            await _waits(on)
            await on.answer(await on.open_call(), Success("L"))
        assert await other == Success("L")


@requirement("bridges:cancel")
async def test_a_call_whose_callers_all_leave_while_it_is_stored_is_cancelled(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = await stage([], ask_text)
    appending, may_append = _hold_up(on, monkeypatch)
    callers = [_call(on)]
    async with asyncio.timeout(PATIENCE_SEC):
        await appending.wait()
        callers.append(_call(on))
        await comes_true(lambda: _are_counted(on, 2))
        for each in callers:
            each.cancel()
        await comes_true(lambda: _are_counted(on, 0))
        may_append.set()
        await asyncio.wait(callers)
        await comes_true(lambda: _is_cancelled(on))


@tool(name="ask_text")
def _answer_text(question: str) -> str:
    """Answer.

    Args:
        question: What to say something to.
    """
    return "L"


def _hold_up(on: Stage, monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """When the store is asked for an append, and when it may answer."""
    appending, may_append, append = asyncio.Event(), asyncio.Event(), on.store.append

    async def held_up(appends: Sequence[Append]) -> list[AppendResult]:
        appending.set()
        # a test that fails before it says so must come to its end, too
        async with asyncio.timeout(PATIENCE_SEC):
            await may_append.wait()
        return await append(appends)

    monkeypatch.setattr(on.store, "append", held_up)
    return appending, may_append


async def _are_counted(on: Stage, callers: int) -> bool:
    return on.service.worker.direct.callers.total() == callers


async def _is_cancelled(on: Stage) -> bool:
    return await _outcome(on) == Cancelled(RUN_CANCELLED)


async def test_one_who_would_leave_it_open_keeps_it_open(stage: MakeStage) -> None:
    on = await stage([], ask_text)
    first = _call(on)
    await _waits(on)
    other = _call(on, ends_with_caller=False)
    await _waits(on, 2)
    await _leave(other)
    await _leave(first)
    assert await _outcome(on) is None
    await on.answer(await on.open_call(), Success("L"))
    async with asyncio.timeout(PATIENCE_SEC):
        assert await _call(on) == Success("L")


@requirement("bridges:cancel")
@pytest.mark.parametrize("leaver", ["the one who opened it", "the one who attached"])
async def test_a_caller_at_another_worker_keeps_it_open(hire: Hire, leaver: str) -> None:
    one, other = await hire([], ask_text), await hire([], ask_text)
    opener = _call(one)
    await _waits(one)
    attached = _call(other)
    await comes_true(lambda: _is_shared(one))
    gone, left = (opener, attached) if leaver == "the one who opened it" else (attached, opener)
    await _leave(gone)
    assert await _outcome(other) is None
    await one.answer(await one.open_call(), Success("L"))
    async with asyncio.timeout(PATIENCE_SEC):
        assert await left == Success("L")


@requirement("bridges:cancel")
async def test_after_a_restart_it_ends_with_whoever_attached_then(machine: Machine) -> None:
    before = await machine.boot(asking(), ask_text)
    killed = _call(before)
    await _waits(before)
    after = await machine.boot(asking(), ask_text)
    await _leave(killed)
    assert await _outcome(after) is None
    again = _call(after)
    await _waits(after)
    await _leave(again)
    assert await _outcome(after) == Cancelled(RUN_CANCELLED)


async def test_a_call_that_was_made_before_is_waited_for_and_nothing_is_opened(stage: MakeStage) -> None:
    on = await stage([], ask_text)
    assert await on.service.attach("k") is None
    first = _call(on)
    await _waits(on)
    attached = asyncio.create_task(on.service.attach("k"))
    await comes_true(lambda: _is_shared(on))
    await _leave(first)
    await on.answer(await on.open_call(), Success("L"))
    async with asyncio.timeout(PATIENCE_SEC):
        ended = await attached
    assert ended is not None
    assert ended.outcome == Success("L")


@requirement("hands:who-asks")
async def test_a_principal_is_an_owner_with_claims(stage: MakeStage) -> None:
    @tool
    def plan() -> str:
        """Say for whom this works."""
        return f"{current().owner.subject}: {current().claims}"

    on = await stage([], plan, ask_text)
    ann = Principal("acme", "ann", claims={"plan": "pro"})
    assert await on.service.call("plan", {}, thread=THREAD, owner=ann) == Success("ann: {'plan': 'pro'}")
    own = await on.service.call("plan", {}, thread=THREAD, owner=ann, claims={"plan": "free"})
    assert own == Success("ann: {'plan': 'free'}")
    await on.service.call("ask_text", QUESTION, thread=THREAD, owner=ann, key="k", within=0.0)
    assert not await on.service.cancel("k")
    assert await on.service.cancel("k", owner=ann)
    assert await on.log.open_calls(LOCAL, THREAD) == []


@pytest.mark.parametrize("owner", [None, "ann", ("acme", "ann")])
async def test_what_is_no_owner_is_refused_in_words(stage: MakeStage, owner: Any) -> None:
    on = await stage([], ask_text)
    with pytest.raises(Misuse, match=r"owner must be an Owner\(tenant, subject\) or a Principal, not"):
        await on.service.call("ask_text", QUESTION, thread=THREAD, owner=owner)
    with pytest.raises(Misuse, match="owner must be an Owner"):
        await on.service.cancel("k", owner=owner)
