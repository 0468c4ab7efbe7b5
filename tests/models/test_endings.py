"""Answers that end early, over every provider: the history stays acceptable to the provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Literal

import pytest

from farhand import Success
from farhand.core.event import CallRejected, RunFailed, RunFinished, StepFinished, TextAdded
from farhand.core.principal import LOCAL
from farhand.core.thread import AssistantMessage, Text, UserMessage
from farhand.models.base import Stop
from farhand.models.scripted import Ask, Begin, Moment, Say, Step, Think
from tests.fakes.openai import FakeOpenAI
from tests.models.stage import PROVIDERS, Provider, deleted, noted, stage

ANTHROPIC = next(provider for provider in PROVIDERS if provider.name == "anthropic")


async def test_a_run_that_waits_is_stopped_and_the_thread_continues(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if moment.text.endswith("Ask me") and not moment.results:
            return [Say("One moment."), Ask("ask_text", {"question": "Who?"}), Ask("add", {"a": 1, "b": 2})]
        return "Here I am."

    async with stage(provider, script) as at:
        await at.agent.run("Ask me", thread="t")
        await at.stop("t")
        result = await at.agent.run("Still there?", thread="t")
        assert result.text == "Here I am."
        assert "stopped by the user" in str(at.fake.requests[-1].body)


async def test_an_answer_is_stopped_in_mid_word_and_the_thread_continues(provider: Provider) -> None:
    never = asyncio.Event()

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        if moment.text.endswith("A story"):
            # three pieces: what a server sent as a whole text or as a delta shows by the third
            yield Say(["Once ", "upon ", "a time "])
            await never.wait()
        yield "The end."

    async with stage(provider, script) as at:
        service = await at.service()
        story = UserMessage("m1", (Text("A story"),))
        started = await service.start(LOCAL, "t", story, hold_for=0.0)
        await at.until("t", TextAdded)
        await at.stop("t")
        result = await at.agent.run("Well?", thread="t")
        assert result.text == "The end."
        said = [each for each in await service.log.messages(LOCAL, "t") if isinstance(each, AssistantMessage)]
        assert said[0].run_id == started.run.run_id


async def test_a_call_that_was_cut_by_the_limit_is_not_executed(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if moment.text.endswith("Delete a.txt") and not moment.results:
            return [Say("I will. "), Begin("delete_file", '{"path": "a.tx')]
        return "Nothing was deleted."

    async with stage(provider, script) as at:
        await at.agent.run("Delete a.txt", thread="t")
        events = await at.until("t", RunFinished, RunFailed)
        opened = [event for event in events if isinstance(event, CallRejected)]
        if provider.name == "backboard":
            # its rounds are told whole or not at all: one that ran out of tokens is a failed run
            assert isinstance(events[-1], RunFailed)
            assert opened == []
        else:
            assert isinstance(events[-1], RunFinished)
            assert events[-1].reason == "length"
            assert len(opened) == 1
        result = await at.agent.run("And?", thread="t")
        assert result.text == "Nothing was deleted."
        assert deleted == []


async def test_a_refusal_ends_the_run_and_the_thread_continues(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if moment.text.endswith("Something bad"):
            return [Say("I would rather not."), Ask("note", {"words": "bad"}), Stop("refusal")]
        return "Gladly."

    async with stage(provider, script) as at:
        refused = await at.agent.run("Something bad", thread="t")
        assert refused.stop_reason == ("failed" if provider.name == "backboard" else "refusal")
        assert noted == [], "calls of an answer that was refused are not executed"
        assert (await at.agent.run("Something good", thread="t")).text == "Gladly."


async def test_an_input_that_is_no_json_goes_back_to_the_model(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if not moment.results:
            return Ask("add", '{"a": 1, "b": ')
        if len(moment.results) == 1:
            return Ask("add", {"a": 1, "b": 2})
        return f"Second try: {moment.results[-1].output}"

    async with stage(provider, script) as at:
        result = await at.agent.run("Add", thread="t")
        assert result.text == "Second try: 3"
        told = str(at.fake.prompts[1].messages)
        assert "The input is not valid JSON. The JSON is incomplete. Call the tool again with the" in told
        assert "nothing was applied" not in told, "no words for a sender of bytes"


async def test_a_step_that_a_crash_cut_is_asked_again_from_the_stored_history(
    provider: Provider, file_store: str
) -> None:
    never = asyncio.Event()
    asked: list[int] = []

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        asked.append(len(moment.results))
        if not moment.results and "Earlier in this conversation" not in moment.text:
            yield Ask("add", {"a": 20, "b": 22})
            return
        if len(asked) == 2:
            yield Say(["It ", "is ", "nearly "])
            await never.wait()
        yield "It is 42."

    async with stage(provider, script, file_store) as at:
        service = await at.service()
        await service.start(LOCAL, "t", UserMessage("m1", (Text("Add"),)), hold_for=0.0)
        await at.until("t", TextAdded)
        await at.restart()
        await at.until("t", RunFinished)
        # again from the start: a replay leaves out what was cut
        assert await at.text_at_end("t") == "It is 42."
        assert "42" in str(at.fake.requests[-1].body)


async def test_a_run_that_never_comes_to_an_answer_ends_and_the_thread_continues(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if moment.text.endswith("for ever"):
            return Ask("add", {"a": len(moment.results), "b": 0})
        return "Back again."

    async with stage(provider, script) as at:
        at.agent.settings = at.agent.settings.__class__(
            limits=at.agent.settings.limits.__class__(max_steps=3), timeouts=at.agent.settings.timeouts
        )
        ended = await at.agent.run("Go on for ever", thread="t")
        assert ended.stop_reason == "failed"
        assert (await at.agent.run("Enough", thread="t")).text == "Back again."


async def test_a_paused_turn_goes_back_unchanged_and_is_continued() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "oslo"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}

    def script(moment: Moment) -> Step:
        if "again" in moment.text:
            return "Once more."
        last = moment.messages[-1]
        if not isinstance(last, AssistantMessage):
            return [Think("I should look."), Say("Searching. "), Think("", echo=search), Stop("pause")]
        if len(last.parts) == 3:
            return [Think("", echo=found), Say("Still searching. "), Stop("pause")]
        return "Found it."

    async with stage(ANTHROPIC, script) as at:
        result = await at.agent.run("What is new in Oslo?", thread="t")
        assert (result.stop_reason, result.text) == ("end", "Searching. Still searching. Found it.")
        assert (await at.agent.run("And again", thread="t")).text == "Once more."
        turn = at.fake.requests[-1].body["messages"][1]["content"]
        assert [block["type"] for block in turn] == [
            "thinking",
            "text",
            "server_tool_use",
            "web_search_tool_result",
            "text",
            "text",
        ]


async def test_what_a_paused_turn_left_open_is_left_out_once_the_user_moved_on() -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "oslo"}}

    never = asyncio.Event()

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        if "never mind" in moment.text:
            yield "As you like."
        elif moment.steps == 0:
            yield [Say("Searching. "), Think("", echo=search), Stop("pause")]
        else:
            yield "Found "
            await never.wait()

    async with stage(ANTHROPIC, script) as at:
        service = await at.service()
        await service.start(LOCAL, "t", UserMessage("m1", (Text("Look"),)), hold_for=0.0)
        await at.until("t", StepFinished)
        await at.stop("t")
        assert (await at.agent.run("never mind", thread="t")).text == "As you like."
        assert "server_tool_use" not in str(at.fake.requests[-1].body)


async def test_calls_without_an_id_are_told_apart() -> None:
    def script(moment: Moment) -> Step:
        if not moment.results:
            return [Ask("add", {"a": 1, "b": 1}, id=""), Ask("ask_text", {"question": "Who?"}, id="")]
        return f"{[result.output for result in moment.results]}"

    async with stage(PROVIDERS[2], script) as at:
        paused = await at.agent.run("Both", thread="t")
        result = await at.agent.answer("t", [(paused.pending[0].call_id, Success("me"))])
        assert result.text == "[2, 'me']"


@pytest.mark.parametrize("provider", PROVIDERS[:3], ids=lambda provider: provider.name)
async def test_reasoning_goes_back_as_it_came_with_the_calls_it_led_to(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if not moment.results:
            return [Think("Two numbers, so I add."), Ask("add", {"a": 1, "b": 2})]
        return [Think("Done."), Say(f"{moment.results[0].output}")]

    async with stage(provider, script) as at:
        assert (await at.agent.run("Add", thread="t")).text == "3"
        assert (await at.agent.run("Thanks", thread="t")).stop_reason == "end"
        assert "Two numbers, so I add." in str(at.fake.requests[-1].body)


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
async def test_a_chat_server_that_wants_thoughts_back_gets_those_of_calls_as_they_were(
    member: Literal["reasoning_content", "reasoning"], file_store: str
) -> None:
    def script(moment: Moment) -> Step:
        if moment.text == "Add" and not moment.results:
            return [Think("Two numbers, "), Think("so I add."), Say("Well."), Ask("add", {"a": 1, "b": 2})]
        return [Think("Done."), Say("Three.")]

    chat = replace(PROVIDERS[2], fake=lambda script: FakeOpenAI(script, reasoning=member))
    async with stage(chat, script, file_store) as at:
        assert (await at.agent.run("Add", thread="t")).text == "Well.Three."
        await at.restart()
        assert (await at.agent.run("Thanks", thread="t")).stop_reason == "end"
        kept = [each.get(member) for each in at.fake.requests[-1].body["messages"]]
        assert [each for each in kept if each] == ["Two numbers, so I add."]
