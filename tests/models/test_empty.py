"""Empty answers, over every provider and on to every other: the thread continues."""

from __future__ import annotations

import pytest

from farhand.models.base import Stop
from farhand.models.scripted import Ask, Moment, Say, Step, Think
from tests.models.stage import Provider, stage

EMPTY: dict[str, Step] = {
    "nothing": [Stop("end")],
    "blanks": [Say([" ", "\n\n"]), Stop("end")],
    "a refusal without a word": [Stop("refusal")],
    "a limit before the first word": [Stop("length")],
    "a thought that nothing came of": [Think("Well, well."), Stop("length")],
}


@pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY.keys())
async def test_a_thread_continues_after_an_empty_answer(provider: Provider, empty: Step) -> None:
    def script(moment: Moment) -> Step:
        return "Here I am." if moment.text.endswith("Hello?") else empty

    async with stage(provider, script) as at:
        assert (await at.agent.run("Say nothing", thread="t")).text.strip() == ""
        assert (await at.agent.run("Hello?", thread="t")).text == "Here I am."
        assert (await at.agent.run("Once more: Hello?", thread="t")).text == "Here I am."


@pytest.mark.parametrize("empty", EMPTY.values(), ids=EMPTY.keys())
async def test_a_thread_continues_after_an_empty_answer_to_a_result(provider: Provider, empty: Step) -> None:
    def script(moment: Moment) -> Step:
        if moment.text.endswith("Hello?"):
            return "Here I am."
        return empty if moment.results else Ask("add", {"a": 1, "b": 2})

    async with stage(provider, script) as at:
        assert (await at.agent.run("Add", thread="t")).text.strip() == ""
        assert (await at.agent.run("Hello?", thread="t")).text == "Here I am."
