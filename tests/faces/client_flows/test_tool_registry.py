"""An application with its own registry of tools against Backboard, and the same chat through farhand."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from farhand.agent.agent import Agent
from farhand.models.backboard import Backboard
from farhand.models.scripted import Ask, Moment, Step
from farhand.models.scripted.model import Script
from farhand.tools.decorate import tool
from tests.faces.client_flows.tool_registry import ChatRoute, Refused, Registered, ToolRegistry
from tests.faces.conftest import Serve
from tests.faces.ui_stream.page import Page
from tests.fakes.backboard import FakeBackboard

# Any: bodies of a wire
Json = Any
WHERE = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}
OSLO = Ask("get_current_weather", {"location": "Oslo"}, id="c1")


def sunny(arguments: Json) -> Json:
    return {
        "location": arguments["location"],
        "condition": "sunny",
        "temperature": random.randint(65, 75),
        "unit": "F",
    }


def weather_registry() -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(Registered("get_current_weather", "The weather somewhere.", WHERE, sunny))
    return registry


@asynccontextmanager
async def application(script: Script) -> AsyncIterator[tuple[ChatRoute, FakeBackboard]]:
    async with FakeBackboard(script) as fake:
        route = ChatRoute(fake.url, weather_registry())
        async with route.http:
            await route.open()
            yield route, fake


def one_round(*asked: Ask) -> Script:
    def script(moment: Moment) -> Step:
        if not moment.results:
            return ["Let me look. ", *asked]
        return f"Heard {[each.output for each in moment.results]}."

    return script


async def test_a_tool_call_is_executed_submitted_and_the_stream_continues() -> None:
    async with application(one_round(OSLO)) as (route, fake):
        text = await route.chat("What is the weather in Oslo?")
    assert text.startswith("Let me look. Heard [{'location': 'Oslo', 'condition': 'sunny'")
    [[output]] = route.rounds
    assert output["tool_call_id"] == "c1"
    assert isinstance(output["output"], str)
    posted = next(each for each in fake.requests if each.path.endswith("/messages"))
    assert posted.path == f"/threads/{route.thread}/messages"
    assert posted.body["content"] == "What is the weather in Oslo?"
    assert posted.body["stream"] == "true"
    assert fake.refused == []


async def test_several_calls_go_back_in_one_submit_and_rounds_may_follow_each_other() -> None:
    def script(moment: Moment) -> Step:
        if len(moment.results) == 0:
            return [OSLO, Ask("get_current_weather", {"location": "Bergen"}, id="c2")]
        if len(moment.results) == 2:
            return Ask("get_current_weather", {"location": "Rome"}, id="c3")
        return "Sunny everywhere."

    async with application(script) as (route, _):
        assert await route.chat("And elsewhere?") == "Sunny everywhere."
    assert [[each["tool_call_id"] for each in outputs] for outputs in route.rounds] == [["c1", "c2"], ["c3"]]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (Ask("get_current_weather", {}, id="c1"), "'location'"),
        (Ask("book_flight", {"to": "Oslo"}, id="c1"), "Unknown tool: book_flight"),
    ],
    ids=["a tool that fails", "a tool that is not registered"],
)
async def test_an_error_is_the_output_of_its_call_and_the_stream_continues(asked: Ask, error: str) -> None:
    async with application(one_round(asked)) as (route, _):
        text = await route.chat("Try it")
    assert error in text
    assert '"error"' in route.rounds[0][0]["output"]


async def test_outputs_for_a_run_that_asked_for_no_call_are_refused() -> None:
    async with application(lambda moment: "Hello.") as (route, _):
        events = [event async for event in route.add_message("Hi")]
        assert events[-1]["type"] == "run_ended"
        for outputs in ([], [{"tool_call_id": "c1", "output": "{}"}]):
            with pytest.raises(Refused, match="is not waiting for tool outputs") as refused:
                [event async for event in route.submit(events[0]["run_id"], outputs)]
            assert refused.value.status == 400
        # and no output at all for a run that did ask
    async with application(one_round(OSLO)) as (route, _):
        events = [event async for event in route.add_message("Hi")]
        with pytest.raises(Refused, match="Missing tool outputs for: c1"):
            [event async for event in route.submit(events[-1]["run_id"], [])]


async def test_without_a_stream_the_same_round_comes_as_one_answer() -> None:
    async with application(one_round(OSLO)) as (route, _):
        form = [("stream", (None, b"false")), ("content", (None, "Wétter?".encode()))]
        first = (await route.http.post(f"/threads/{route.thread}/messages", files=form)).json()
        assert (first["status"], first["content"]) == ("REQUIRES_ACTION", "Let me look. ")
        assert first["tool_calls"][0]["function"]["name"] == "get_current_weather"
        path = f"/threads/{route.thread}/runs/{first['run_id']}/submit-tool-outputs"
        outputs = {"tool_outputs": [{"tool_call_id": "c1", "output": "7"}]}
        last = (await route.http.post(path, json=outputs)).json()
        assert (last["status"], last["content"], last["tool_calls"]) == ("COMPLETED", "Heard [7].", None)
        thread = (await route.http.get(f"/threads/{route.thread}")).json()
        assert thread["messages"][0]["content"] == "Wétter?"


async def test_the_same_conversation_through_farhand_needs_no_registry_and_no_loop(serve: Serve) -> None:
    @tool
    def get_current_weather(location: str) -> dict[str, object]:
        """The weather somewhere.

        Args:
            location: Where.
        """
        return {"location": location, "condition": "sunny"}

    async with FakeBackboard(one_round(OSLO)) as fake:
        model = Backboard("openai/gpt-4o", api_key="key", base_url=fake.url)
        served = await serve(Agent(model, tools=[get_current_weather]))
        page = Page(served.http)
        turn = await page.say("What is the weather in Oslo?")
        assert turn.one("tool-output-available")["output"] == {"location": "Oslo", "condition": "sunny"}
        assert turn.text.endswith("Heard [{'condition': 'sunny', 'location': 'Oslo'}].")
        [submitted] = [each for each in fake.requests if each.path.endswith("/submit-tool-outputs")]
        assert [each["tool_call_id"] for each in submitted.body["tool_outputs"]] == ["c1"]
        assert fake.refused == []
        history = (await served.http.get(f"/agent/{page.id}/conversations")).json()
        kinds = [
            block["type"] for said in history["conversations"][0]["messages"] for block in said["content"]
        ]
        # where the conversation stands at Backboard is kept beside the words, and is nothing to show
        assert kinds == ["text", "text", "tool_use", "tool_result", "text"]


async def test_a_round_that_names_no_call_fails_the_run_and_the_chat_continues(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    async with FakeBackboard(["Never heard.", "Better."]) as fake:
        fake.insert(b'data: {"type": "tool_submit_required", "run_id": "r", "tool_calls": []}\n\n', after=0)
        model = Backboard("openai/gpt-4o", api_key="key", base_url=fake.url)
        served = await serve(Agent(model))
        page = Page(served.http)
        turn = await page.say("Hi")
        assert (
            turn.one("error")["errorText"]
            == "The model failed. Try again later. The server's log has the details."
        )
        assert "named no call" in caplog.text
        page.messages = []
        assert (await page.say("Again")).text == "Better."
