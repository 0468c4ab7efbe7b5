"""Rerun from here: a real new run on a copy of the chat; the original stays as it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from farhand import Agent, tool
from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.core.run import Usage
from farhand.models.base import ModelEvent, Prompt, Stop, TextDelta
from farhand.models.scripted import Ask, Moment, ScriptedModel, Step
from tests.faces.conftest import Serve
from tests.faces.inspector.inspector_requests import ROOT, look, newest, titles
from tests.faces.ui_stream.agents import Scene, told
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement

# Any: bodies of a wire
Json = Any
OPEN = Ask("open_url", {"url": "https://example.org"})
DELETE = Ask("delete_file", {"path": "a"})
WEATHER = Ask("weather", {"city": "Oslo"})


def script(moment: Moment) -> Step:
    """Weather and a page, then a file that is deleted, then what came of it."""
    steps: list[Step] = [["Let me see. ", WEATHER, OPEN], [DELETE], told(moment.last)]
    return steps[moment.steps] if moment.text == "go" else f"You said {moment.text}."


async def played(page: Page) -> Json:
    _, opened = (await page.say("go")).calls
    page.output(opened, {"url": "u", "viewKey": "v"})
    delete = (await page.send()).calls[-1]
    page.approve(delete)
    await page.send()
    return await newest(page.http)


async def rerun(page: Page, run: Json, **body: object) -> Json:
    response = await page.http.post(f"{ROOT}/runs/{run['run']['runId']}/rerun", json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def shown(page: Page, begun: Json) -> Json:
    """The new run, once it has ended or waits."""
    for _ in range(500):
        run = await look(page.http, f"/runs/{begun['runId']}")
        if run["run"]["state"] != "running":
            return run
        await asyncio.sleep(0.01)
    raise AssertionError(f"still running: {begun}")


@requirement("inspector:rerun")
async def test_from_the_first_step_the_model_is_asked_again_with_other_words(
    serve: Serve, store: str
) -> None:
    scene = Scene(script)
    page = Page((await serve(scene.agent, store=store)).http)
    run = await played(page)
    assert run["prompt"] == "go"
    begun = await rerun(page, run, step=1, text="something else", repeat=True)
    again = await shown(page, begun)
    assert (again["run"]["state"], again["run"]["title"]) == ("done", "something else")
    chat = (await page.http.get(f"/api/chat/{begun['threadId']}")).json()
    assert chat["messages"][-1]["parts"][-1]["text"] == "You said something else."
    assert chat["title"] == "something else (rerun)"
    original = (await page.http.get(f"/api/chat/{page.id}")).json()
    assert len(original["messages"]) == 2, "the original is as it was"


@requirement("inspector:rerun-asks")
async def test_a_finished_server_tool_is_not_repeated_without_asking(serve: Serve, store: str) -> None:
    scene = Scene(script)
    page = Page((await serve(scene.agent, store=store)).http)
    run = await played(page)
    weather = next(row for row in run["rows"] if row.get("tool") == "weather")
    ran = list(scene.ran)
    asked = await rerun(page, run, step=1, callId=weather["callId"])
    assert asked == {"repeats": ["weather"]}
    assert scene.ran == ran, "nothing has begun"
    begun = await rerun(page, run, step=1, callId=weather["callId"], input={"city": "Bergen"}, repeat=True)
    await shown(page, begun)
    assert scene.ran == [*ran, ("weather", "Bergen")]


@requirement("inspector:rerun-asks")
async def test_a_server_tool_that_is_still_running_is_not_repeated_without_asking(
    serve: Serve, store: str
) -> None:
    step = [Ask("slow", {"subject": "a"}), OPEN]
    scene = Scene(lambda moment: step if moment.steps == 0 else told(moment.last))
    page = Page((await serve(scene.agent, store=store)).http)
    async with page.saying("go") as live:
        await live.until("tool-input-available")
        run = await newest(page.http)
        opened = next(row for row in run["rows"] if row.get("tool") == "open_url")
        for body in ({"step": 1}, {"step": 1, "callId": opened["callId"]}):
            assert await rerun(page, run, **body) == {"repeats": ["slow"]}
    assert scene.ran == [("slow", "a")]
    assert len((await look(page.http, "/runs"))["runs"]) == 1


@requirement("inspector:rerun-asks")
async def test_a_tool_that_was_not_waited_for_or_said_too_much_is_not_repeated_without_asking(
    serve: Serve,
) -> None:
    """Such a call has failed, but not its tool."""
    ran: list[str] = []

    @tool(timeout_sec=1)
    async def charge() -> str:
        """Take money."""
        ran.append("charge")
        await asyncio.Event().wait()
        return "never"

    @tool
    def export() -> str:
        """Send a report."""
        ran.append("export")
        return "x" * 11_000_000

    script: list[Step] = [[Ask("charge", {}), Ask("export", {})], "Done."]
    page = Page((await serve(Agent(ScriptedModel(script), tools=[charge, export]))).http)
    assert (await page.say("go")).text == "Done."
    assert await rerun(page, await newest(page.http), step=1) == {"repeats": ["charge", "export"]}
    assert sorted(ran) == ["charge", "export"]


@requirement("inspector:rerun-asks")
async def test_an_approved_call_that_needs_no_approval_any_more_is_not_repeated_without_asking(
    serve: Serve, store: str
) -> None:
    paid: list[int] = []

    @tool(needs_approval=lambda input: input["amount"] != 50)
    def pay(amount: int) -> str:
        """Pay.

        Args:
            amount: How much.
        """
        paid.append(amount)
        return "paid"

    script: list[Step] = [Ask("pay", {"amount": 150}), "Done.", "Done again."]
    page = Page((await serve(Agent(ScriptedModel(script), tools=[pay]), store=store)).http)
    [call_id] = (await page.say("go")).calls
    page.approve(call_id)
    await page.send()
    run = await newest(page.http)
    assert await rerun(page, run, step=1, callId=call_id, input={"amount": 50}) == {"repeats": ["pay"]}
    assert paid == [150]
    begun = await rerun(page, run, step=1, callId=call_id, input={"amount": 50}, repeat=True)
    await shown(page, begun)
    assert paid == [150, 50]
    begun = await rerun(page, run, step=1, callId=call_id)
    assert (await shown(page, begun))["run"]["state"] == "parked", "a person is asked again"


@requirement("inspector:rerun-asks")
async def test_a_finished_server_tool_is_not_repeated_although_its_call_was_purged(serve: Serve) -> None:
    scene = Scene(script)
    server = await serve(scene.agent)
    page = Page(server.http)
    run = await played(page)
    ran = list(scene.ran)

    async def purged(owner: Owner, run_id: str, step: int | None = None) -> list[Call]:
        return []

    server.service.log.calls_of = purged  # type: ignore[method-assign]
    assert await rerun(page, run, step=1) == {"repeats": ["weather", "delete_file"]}
    assert await rerun(page, run, step=2) == {"repeats": ["delete_file"]}
    assert scene.ran == ran


@requirement("inspector:rerun")
async def test_from_a_call_only_that_call_is_made_again_with_the_edited_input(
    serve: Serve, store: str
) -> None:
    scene = Scene(script)
    page = Page((await serve(scene.agent, store=store)).http)
    run = await played(page)
    ran = list(scene.ran)
    opened = next(row for row in run["rows"] if row.get("tool") == "open_url")
    begun = await rerun(page, run, step=1, callId=opened["callId"], input={"url": "https://other.example"})
    waiting = await shown(page, begun)
    assert waiting["run"]["state"] == "parked"
    assert scene.ran == ran, "the weather keeps its result"
    [call] = (await page.http.get(f"/api/inbox?thread={begun['threadId']}")).json()["calls"]
    assert (call["tool"], call["input"]) == ("open_url", {"url": "https://other.example"})
    ack = {"toolCallId": call["callId"], "status": "success", "output": {"url": "u", "viewKey": "w"}}
    assert (await page.http.post("/api/tools/ack", json=ack)).status_code == 200
    again = await shown(page, begun)
    assert [row.get("tool") for row in again["rows"]] == [None, "weather", "open_url", None, "delete_file"]
    assert again["rows"][-1].get("outcome") is None, "a person is asked again for what asks"


async def test_from_a_later_step_the_results_before_it_are_part_of_the_copy(serve: Serve) -> None:
    scene = Scene(script)
    page = Page((await serve(scene.agent)).http)
    run = await played(page)
    ran = list(scene.ran)
    begun = await rerun(page, run, step=3)
    again = await shown(page, begun)
    assert again["run"]["state"] == "done"
    assert scene.ran == ran
    chat = (await page.http.get(f"/api/chat/{begun['threadId']}")).json()
    tools = [part["type"] for each in chat["messages"] for part in each["parts"] if "toolCallId" in part]
    assert tools == ["tool-weather", "tool-open_url", "tool-delete_file"]


async def test_a_denial_and_an_unknown_tool_are_kept_as_they_were(serve: Serve) -> None:
    scene = Scene(lambda moment: [DELETE, Ask("brew", {}), OPEN] if moment.steps == 0 else told(moment.last))
    page = Page((await serve(scene.agent)).http)
    delete, _, opened = (await page.say("go")).calls
    page.approve(delete, approved=False, reason="keep it")
    page.output(opened, {"url": "u", "viewKey": "v"})
    await page.send()
    run = await newest(page.http)
    begun = await rerun(page, run, step=1, callId=opened)
    await shown(page, begun)
    [call] = (await page.http.get(f"/api/inbox?thread={begun['threadId']}")).json()["calls"]
    ack = {"toolCallId": call["callId"], "status": "failed", "errorText": "no window"}
    await page.http.post("/api/tools/ack", json=ack)
    again = await shown(page, begun)
    assert [row.get("outcome") for row in again["rows"]] == [
        "success",
        "denied",
        "failure",
        "failure",
        "success",
    ]
    assert scene.ran == []


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({}, 400, "step"),
        ({"step": 0}, 400, "step counts from 1"),
        ({"step": 1, "text": " "}, 400, "text is empty"),
        ({"step": 1, "input": {}, "repeat": True}, 400, "input belongs to a call"),
        ({"step": 2, "text": "x", "repeat": True}, 400, "it belongs to the first step"),
        ({"step": 1, "callId": "call_none"}, 404, "no such call in this step"),
        ({"step": 9}, 404, "no such step"),
        ({"step": 1, "odd": 1}, 400, "odd"),
    ],
)
async def test_what_cannot_be_run_again_is_refused(serve: Serve, body: Json, status: int, says: str) -> None:
    page = Page((await serve(Scene(script).agent)).http)
    run = await played(page)
    response = await page.http.post(f"{ROOT}/runs/{run['run']['runId']}/rerun", json=body)
    assert response.status_code == status, response.text
    assert says in response.json()["error"]["message"]


async def test_an_input_that_does_not_fit_the_tool_starts_nothing(serve: Serve) -> None:
    page = Page((await serve(Scene(script).agent)).http)
    run = await played(page)
    opened = next(row for row in run["rows"] if row.get("tool") == "open_url")
    for body, says in (
        ({"callId": opened["callId"], "input": {"url": 3}}, "does not fit 'open_url'"),
        ({"callId": opened["callId"], "text": "x"}, "text belongs to the first step"),
    ):
        response = await page.http.post(f"{ROOT}/runs/{run['run']['runId']}/rerun", json={"step": 1, **body})
        assert response.status_code == 400
        assert says in response.json()["error"]["message"]
    assert len((await look(page.http, "/runs"))["runs"]) == 1


# ------------------------------------------------------------------------------------ tokens, cost and marks


class CountingModel:
    """Says hello, and what it cost."""

    name = "acme:large"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        yield TextDelta("Hello.")
        yield Stop("end", Usage(input_tokens=2_000, output_tokens=100))


@requirement("inspector:cost")
async def test_tokens_and_cost_are_shown_by_step_and_run(serve: Serve) -> None:
    page = Page((await serve(Agent(CountingModel()), prices={"large": (3.0, 15.0)})).http)
    await page.say("hi")
    run = await newest(page.http)
    [step] = run["rows"]
    assert (step["inputTokens"], step["outputTokens"], step["cost"]) == (2_000, 100, 0.0075)
    assert run["usage"] == {"inputTokens": 2_000, "outputTokens": 100, "cost": 0.0075}


async def test_without_a_price_there_are_tokens_and_no_cost(serve: Serve) -> None:
    page = Page((await serve(Agent(CountingModel()))).http)
    await page.say("hi")
    run = await newest(page.http)
    assert run["usage"] == {"inputTokens": 2_000, "outputTokens": 100, "cost": None}
    assert "cost" not in run["rows"][0]


@requirement("inspector:marks")
async def test_reconnects_repeats_and_pauses_are_marked(serve: Serve) -> None:
    scene = Scene(lambda moment: [OPEN] if moment.steps == 0 else "Done.")
    page = Page((await serve(scene.agent)).http, wait="hold")
    async with page.saying("go") as live:
        call_id = (await live.until("tool-input-available"))["toolCallId"]
    async with page.resuming() as live:
        await live.until("tool-input-available")
        ack = {"toolCallId": call_id, "status": "success", "output": {"url": "u", "viewKey": "v"}}
        other = {**ack, "output": {"url": "x", "viewKey": "y"}}
        for body in (ack, ack, other):
            await page.http.post("/api/tools/ack", json=body)
        await live.rest()
    run = await newest(page.http)
    kinds = [(mark["kind"], mark.get("callId")) for mark in run["marks"]]
    assert kinds == [("lost", None), ("resumed", None), ("repeat", call_id), ("conflict", call_id)]
    assert (run["reconnects"], run["repeats"], run["parks"]) == (1, 2, 0)
    life = titles(await look(page.http, f"/calls/{call_id}"))
    assert "Connection lost, call kept" in life
    assert "Reconnected" in life
    assert {"Same answer received again", "A different answer arrived later"} <= set(life)


async def test_a_pause_is_marked_and_is_no_lost_connection(serve: Serve) -> None:
    scene = Scene(lambda moment: [OPEN] if moment.steps == 0 else "Done.")
    page = Page((await serve(scene.agent)).http)
    [opened] = (await page.say("go")).calls
    page.output(opened, {"url": "u", "viewKey": "v"})
    await page.send()
    run = await newest(page.http)
    assert [mark["kind"] for mark in run["marks"]] == ["paused", "continued"]
    assert "Run saved while waiting" in titles(await look(page.http, f"/calls/{opened}"))
