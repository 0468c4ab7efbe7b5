"""What is told before it is stored is told under the number that it gets in the journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest

from farhand.core.event import DELTAS, CallOpened, Entry, RunFinished
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL
from farhand.core.run import Run
from farhand.models.scripted import Ask, Moment, Step
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import open_url
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, Stage

OPEN = Ask("open_url", {"url": "https://example.org"})


@requirement("streams:numbers")
@pytest.mark.parametrize("look", ["get_run", "calls_of"])
async def test_words_after_an_answer_that_comes_while_the_loop_looks_have_the_numbers_of_the_journal(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    ran = asyncio.Event()

    @tool
    async def dig() -> str:
        """Dig."""
        ran.set()
        return "gold"

    on = await stage(_two_steps(Ask("dig", {}), OPEN), dig, open_url)
    _answer_after(on, monkeypatch, look, when=ran.is_set)
    run = await on.say("go", hold_for=30.0)
    await _check_numbers(on, run)


@requirement("streams:numbers")
@pytest.mark.parametrize("look", ["get_run", "messages", "calls_of"])
async def test_words_of_a_run_that_was_taken_over_have_the_numbers_of_the_journal(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    on = await stage(_two_steps(OPEN), open_url)
    run = await on.say("go", hold_for=30.0)
    await on.told(run, CallOpened)
    await on.farhand.worker._works.let_go(run.run_id)
    _answer_after(on, monkeypatch, look, when=lambda: True)
    assert await on.farhand.worker._bring_back(await on.stored(run), held_here=True)
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


def _answer_after(on: Stage, monkeypatch: pytest.MonkeyPatch, look: str, *, when: Callable[[], bool]) -> None:
    """The last open call is answered right after the store was asked for this, once."""
    asked: Callable[..., Awaitable[object]] = getattr(on.store, look)

    async def ask(*values: object, **named: object) -> object:
        found = await asked(*values, **named)
        if when():
            monkeypatch.undo()
            for call in await on.store.open_calls(LOCAL, THREAD):
                await on.answer(call, Success({"viewKey": "v"}))
        return found

    monkeypatch.setattr(on.store, look, ask)


async def _check_numbers(on: Stage, run: Run) -> None:
    heard = await _live(on, run)
    journal = {entry.seq: entry.event for entry in await on.store.events(LOCAL, run.run_id, limit=1_000)}
    for entry in heard:
        event, stored = entry.event, journal[entry.seq]
        if isinstance(event, DELTAS):
            assert isinstance(stored, DELTAS), (entry, stored)
            assert stored.text[entry.offset :].startswith(event.text)
        else:
            assert stored == event


async def _live(on: Stage, run: Run) -> list[Entry]:
    """All that anybody is told of the run, as it is told, stored or not."""
    heard: list[Entry] = []
    with on.store.hub.watch(run.run_id, limit=10_000) as watch:
        async with asyncio.timeout(PATIENCE_SEC):
            while not heard or not isinstance(heard[-1].event, RunFinished):
                await watch.wait(1.0)
                heard += [entry for entries in watch.news if isinstance(entries, list) for entry in entries]
                watch.news.clear()
    return heard
