"""Readers get every event under its number in the journal, whatever comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest

from farhand.core.event import CallOpened, RunFinished
from farhand.core.outcome import Success
from farhand.core.position import Entry
from farhand.core.principal import LOCAL
from farhand.core.run import Run
from farhand.models.scripted import Ask, Moment, Step
from farhand.tools.decorate import tool
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import open_url
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, Stage

OPEN = Ask("open_url", {"url": "https://example.org"})


async def test_words_after_an_answer_that_comes_while_the_loop_looks_have_the_numbers_of_the_journal(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = asyncio.Event()

    @tool
    async def dig() -> str:
        """Dig."""
        ran.set()
        return "gold"

    on = await stage(_two_steps(Ask("dig", {}), OPEN), dig, open_url)
    _answer_after_a_look(on, monkeypatch, when=ran.is_set)
    run = await on.say("go", hold_for=30.0)
    await _check_numbers(on, run)


@pytest.mark.slow
async def test_words_of_a_run_that_was_taken_over_have_the_numbers_of_the_journal(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = await stage(_two_steps(OPEN), open_url)
    run = await on.say("go", hold_for=30.0)
    await on.told(run, CallOpened)
    on.service.worker._active.let_go(run.run_id)
    found = await on.stored(run)
    _answer_after_a_look(on, monkeypatch, when=lambda: True)
    assert await on.service.worker._resume_run(found)
    await _check_numbers(on, run)


def _two_steps(*asked: Ask) -> Callable[[Moment], AsyncGenerator[Step, None]]:
    """Its second answer comes to rest in mid-word, until what was said of it is stored."""

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        if moment.steps == 0:
            yield [*asked]
            return
        yield "Thanks "
        await asyncio.sleep(0.01)
        yield "a lot."

    return script


def _answer_after_a_look(on: Stage, monkeypatch: pytest.MonkeyPatch, *, when: Callable[[], bool]) -> None:
    """The last open call is answered right after the loop has looked at the thread, once."""
    read: Callable[..., Awaitable[object]] = on.log.read_uncommitted

    async def read_and_answer(*values: object) -> object:
        found = await read(*values)
        if when():
            monkeypatch.undo()
            for call in await on.log.open_calls(LOCAL, THREAD):
                await on.answer(call, Success({"viewKey": "v"}))
        return found

    monkeypatch.setattr(on.log, "read_uncommitted", read_and_answer)


async def _check_numbers(on: Stage, run: Run) -> None:
    heard = await _live(on, run)
    journal = await on.log.entries(run)
    assert heard == journal[-len(heard) :]


async def _live(on: Stage, run: Run) -> list[Entry]:
    """All that anybody is told of the run, as it is told."""
    heard: list[Entry] = []
    with on.log.broker.subscribe(run.run_id, limit=10_000) as subscription:
        async with asyncio.timeout(PATIENCE_SEC):
            while not heard or not isinstance(heard[-1].event, RunFinished):
                await subscription.wait(1.0)
                heard += [
                    entry for entries in subscription.items if isinstance(entries, list) for entry in entries
                ]
                subscription.items.clear()
    return heard
