"""A thread that changes its model, from every provider to every other: each accepts the other's history."""

from __future__ import annotations

import itertools

import pytest

from farhand import Success
from farhand.models.base import Stop
from farhand.models.scripted import Ask, Moment, Say, Step, Think
from tests.models.stage import PROVIDERS, Provider, agent_on, stage
from tests.requirement import requirement

PAIRS = list(itertools.permutations(PROVIDERS, 2))


def script(moment: Moment) -> Step:
    if moment.text.endswith("Ask me") and not moment.results:
        return [
            Think("I need two things."),
            Say("One moment."),
            Ask("add", {"a": 1, "b": 2}, id="call_0"),
            Ask("ask_text", {"question": "Who?"}, id="call_0"),
        ]
    return f"{len(moment.results)} results."


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda provider: provider.name)
@requirement("models:change")
async def test_a_thread_continues_with_another_provider_while_a_call_waits(
    first: Provider, second: Provider, file_store: str
) -> None:
    async with stage(first, script, file_store) as at:
        paused = await at.agent.run("Ask me", thread="t")
        await at.agent.close()
        async with second.fake(script) as fake, agent_on(second, fake, file_store) as agent:
            result = await agent.answer("t", [(paused.pending[0].call_id, Success("Ada"))])
            assert result.stop_reason == "end"
            assert (await agent.run("Thanks", thread="t")).stop_reason == "end"
            assert "Ada" in str(fake.requests)
            assert "I need two things." not in str(fake.requests), "another's thoughts are none of its own"
            assert fake.refused == []


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda provider: provider.name)
async def test_another_provider_takes_a_thread_whose_last_answers_were_empty(
    first: Provider, second: Provider, file_store: str
) -> None:
    answers: list[Step] = [
        [Stop("end")],
        [Think("Hm."), Stop("end")],
        [Ask("add", {"a": 1, "b": 2})],
        [Stop("end")],
    ]
    async with stage(first, answers, file_store) as at:
        for words in ("Say nothing", "Think", "Add"):
            assert (await at.agent.run(words, thread="t")).text == ""
        await at.agent.close()
        async with (
            second.fake(lambda moment: "Here I am.") as fake,
            agent_on(second, fake, file_store) as agent,
        ):
            assert (await agent.run("Hello?", thread="t")).text == "Here I am."
            assert fake.refused == []
