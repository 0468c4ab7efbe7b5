"""The events of a model's stream: names, deltas, usage, and an early end."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from farhand.core.outcome import Success
from farhand.core.thread import (
    AssistantMessage,
    Message,
    Reasoning,
    ResultsMessage,
    Text,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
)
from farhand.core.tool import Tool
from farhand.errors import ModelFault
from farhand.models.anthropic import Anthropic
from farhand.models.base import (
    CallDone,
    CallStart,
    ClosableModel,
    InputDelta,
    Prompt,
    ReasoningDelta,
    ReasoningDone,
    Stop,
    TextDelta,
)
from farhand.models.openai import OpenAI, OpenAIChat
from farhand.models.scripted import Ask, Moment, Say, Step, Think
from tests.fakes.anthropic import FakeAnthropic
from tests.fakes.openai import FakeOpenAI
from tests.models.stage import Provider, said

pytestmark = pytest.mark.usefixtures("http_client")
HELLO = UserMessage("m1", (Text("hello"),))


async def test_text_reasoning_and_inputs_come_piece_by_piece_and_the_stop_comes_last(
    provider: Provider,
) -> None:
    def script(moment: Moment) -> Step:
        return [Think(["hm", " so"]), Say(["Let ", "me ", "see."]), Ask("look", {"at": "the sea"})]

    async with provider.fake(script) as fake:
        tool = Tool(name="look", description="", input_schema={})
        events = await said(provider.model(fake), Prompt([HELLO], [tool]))
        told = [event for event in events if not isinstance(event, ReasoningDone)]
        assert "".join(event.text for event in told if isinstance(event, ReasoningDelta)) == "hm so"
        assert "".join(event.text for event in told if isinstance(event, TextDelta)) == "Let me see."
        assert "".join(event.text for event in told if isinstance(event, InputDelta)) == '{"at": "the sea"}'
        (done,) = (event for event in told if isinstance(event, CallDone))
        assert done.input == '{"at": "the sea"}'
        assert isinstance(events[-1], Stop)
        assert events[-1].reason == "calls"
        assert [type(event) for event in told].count(Stop) == 1


async def test_usage_is_told_with_the_stop(provider: Provider) -> None:
    async with provider.fake(lambda moment: "Hi.") as fake:
        stop = (await said(provider.model(fake), Prompt([HELLO])))[-1]
        assert isinstance(stop, Stop)
        assert stop.usage.input_tokens > 0
        assert stop.usage.output_tokens > 0


async def test_a_name_that_the_provider_refuses_goes_out_as_an_alias_and_comes_back_as_itself(
    provider: Provider,
) -> None:
    name = "client_desk.top:7_" + "open file " * 12
    offered = Tool(name=name, description="Open.", input_schema={})

    def script(moment: Moment) -> Step:
        begins = moment.text == "hello" and not moment.results
        return Ask(moment.tools[0], {}) if begins else "Done."

    async with provider.fake(script) as fake:
        events = await said(provider.model(fake), Prompt([HELLO], [offered]))
        (start,) = (event for event in events if isinstance(event, CallStart))
        assert start.tool == name
        asked = ToolCallPart("call_1", name, {}, start.model_call_id)
        kept = tuple(Reasoning("", event.echo) for event in events if isinstance(event, ReasoningDone))
        history: list[Message] = [
            HELLO,
            AssistantMessage("run_1", 1, (*kept, asked)),
            ResultsMessage(
                "run_1", 1, (ToolResultPart("call_1", name, {}, Success("ok"), start.model_call_id),)
            ),
        ]
        assert isinstance((await said(provider.model(fake), Prompt(history, [offered])))[-1], Stop)
        # the tool may be gone by the time the history is told again
        gone = await said(provider.model(fake), Prompt([*history, UserMessage("m2", (Text("and?"),))]))
        assert isinstance(gone[-1], Stop)
        assert fake.refused == []


async def test_options_and_tools_of_the_provider_itself_reach_the_request() -> None:
    look = Tool(name="look", description="", input_schema={})
    search = {"type": "web_search_20260318", "name": "web_search"}
    async with FakeAnthropic(["Hi."]) as claude:
        model = Anthropic(
            "claude-sonnet-5",
            api_key="key",
            base_url=claude.url,
            max_tokens=99,
            options={"stop_sequences": ["."], "tools": [search]},
        )
        await said(model, Prompt([HELLO], [look]))
        body = claude.requests[0].body
        assert (body["max_tokens"], body["stop_sequences"]) == (99, ["."])
        assert [tool["name"] for tool in body["tools"]] == ["look", "web_search"]
    async with FakeOpenAI(["Hi.", "Hi."]) as gpt:
        options = {"reasoning": {"effort": "low"}, "tools": [{"type": "web_search"}]}
        await said(OpenAI("gpt", api_key="key", base_url=gpt.url, options=options), Prompt([HELLO], [look]))
        body = gpt.requests[0].body
        assert (body["store"], body["reasoning"]) == (False, {"effort": "low"})
        assert [tool["type"] for tool in body["tools"]] == ["function", "web_search"]
        chat = OpenAIChat("llama3", base_url=gpt.url, options={"temperature": 0.5})
        await said(chat, Prompt([HELLO], [look]))
        assert gpt.requests[1].body["temperature"] == 0.5


async def test_a_stream_that_is_left_early_leaves_no_connection_behind(provider: Provider) -> None:
    left: list[str] = []

    async def endless(moment: Moment) -> AsyncGenerator[Step, None]:
        try:
            while True:
                yield "word "
        finally:
            left.append("left")

    async with provider.fake(endless) as fake:
        model = provider.model(fake)
        events = model.stream(Prompt([HELLO]))
        async for event in events:
            if isinstance(event, TextDelta):
                break
        await events.aclose()
        assert isinstance(model, ClosableModel)
        await model.close()
    assert left == ["left"]


CHUNK = (
    b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "[DONE] is"}, "finish_reason": %s}]}'
)


@pytest.mark.parametrize("reason", [b"null", b'""'], ids=["no reason", "an empty one"])
async def test_a_chat_that_gives_no_reason_is_complete_with_its_last_word_alone(reason: bytes) -> None:
    chunk = CHUNK % reason + b"\n\n"
    async with FakeOpenAI(["never said"]) as fake:
        for last in (b"data: [DONE]\n\n", b"data:[DONE]\r\n\r\n"):
            fake.reply(chunk + last, media_type="text/event-stream")
            events = await said(OpenAIChat("llama3", base_url=fake.url), Prompt([HELLO]))
            assert events == [TextDelta("[DONE] is"), Stop("end")]
        fake.reply(chunk, media_type="text/event-stream")
        with pytest.raises(ModelFault, match="was cut off"):
            await said(OpenAIChat("llama3", base_url=fake.url), Prompt([HELLO]))
