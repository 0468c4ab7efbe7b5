"""What happens to a program's call when its caller is cancelled: without a key it ends, with one it stays. On
one file and, with callers, approvals and tools at two workers, on a database."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from farhand.agent.direct_calls import CALLER_GONE
from farhand.core.call import Call, Phase
from farhand.core.outcome import Cancelled, Success
from farhand.core.principal import LOCAL
from farhand.tools.declared import DeclaredTool
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.failover import Workers, successors
from tests.unit.agent.hands import ask_text
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, YES, Stage, comes_true
from tests.unit.agent.test_recovery import Machine, asking

__all__ = ["successors"]
"""The fixture, for this file."""

QUESTION = {"question": "Which size?"}


class Payment:
    """A tool behind an approval that never ends by itself."""

    def __init__(self) -> None:
        self.begun = 0
        self.cancelled = 0

    @property
    def tool(self) -> DeclaredTool[[], object]:
        @tool(needs_approval=True)
        async def pay() -> str:
            """Pay."""
            self.begun += 1
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            return "never"

        return pay


async def _two(successors: Machine | Workers, *tools: object) -> tuple[Stage, Stage]:
    """Two workers; where there can be only one, the same twice."""
    one = await successors.boot(asking(), *tools)
    return one, await successors.boot(asking(), *tools) if isinstance(successors, Workers) else one


async def _leave(caller: asyncio.Task[Any]) -> None:
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


async def _opened(on: Stage) -> Call:
    async def is_open() -> bool:
        return bool(await on.log.open_calls(LOCAL, THREAD))

    await comes_true(is_open)
    return await on.open_call()


async def _now(on: Stage, call: Call) -> Call:
    found = await on.log.get_call(LOCAL, call.call_id)
    assert found is not None
    return found


@requirement("hands:caller-leaves")
async def test_without_a_key_a_call_that_waits_ends_with_its_caller(successors: Machine | Workers) -> None:
    one, other = await _two(successors, ask_text)
    caller = asyncio.create_task(one.service.call("ask_text", QUESTION, thread=THREAD))
    call = await _opened(other)
    await _leave(caller)
    assert (await _now(other, call)).outcome == Cancelled(CALLER_GONE)


@requirement("hands:caller-leaves")
async def test_without_a_key_a_tool_that_runs_where_it_was_approved_ends_with_the_caller_elsewhere(
    successors: Machine | Workers,
) -> None:
    payment = Payment()
    one, other = await _two(successors, payment.tool)
    caller = asyncio.create_task(one.service.call("pay", {}, thread=THREAD))
    call = await _opened(other)
    await other.decide(call, YES)

    async def is_begun() -> bool:
        return payment.begun == 1

    async def is_stopped() -> bool:
        return payment.cancelled == 1

    await comes_true(is_begun)
    await _leave(caller)
    assert (await _now(other, call)).outcome == Cancelled(CALLER_GONE)
    await comes_true(is_stopped)


@requirement("hands:caller-leaves")
async def test_with_a_key_a_call_stays_though_its_callers_at_every_worker_have_left(
    successors: Machine | Workers,
) -> None:
    one, other = await _two(successors, ask_text)

    def call(on: Stage) -> asyncio.Task[Any]:
        return asyncio.create_task(on.service.call("ask_text", QUESTION, thread=THREAD, key="order-7"))

    opener = call(one)
    opened = await _opened(other)
    attached = call(other)

    async def are_attached() -> bool:
        workers = {one.log.broker, other.log.broker}
        return sum(broker.count(opened.call_id) for broker in workers) == 2

    await comes_true(are_attached)
    await _leave(opener)
    await _leave(attached)
    assert (await _now(one, opened)).phase is Phase.READY
    again = [call(one), call(other)]
    await other.answer(opened, Success("L"))
    async with asyncio.timeout(PATIENCE_SEC):
        assert await asyncio.gather(*again) == [Success("L")] * 2
