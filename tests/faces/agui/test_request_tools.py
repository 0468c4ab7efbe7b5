"""Tools that a client describes in its request and executes itself."""

from __future__ import annotations

import logging

import pytest

from farhand.core.principal import LOCAL
from farhand.models.scripted import Ask, Moment
from tests.faces.agui.page import Json, Page, yes
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once
from tests.requirement import requirement

CHART: Json = {
    "name": "show_chart",
    "description": "Show a chart.",
    "parameters": {"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]},
}
ASK = Ask("show_chart", {"of": "prices"})


def _tool(name: str) -> Json:
    return {"name": name, "description": "", "parameters": {"type": "object", "properties": {}}}


def _names(moment: Moment) -> str:
    return " ".join(sorted(moment.tools))


@requirement("agui:request-tools")
async def test_a_request_tool_is_offered_and_its_call_is_the_clients(serve: Serve, store: str) -> None:
    scene = Scene(once(ASK))
    page = Page((await serve(scene.agent, store=store)).http, tools=[CHART])
    run = await page.send("go")
    [call_id] = run.calls
    assert run.outcome["pendingToolCallIds"] == [call_id]
    page.finds(call_id, '{"shown": true}')
    await page.run()
    assert scene.seen[0].output == {"shown": True}


@requirement("agui:request-tools")
async def test_an_input_that_does_not_fit_its_schema_goes_back_to_the_model(serve: Serve) -> None:
    page = Page((await serve(Scene(once(Ask("show_chart", {}))).agent)).http, tools=[CHART])
    run = await page.send("go")
    assert "of" in next(iter(run.results.values()))


async def test_the_newest_request_says_which_tools_there_are(serve: Serve, store: str) -> None:
    scene = Scene([[ASK], _names, _names])
    page = Page((await serve(scene.agent, store=store)).http, tools=[CHART])
    [call_id] = (await page.send("go")).calls
    page.finds(call_id, "{}")
    page.tools = [_tool("play_sound")]
    names = (await page.run()).text.split()
    assert ("play_sound" in names, "show_chart" in names) == (True, False)
    page.tools = []
    assert "play_sound" not in (await page.send("and now?")).text.split()


@requirement("agui:refused")
async def test_a_post_that_is_refused_brings_nothing(serve: Serve, store: str) -> None:
    server = await serve(Scene(once(Ask("delete_file", {"path": "a.txt"}))).agent, store=store)
    page = Page(server.http, tools=[CHART])
    [asked] = (await page.send("go")).interrupts
    before = await server.service.last_run(LOCAL, "t1")
    page.tools = [_tool("play_sound")]
    assert (await page.resume(yes(asked, editedArgs={"path": 7}))).code == "invalid"
    long = {"approved": True, "reason": "x" * 5_000}
    too_long = {"interruptId": asked["id"], "status": "resolved", "payload": long}
    assert (await page.resume(too_long)).status == 413
    after = await server.service.last_run(LOCAL, "t1")
    assert (after.request_tools, after.alias) == (before.request_tools, before.alias)
    await page.resume(yes(asked))
    now = await server.service.last_run(LOCAL, "t1")
    assert (now.request_tools == before.request_tools, now.alias) == (False, page.run_id)


@requirement("hands:request-tools")
async def test_a_parked_run_offers_the_same_tools_after_a_restart(serve: Serve, file_store: str) -> None:
    server = await serve(Scene(once(ASK)).agent, store=file_store)
    page = Page(server.http, tools=[CHART])
    [call_id] = (await page.send("go")).calls
    await server.stop()
    scene = Scene(_names)
    server = await serve(scene.agent, store=file_store)
    sent = {"toolCallId": call_id, "status": "success", "output": {"shown": True}}
    assert (await server.http.post("/api/tools/ack", json=sent)).json() == {"ok": True}
    page.http = server.http
    assert "show_chart" in (await page.connect(tools=[CHART])).text.split()


@requirement("agui:request-tools")
async def test_a_request_tool_cannot_take_the_name_of_a_server_tool(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(once(Ask("weather", {"city": "Oslo"})))
    page = Page((await serve(scene.agent)).http, tools=[_tool("weather")])
    with caplog.at_level(logging.WARNING, "farhand.tools"):
        run = await page.send("go")
    assert scene.ran == [("weather", "Oslo")]
    assert run.outcome == {"type": "success"}
    assert len([each for each in caplog.records if "ignoring request tool" in each.message]) == 1


async def test_the_name_of_a_declared_frontend_tool_means_that_tool(serve: Serve) -> None:
    scene = Scene(once(Ask("open_url", {"url": 7})))
    page = Page((await serve(scene.agent)).http, tools=[_tool("open_url")])
    # ours counts: the input is checked against our schema
    assert "url" in next(iter((await page.send("go")).results.values()))


def _heavy() -> Json:
    """Doubled at every level: a million nodes when every reference is followed."""
    levels = {f"l{no}": {"allOf": [{"$ref": f"#/$defs/l{no + 1}"}] * 2} for no in range(20)}
    return {"type": "object", "$defs": {**levels, "l20": {}}, "properties": {"x": {"$ref": "#/$defs/l0"}}}


@pytest.mark.parametrize(
    "tools",
    [
        [{**CHART, "parameters": _heavy()}],
        [_tool(f"tool_{no}") for no in range(65)],
        [CHART, CHART],
        [_tool("no spaces, please")],
        [{**CHART, "parameters": {"type": "object", "properties": {"x": {"$ref": "http://a.example/"}}}}],
        [{**CHART, "parameters": "none"}],
    ],
    ids=["heavy", "65", "twice", "name", "remote", "text"],
)
@requirement("agui:request-tools")
async def test_what_cannot_be_a_tool_is_refused_before_the_stream(serve: Serve, tools: list[Json]) -> None:
    scene = Scene(["Hello."])
    page = Page((await serve(scene.agent)).http, tools=tools)
    run = await page.send("go")
    assert (run.status, run.body["error"]) == (400, "invalid")
    assert scene.model.prompts == []


async def test_sixty_four_tools_and_one_without_parameters_are_fine(serve: Serve) -> None:
    tools = [*(_tool(f"tool_{no}") for no in range(63)), {"name": "plain", "description": "."}]
    page = Page((await serve(Scene([_names]).agent)).http, tools=tools)
    names = (await page.send("go")).text.split()
    assert {"plain", "tool_0", "tool_62"} <= set(names)
