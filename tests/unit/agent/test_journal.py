"""What a run says is told word by word, and joined in its journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from farhand.core.event import Entry, Event, TextAdded
from farhand.models.scripted import Moment, Say, Step
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.stage import PATIENCE_SEC, text_in


@requirement("runs:journal")
async def test_words_of_one_moment_are_joined_in_the_journal(stage: MakeStage) -> None:
    on = await stage([Say(["a", "b", "c"])])
    run = await on.say("speak")
    assert text_in(await on.told(run)) == "abc"
    assert [event for event in await on.journal(run) if isinstance(event, TextAdded)] == [TextAdded(0, "abc")]


@requirement("runs:journal")
async def test_words_that_come_one_by_one_are_told_one_by_one(stage: MakeStage) -> None:
    heard = asyncio.Event()

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield Say(["a"])
        await heard.wait()
        yield Say(["b"])

    on = await stage(script)
    run = await on.say("speak")
    texts: list[str] = []

    def hear(entries: list[Entry]) -> None:
        texts.extend(each.event.text for each in entries if isinstance(each.event, TextAdded))
        if texts:
            heard.set()

    with on.farhand.read(run) as reading:
        async with asyncio.timeout(PATIENCE_SEC):
            while (entries := await reading.next(1)) is not None:
                hear(entries)
    assert texts == ["a", "b"]


@requirement("runs:journal")
async def test_words_reach_the_journal_while_the_model_is_silent(stage: MakeStage) -> None:
    more = asyncio.Event()

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield Say(["So far. "])
        await more.wait()
        yield Say(["And on."])

    on = await stage(script)
    run = await on.say("speak")
    with on.farhand.read(run) as reading:
        found: Sequence[Event] = []
        async with asyncio.timeout(PATIENCE_SEC):
            while text_in(found) != "So far. ":
                await reading.next(0.05)
                found = await on.journal(run)
    more.set()
    await on.told(run)
    assert text_in(await on.journal(run)) == "So far. And on."


@requirement("runs:journal")
@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\x00", "\u202e"])
async def test_a_model_that_says_what_no_text_can_hold_breaks_nothing(stage: MakeStage, text: str) -> None:
    on = await stage([Say([text, " ok"]), "Next."])
    run = await on.say("speak")
    assert text_in(await on.told(run)).endswith(" ok")
    assert text_in(await on.told(await on.say("again"))) == "Next."
