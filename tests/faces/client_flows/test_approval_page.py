"""The page that approves and executes: AI SDK messages over HTTP ("SSE") and over the held socket ("BIDI").

Each flow is driven over both, as its authors' tests were. Where farhand answers otherwise than their servers
did, the name of the test says what it does instead.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import pytest

from farhand.agent.agent import Agent
from farhand.core.outcome import Failure, Success
from farhand.core.thread import ResultsMessage, ToolResultPart
from farhand.models.scripted import Ask, Moment, ScriptedModel, Step
from farhand.tools.decorate import tool
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.page import Page, Turn
from tests.faces.ui_stream.websocket_client import Held, read, wire
from tests.requirement import requirement

# Any: bodies of a wire
Json = Any
BOTH = pytest.mark.parametrize("mode", ["sse", "bidi"])
TEXT = ["start-step", "text-start", "text-delta", "text-end", "finish-step"]
DONE = json.dumps({"success": True})
ran: list[str] = []


@tool(executor="frontend", needs_approval=True)
def take_photo(camera: str) -> dict[str, object]:
    """Take a photo with the camera of the browser.

    Args:
        camera: Which one.

    Returns:
        success, and an error if there is one.
    """
    raise AssertionError(f"never executed here: {camera}")


@tool(executor="frontend")
def read_line(prompt: str) -> str:
    """Read a line of text.

    Args:
        prompt: What to ask for.

    Returns:
        The line.
    """
    raise AssertionError(f"never executed here: {prompt}")


@tool(executor="frontend")
# its return type is not declared
def anything(prompt: str):  # type: ignore[no-untyped-def]
    """Do anything.

    Args:
        prompt: What.

    Returns:
        Anything.
    """
    raise AssertionError(f"never executed here: {prompt}")


@tool(executor="frontend")
def count(prompt: str) -> int:
    """Count something.

    Args:
        prompt: What.

    Returns:
        How many there are.
    """
    raise AssertionError(f"never executed here: {prompt}")


@tool(needs_approval=True)
def run_step(name: str) -> dict[str, object]:
    """Run one step.

    Args:
        name: Which one.
    """
    ran.append(name)
    return {"ran": name}


class Chat(Protocol):
    """What a page does, whichever way its messages go."""

    page: Page

    async def say(self, text: str) -> Turn: ...

    async def send(self) -> Turn: ...


class Sse:
    def __init__(self, page: Page) -> None:
        self.page = page

    async def say(self, text: str) -> Turn:
        return await self.page.say(text)

    async def send(self) -> Turn:
        return await self.page.send()


class Bidi:
    def __init__(self, held: Held) -> None:
        self.held = held
        self.page = held.page

    async def say(self, text: str) -> Turn:
        await self.held.message(text)
        return await self.held.turn()

    async def send(self) -> Turn:
        await self.held.message()
        return await self.held.turn()


@asynccontextmanager
async def chat(served: Served, mode: str) -> AsyncIterator[Chat]:
    page = Page(served.http)
    if mode == "sse":
        yield Sse(page)
        return
    async with wire(served, "/api/chat/live") as socket:
        yield Bidi(Held(socket, page))


def agent_of(*asked: Ask) -> tuple[Agent, ScriptedModel]:
    """Asks for these calls one after the other, then says what came of the last one."""

    def script(moment: Moment) -> Step:
        if moment.steps < len(asked):
            return asked[moment.steps]
        return f"All steps completed! {moment.last[0].output or moment.last[0].error}"

    model = ScriptedModel(script)
    ran.clear()
    return Agent(model, tools=[run_step], frontend_tools=[take_photo, read_line, anything, count]), model


def result_seen(model: ScriptedModel) -> ToolResultPart:
    last = model.prompts[-1].messages[-1]
    assert isinstance(last, ResultsMessage)
    return last.results[-1]


PHOTO = Ask("take_photo", {"camera": "front"})


# ------------------------------------------------------------------------------------------- frontend execute


@requirement("ui-stream:frontend-approval")
@BOTH
async def test_an_approval_and_the_output_that_comes_with_it_are_answered_together(
    serve: Serve, mode: str
) -> None:
    agent, model = agent_of(PHOTO)
    async with chat(await serve(agent), mode) as page:
        first = await page.say("Take a photo")
        # the first exchange is closed, too: their log leaves it open, their table closes it
        assert first.kinds[-4:] == ["tool-input-delta", "tool-approval-request", "finish-step", "finish"]
        [call] = first.calls
        page.page.approve(call)
        page.page.output(call, DONE)
        last = await page.send()
    assert last.kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert last.text == "All steps completed! {'success': True}"
    # the page sent a string; the tool returns an object
    assert result_seen(model).outcome == Success({"success": True})
    assert last.one("tool-output-available")["output"] == {"success": True}


@requirement("ui-stream:frontend-approval")
@pytest.mark.parametrize("way", ["message", "tool_result"])
@pytest.mark.usefixtures("time_for_outputs")
async def test_an_eager_page_sends_its_output_right_behind_the_approval_on_the_open_socket(
    serve: Serve, way: str
) -> None:
    agent, model = agent_of(PHOTO)
    async with wire(await serve(agent), "/api/chat/live") as socket:
        held = Held(socket, Page((await serve(agent)).http))
        await held.message("Take a photo")
        [call] = (await held.turn()).calls
        held.page.approve(call)
        await held.message()
        if way == "message":
            held.page.output(call, DONE)
            await held.message()
        else:
            await held.tell(type="tool_result", toolCallId=call, result=DONE, status="success")
        turn = await held.turn()
    assert turn.kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert result_seen(model).outcome == Success({"success": True})


@requirement("ui-stream:frontend-approval")
@BOTH
@pytest.mark.parametrize("how", ["errorText", "output"])
async def test_a_failure_is_answered_like_a_success(serve: Serve, mode: str, how: str) -> None:
    agent, model = agent_of(PHOTO)
    async with chat(await serve(agent), mode) as page:
        [call] = (await page.say("Take a photo")).calls
        page.page.approve(call)
        if how == "errorText":
            page.page.fail(call, "Camera permission denied")
        else:
            page.page.output(call, json.dumps({"success": False, "error": "Camera permission denied"}))
        last = await page.send()
    assert "Camera permission denied" in last.text
    assert last.finish == "stop"
    failed: object = Failure("Camera permission denied")
    sent: object = Success({"success": False, "error": "Camera permission denied"})
    assert result_seen(model).outcome == (failed if how == "errorText" else sent)


@requirement("ui-stream:frontend-approval")
@BOTH
async def test_a_patient_page_gets_an_end_after_its_approval_and_posts_its_output_then(
    serve: Serve, mode: str
) -> None:
    # their server keeps the exchange open forever, and the stock client never sends while one is open
    agent, model = agent_of(PHOTO)
    async with chat(await serve(agent), mode) as page:
        [call] = (await page.say("Take a photo")).calls
        page.page.approve(call)
        assert (await page.send()).kinds == ["start", "finish"]
        page.page.output(call, DONE)
        last = await page.send()
    assert last.kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert result_seen(model).outcome == Success({"success": True})


@requirement("ui-stream:frontend-approval")
@BOTH
async def test_a_page_that_executes_only_when_it_is_told_to_is_sent_the_call_again(
    serve: Serve, mode: str
) -> None:
    agent, model = agent_of(PHOTO)
    async with chat(await serve(agent), mode) as page:
        [call] = (await page.say("Take a photo")).calls
        page.page.approve(call)
        assert (await page.send()).kinds == ["start", "finish"]
        again = await page.send()
        assert again.kinds == ["start", "tool-input-available", "finish"]
        assert again.one("tool-input-available")["input"] == {"camera": "front"}
        page.page.output(call, DONE)
        assert (await page.send()).finish == "stop"
    assert result_seen(model).outcome == Success({"success": True})


@requirement("ui-stream:frontend-approval")
@BOTH
async def test_an_answer_under_the_calls_id_does_nothing_and_the_question_is_shown_again(
    serve: Serve, mode: str
) -> None:
    # their sample passes the call's id where the approval's belongs
    agent, model = agent_of(PHOTO)
    async with chat(await serve(agent), mode) as page:
        [call] = (await page.say("Take a photo")).calls
        approval = page.page.part(call)["approval"]["id"]
        page.page.part(call).update(state="approval-responded", approval={"id": call, "approved": True})
        page.page.output(call, DONE)
        again = await page.send()
        assert again.one("tool-approval-request") == {
            "type": "tool-approval-request",
            "approvalId": approval,
            "toolCallId": call,
        }
    assert len(model.prompts) == 1


# --------------------------------------------------------------------------------------------- server execute


@requirement("ui-stream:frontend-approval")
@BOTH
async def test_an_approved_server_tool_runs_and_its_output_and_the_text_follow(
    serve: Serve, mode: str
) -> None:
    agent, _ = agent_of(Ask("run_step", {"name": "one"}))
    async with chat(await serve(agent), mode) as page:
        first = await page.say("Go")
        assert first.kinds[-4:] == ["tool-input-available", "tool-approval-request", "finish-step", "finish"]
        page.page.approve(first.calls[0])
        last = await page.send()
    # an output is a tool-output-available: the stock client knows no tool-result
    assert last.kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert ran == ["one"]


@requirement("ui-stream:frontend-approval")
@BOTH
async def test_approvals_in_sequence_take_an_exchange_each_and_outputs_come_when_they_are_known(
    serve: Serve, mode: str
) -> None:
    # their server keeps every output for the last exchange
    agent, _ = agent_of(Ask("run_step", {"name": "one"}), Ask("run_step", {"name": "two"}))
    async with chat(await serve(agent), mode) as page:
        [one] = (await page.say("Go")).calls
        page.page.approve(one)
        second = await page.send()
        assert second.kinds[:2] == ["start", "tool-output-available"]
        assert second.kinds[-3:] == ["tool-approval-request", "finish-step", "finish"]
        assert second.text == ""
        page.page.approve(second.calls[-1])
        last = await page.send()
    assert last.kinds == ["start", "tool-output-available", *TEXT, "finish"]
    assert last.text.startswith("All steps completed!")
    assert ran == ["one", "two"]


@requirement("ui-stream:frontend-approval")
@pytest.mark.usefixtures("time_for_outputs")
async def test_one_exchange_at_a_time_and_a_ping_is_answered_meanwhile(serve: Serve) -> None:
    agent, _ = agent_of(PHOTO)
    served = await serve(agent)
    async with wire(served, "/api/chat/live") as socket:
        held = Held(socket, Page(served.http))
        await held.message("Take a photo")
        [call] = (await held.turn()).calls
        held.page.approve(call)
        await held.message()
        # the approval is held open for a moment: no new words of the user now
        await held.tell(type="message", id=held.page.id, messages=[{"id": "m", "role": "user", "parts": []}])
        assert "A response is still open" in await read(socket)
        assert (await held.pong())["type"] == "pong"
        await held.tell(type="interrupt", reason="the user left")
        stopped = await held.turn()
        assert stopped.finish == "other"


# -------------------------------------------------------------------------------------------- outputs in JSON


@pytest.mark.parametrize("way", ["sse", "message", "tool_result"])
@pytest.mark.parametrize(
    ("asked", "sent", "read_as"),
    [
        (PHOTO, DONE, {"success": True}),
        (PHOTO, "[1, 2.0]", [1, 2.0]),
        (PHOTO, "no JSON", "no JSON"),
        (PHOTO, '{"twice": 1, "twice": 2}', '{"twice": 1, "twice": 2}'),
        (PHOTO, {"success": True}, {"success": True}),
        (Ask("read_line", {"prompt": "?"}), '{"success": true}', '{"success": true}'),
        (Ask("anything", {"prompt": "?"}), "42", "42"),
        (Ask("count", {"prompt": "?"}), "42", 42),
    ],
    ids=[
        "object",
        "list",
        "not JSON",
        "bad JSON",
        "no string",
        "returns text",
        "undeclared",
        "returns a number",
    ],
)
@pytest.mark.usefixtures("time_for_outputs")
async def test_a_string_that_holds_json_is_read_for_a_tool_that_does_not_return_text(
    serve: Serve, way: str, asked: Ask, sent: Json, read_as: Json
) -> None:
    agent, model = agent_of(asked)
    async with chat(await serve(agent), "sse" if way == "sse" else "bidi") as page:
        [call] = (await page.say("Go")).calls
        if asked is PHOTO:
            page.page.approve(call)
        if way == "tool_result":
            assert isinstance(page, Bidi)
            if asked is PHOTO:
                await page.held.message()
            await page.held.tell(type="tool_result", toolCallId=call, result=sent)
            turn = await page.held.turn()
        else:
            page.page.output(call, sent)
            turn = await page.send()
        assert turn.one("tool-output-available")["output"] == read_as
        # the same post again brings nothing new
        assert (await page.send()).status == 200
    assert result_seen(model).outcome == Success(read_as)
    assert len(model.prompts) == 2
