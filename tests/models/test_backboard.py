"""What is special about Backboard: it also stores the conversation, so both positions must agree."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from farhand import Agent, Success
from farhand.agent.start_run import Asker, ThreadPlace, answer_again
from farhand.core.principal import LOCAL
from farhand.errors import BadSetting
from farhand.models.backboard import Backboard
from farhand.models.scripted import Ask, Moment, Say, Step, Think
from tests.fakes.backboard import FakeBackboard
from tests.models.stage import PROVIDERS, add, ask_text, stage

BACKBOARD = PROVIDERS[3]


def asks_once(moment: Moment) -> Step:
    if moment.text.endswith("Ask me") and not moment.results:
        return Ask("ask_text", {"question": "Who?"})
    return f"Heard {[result.output for result in moment.results]}."


def paths(fake: FakeBackboard, method: str = "POST") -> list[str]:
    return [request.path.rpartition("/")[2] for request in fake.requests if request.method == method]


async def test_the_assistant_is_made_once_and_found_again_after_a_restart(file_store: str) -> None:
    async with stage(BACKBOARD, asks_once, file_store) as at:
        assert isinstance(at.fake, FakeBackboard)
        await at.agent.run("Hello", thread="t")
        await at.agent.run("Hello", thread="u")
        await at.restart()
        await at.agent.run("Hello", thread="t")
        (assistant,) = at.fake.assistants.values()
        assert assistant["system_prompt"] == "Be brief."
        assert [tool["function"]["name"] for tool in assistant["tools"]][:2] == ["add", "delete_file"]
        assert paths(at.fake).count("assistants") == 1
        assert len(at.fake.threads) == 2


async def test_tools_that_change_are_in_step_and_an_assistant_is_never_changed() -> None:
    async with FakeBackboard(lambda moment: f"I have {list(moment.tools)}.") as fake:
        model = Backboard("openai/gpt-4o", api_key="key", base_url=fake.url)
        for tools, names in (([add], ["add"]), ([add, ask_text], ["add", "ask_text"]), ([add], ["add"])):
            async with Agent(model, tools=tools) as agent:
                result = await agent.run("What do you have?", thread="t")
                assert result.text == f"I have {names}."
        assert {request.method for request in fake.requests} <= {"GET", "POST"}
        assert len(fake.assistants) == 2
        assert fake.refused == []


async def test_two_agents_with_one_key_and_one_name_keep_their_tools_and_instructions() -> None:
    def script(moment: Moment) -> Step:
        return f"{moment.instructions} {list(moment.tools)}"

    async with FakeBackboard(script) as fake, AsyncExitStack() as agents:
        for number, (tool, name) in enumerate([(add, "add"), (ask_text, "ask_text")] * 2):
            model = Backboard("openai/gpt-4o", api_key="key", base_url=fake.url)
            agent = await agents.enter_async_context(Agent(model, tools=[tool], instructions=f"You {name}."))
            for _ in range(2):
                said = await agent.run("Who are you?", thread=f"t{number}")
                assert said.text == f"You {name}. ['{name}']"
        assert len(fake.assistants) == 2
        assert len(fake.threads) == 4


async def test_a_thread_whose_tools_changed_continues_with_an_assistant_that_has_them(
    file_store: str,
) -> None:
    async with FakeBackboard(lambda moment: f"I have {list(moment.tools)}.") as fake:
        for tools, names in (([add], ["add"]), ([add, ask_text], ["add", "ask_text"])):
            model = Backboard("openai/gpt-4o", api_key="key", base_url=fake.url)
            async with Agent(model, tools=tools, store=file_store) as agent:
                assert (await agent.run("What do you have?", thread="t")).text == f"I have {names}."
        assert fake.requests[-1].body["content"].startswith("Earlier in this conversation:")
        assert fake.refused == []


async def test_each_round_is_answered_in_one_submit_with_texts_in_the_order_of_its_calls() -> None:
    def script(moment: Moment) -> Step:
        done = len(moment.results)
        if done < 4:
            return [Ask("add", {"a": done, "b": 0}, id="x"), Ask("add", {"a": done, "b": 1}, id="y")]
        return f"{[result.output for result in moment.results]}"

    async with stage(BACKBOARD, script) as at:
        assert (await at.agent.run("Add", thread="t")).text == "[0, 1, 2, 3]"
        submits = [request for request in at.fake.requests if request.path.endswith("submit-tool-outputs")]
        assert [request.body["tool_outputs"] for request in submits] == [
            [{"tool_call_id": "x", "output": "0"}, {"tool_call_id": "y", "output": "1"}],
            [{"tool_call_id": "x", "output": "2"}, {"tool_call_id": "y", "output": "3"}],
        ]
        assert len({request.path for request in submits}) == 2, "each round has a run of its own"


async def test_malformed_arguments_become_an_error_output() -> None:
    def script(moment: Moment) -> Step:
        return "Sorry." if moment.results else Ask("add", '{"a": 1,')

    async with stage(BACKBOARD, script) as at:
        assert (await at.agent.run("Add", thread="t")).text == "Sorry."
        (output,) = at.fake.requests[-1].body["tool_outputs"]
        assert "The input is not valid JSON" in output["output"]


@pytest.mark.parametrize("cumulative", [False, True])
async def test_the_text_is_the_same_whether_a_server_sends_deltas_or_all_of_it(cumulative: bool) -> None:
    said = ["ha", "ha", "haha", " ", "ha!"]
    async with FakeBackboard([[Think("Funny."), Say(said)]], cumulative=cumulative) as fake:
        model = Backboard("default", api_key="key", base_url=fake.url)
        async with Agent(model) as agent:
            assert (await agent.run("Laugh", thread="t")).text == "".join(said)


async def test_a_run_that_ends_at_its_last_step_is_cancelled_once() -> None:
    def script(moment: Moment) -> Step:
        if moment.text.endswith("Enough"):
            return "Back again."
        return Ask("add", {"a": len(moment.results), "b": 0})

    async with FakeBackboard(script) as fake:
        model = Backboard("openai/gpt-4o", api_key="key", base_url=fake.url)
        async with Agent(model, tools=[add], max_steps=2) as agent:
            assert (await agent.run("Go on", thread="t")).stop_reason == "failed"
            await fake.saw("/cancel")
            assert (await agent.run("Enough", thread="t")).text == "Back again."
        assert paths(fake).count("cancel") == 1
        assert len(fake.threads) == 1
        assert fake.refused == []


async def test_a_new_message_after_an_unanswered_round_cancels_it_and_tells_what_came_of_it() -> None:
    async with stage(BACKBOARD, asks_once) as at:
        assert isinstance(at.fake, FakeBackboard)
        await at.agent.run("Ask me", thread="t")
        assert (await at.agent.run("Never mind", thread="t")).text == "Heard []."
        assert paths(at.fake)[-2:] == ["cancel", "messages"]
        assert at.fake.requests[-1].body["content"] == (
            "Results of the calls before this message:\n"
            "ask_text: This call was cancelled and has no result: the user moved on.\n\n"
            "Never mind"
        )
        assert len(at.fake.threads) == 1


async def test_a_thread_that_is_gone_is_begun_again_with_all_that_was_said(file_store: str) -> None:
    async with stage(BACKBOARD, asks_once, file_store) as at:
        assert isinstance(at.fake, FakeBackboard)
        paused = await at.agent.run("Ask me", thread="t")
        at.fake.threads.clear()
        await at.restart()
        result = await at.agent.answer("t", [(paused.pending[0].call_id, Success("Ada"))])
        assert result.text == "Heard []."
        assert at.fake.requests[-1].body["content"] == (
            "Earlier in this conversation:\n"
            "User: Ask me\n"
            'You called ask_text with {"question":"Who?"}.\n'
            "ask_text: Ada\n\n"
            "Continue from there."
        )
        at.fake.requests = [request for request in at.fake.requests if request.status == 200]


async def test_another_answer_to_a_message_is_asked_for_in_a_thread_that_did_not_hear_the_first() -> None:
    async with stage(BACKBOARD, asks_once) as at:
        assert isinstance(at.fake, FakeBackboard)
        await at.agent.run("Hello", thread="t")
        await at.agent.run("How are you?", thread="t")
        service = await at.service()
        place = ThreadPlace(LOCAL, "t", Asker())
        await answer_again(service.context, place, instead_of=None, hold_for=0.0)
        assert await at.text_at_end("t") == "Heard []."
        assert len(at.fake.threads) == 2
        assert at.fake.requests[-1].body["content"] == (
            "Earlier in this conversation:\nUser: Hello\nYou: Heard [].\n\nHow are you?"
        )


async def test_the_assistant_that_somebody_deleted_is_made_again() -> None:
    async with stage(BACKBOARD, asks_once) as at:
        assert isinstance(at.fake, FakeBackboard)
        await at.agent.run("Hello", thread="t")
        at.fake.assistants.clear()
        at.fake.threads.clear()
        assert (await at.agent.run("Hello again", thread="t")).text == "Heard []."
        assert len(at.fake.assistants) == 1
        at.fake.requests = [request for request in at.fake.requests if request.status == 200]


async def test_provider_and_model_are_told_with_every_message() -> None:
    async with FakeBackboard(["a", "b"]) as fake:
        for name in ("openrouter/meta/llama-3", "default"):
            model = Backboard(name, api_key="key", base_url=fake.url, options={"memory": "off"})
            async with Agent(model) as agent:
                await agent.run("Hello", thread="t")
        first, second = (request.body for request in fake.requests if request.path == "/threads/messages")
        assert (first["llm_provider"], first["model_name"]) == ("openrouter", "meta/llama-3")
        assert "model_name" not in second
        assert first["memory"] == "off"


@pytest.mark.parametrize("name", ["gpt-4o", "openai/", "/gpt-4o"])
def test_a_model_without_its_provider_is_a_bad_setting(name: str) -> None:
    with pytest.raises(BadSetting, match="Include the provider, as in openai/gpt-4o"):
        Backboard(name, api_key="key")
