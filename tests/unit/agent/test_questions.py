"""Questions of tools and the calls that ask them, when another server answers, cancels or continues.

On SQLite that server was started after a kill, on PostgreSQL it is a second worker: see `failover`.
"""

from __future__ import annotations

import asyncio

import pytest

from farhand.core.call import Call
from farhand.core.decide.calls import ASKER_GONE
from farhand.core.event import RunFinished
from farhand.core.outcome import Cancelled, Success
from farhand.core.principal import LOCAL
from farhand.models.scripted import Ask
from farhand.tools.context import NotAnswered, ask
from farhand.tools.declared import DeclaredTool
from farhand.tools.decorate import tool
from farhand.tools.execute import ToolFailed
from tests.requirement import requirement
from tests.unit.agent.failover import Workers, successors
from tests.unit.agent.hands import ask_text
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, Stage, comes_true, text_in
from tests.unit.agent.test_recovery import Machine, asking

__all__ = ["successors"]
"""The fixture, for this file."""


class Asker:
    """A tool that asks twice, and what became of its executions."""

    def __init__(self) -> None:
        self.begun = 0
        self.stopped = 0

    @property
    def tool(self) -> DeclaredTool[[], object]:
        @tool(idempotent=True)
        async def ask_twice() -> str:
            """Ask two questions."""
            self.begun += 1
            try:
                first = await ask("ask_text", {"question": "first?"}, timeout_sec=600)
                return f"{first} and {await ask('ask_text', {'question': 'second?'}, timeout_sec=600)}"
            # it is cancelled, or told that there is no answer or that its call has ended, whichever comes
            # first
            except (asyncio.CancelledError, NotAnswered, ToolFailed):
                self.stopped += 1
                raise

        return ask_twice


async def _asked(on: Stage, question: str) -> Call:
    """The question, once it is asked."""

    async def is_asked() -> bool:
        return bool(await _questions(on, question))

    await comes_true(is_asked)
    [found] = await _questions(on, question)
    return found


async def _questions(on: Stage, question: str) -> list[Call]:
    calls = await on.log.open_calls(LOCAL, THREAD)
    return [call for call in calls if call.input.get("question") == question]


async def _at_work(asker: Asker, successors: Machine | Workers) -> bool:
    """After a kill the next server runs the tool again; another worker leaves it where it runs."""
    return asker.begun == (1 if isinstance(successors, Workers) else 2)


async def _is_over(on: Stage, asker: Asker) -> None:
    """Nothing waits any more, and the function was told so."""

    async def is_stopped() -> bool:
        return asker.stopped >= 1

    assert await on.log.open_calls(LOCAL, THREAD) == []
    await comes_true(is_stopped)


@requirement("hands:questions-after-a-crash")
async def test_a_second_question_is_answered_at_the_next_server_and_the_run_continues(
    successors: Machine | Workers,
) -> None:
    asker, script = Asker(), asking(Ask("ask_twice"))
    before = await successors.boot(script, asker.tool, ask_text)
    run = await before.say("go")
    await before.answer(await _asked(before, "first?"), Success("one"))
    second = await _asked(before, "second?")
    after = await successors.boot(script, asker.tool, ask_text)
    await comes_true(lambda: _at_work(asker, successors))
    assert (await _asked(after, "second?")).call_id == second.call_id, "it is asked once"
    await after.answer(second, Success("two"))
    assert text_in(await after.told(run, RunFinished)) == "one and two"


@requirement("hands:questions-after-a-crash")
async def test_a_keyed_call_that_asks_is_attached_to_and_answered_at_the_next_server(
    successors: Machine | Workers,
) -> None:
    asker = Asker()
    before = await successors.boot(asking(), asker.tool, ask_text)
    await before.service.call("ask_twice", {}, thread=THREAD, key="k", within=0.0)
    await before.answer(await _asked(before, "first?"), Success("one"))
    second = await _asked(before, "second?")
    after = await successors.boot(asking(), asker.tool, ask_text)
    attached = asyncio.create_task(after.service.call("ask_twice", {}, thread=THREAD, key="k"))
    await comes_true(lambda: _at_work(asker, successors))
    await after.answer(second, Success("two"))
    async with asyncio.timeout(PATIENCE_SEC):
        assert await attached == Success("one and two")


@requirement("hands:question-gives-way")
async def test_a_run_that_is_stopped_at_the_next_server_takes_tool_and_question_along(
    successors: Machine | Workers,
) -> None:
    asker, script = Asker(), asking(Ask("ask_twice"))
    before = await successors.boot(script, asker.tool, ask_text)
    run = await before.say("go")
    await _asked(before, "first?")
    after = await successors.boot(script, asker.tool, ask_text)
    await comes_true(lambda: _at_work(asker, successors))
    assert await after.service.stop(LOCAL, THREAD, "stopped")
    assert [type(outcome) for outcome in await after.outcomes(run)] == [Cancelled, Cancelled]
    await _is_over(after, asker)


@requirement("hands:question-gives-way")
async def test_a_keyed_call_that_is_cancelled_at_the_next_server_takes_its_question_along(
    successors: Machine | Workers,
) -> None:
    asker = Asker()
    before = await successors.boot(asking(), asker.tool, ask_text)
    await before.service.call("ask_twice", {}, thread=THREAD, key="k", within=0.0)
    question = await _asked(before, "first?")
    after = await successors.boot(asking(), asker.tool, ask_text)
    await comes_true(lambda: _at_work(asker, successors))
    assert await after.service.cancel("k", reason="not needed")
    assert await after.service.call("ask_twice", {}, thread=THREAD, key="k") == Cancelled("not needed")
    ended = await after.log.get_call(LOCAL, question.call_id)
    assert ended is not None
    assert ended.outcome == Cancelled(ASKER_GONE)
    await _is_over(after, asker)


@requirement("hands:question-gives-way")
async def test_a_call_without_a_key_takes_its_question_along_when_its_caller_is_gone(
    successors: Machine | Workers,
) -> None:
    """Cancelled where it waits, or killed with its server."""
    asker = Asker()
    before = await successors.boot(asking(), asker.tool, ask_text)
    caller = asyncio.create_task(before.service.call("ask_twice", {}, thread=THREAD))
    question = await _asked(before, "first?")
    after = await successors.boot(asking(), asker.tool, ask_text)
    if isinstance(successors, Workers):
        caller.cancel()

    async def is_cancelled() -> bool:
        ended = await after.log.get_call(LOCAL, question.call_id)
        return ended is not None and ended.outcome == Cancelled(ASKER_GONE)

    await comes_true(is_cancelled)
    assert await after.log.open_calls(LOCAL, THREAD) == []
    assert asker.begun == 1, "it is not run again for nobody"
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
