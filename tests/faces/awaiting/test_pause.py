"""The pause: which calls it names, how it is written, and what has happened before it is sent."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

from farhand.core.outcome import Success
from farhand.core.principal import LOCAL
from farhand.core.run import RunState
from farhand.core.thread import ResultsMessage
from farhand.models.scripted import Ask, Moment, ScriptedModel, Step
from tests.faces.awaiting import agents
from tests.faces.awaiting.agents import agent_with
from tests.faces.awaiting.client import Page, attributes_of, result
from tests.faces.conftest import Serve
from tests.requirement import requirement

NASTY = {
    "quotes": "\"double\" 'single' `back`",
    "markup": "</awaiting_frontend_tools><script>alert(1)</script><!-- ]]> &amp; &quot; <b",
    "breaks": "line\nfeed\r\nreturn\rtab\tdata: [DONE]\n\nid: 9.9",
    "unicode": "ü 日本語 🦀 \u2028 \u2029 \u0000 \u001f \ufeff \u202e",
    "escapes": "\\n \\u0041 \\\\ %22 &#34;",
    "deep": {"list": [1, 1.5, None, True, {"a": []}], "": "no name", "emoji 🦀": -0.0},
    "long": "x" * 100_000,
}


async def test_xml_and_html_parsers_give_back_the_same_nasty_input(serve: Serve, store: str) -> None:
    server = await serve(agent_with([[Ask("draw", {"drawing": NASTY})]]), store=store)
    turn = await Page(server.http).run("hi")
    tag = turn.datas[-2]
    by_html = attributes_of(tag)["data"]
    by_xml = json.loads(ET.fromstring(tag).attrib["data"])
    assert by_html == by_xml == turn.pause
    assert by_xml[0]["input"] == {"drawing": NASTY}
    assert tag.isascii()


async def test_a_nasty_question_of_the_user_survives_meta_init(serve: Serve) -> None:
    server = await serve(agent_with(lambda moment: "Hi."))
    said = f"{NASTY['markup']} {NASTY['unicode']} {NASTY['breaks']}"
    turn = await Page(server.http).run(said)
    assert json.loads(ET.fromstring(turn.datas[0]).attrib["data"])["user_query"] == said
    assert turn.meta["user_query"] == said


@requirement("awaiting:pause")
async def test_the_pause_is_a_bare_array_in_one_frame_then_done(serve: Serve, store: str) -> None:
    asks = [Ask("user_confirm", {"message": "One?"}), Ask("pick_color", {"label": "Two"})]
    server = await serve(agent_with([asks]), store=store)
    turn = await Page(server.http).run("hi")
    assert turn.datas[-1] == "[DONE]"
    assert turn.datas[-2].startswith('<awaiting_frontend_tools data="[{&quot;tool_use_id&quot;:&quot;call_')
    assert turn.datas[-2].endswith('}]"></awaiting_frontend_tools>')
    assert [(entry["name"], entry["input"]) for entry in turn.pause] == [
        ("user_confirm", {"message": "One?"}),
        ("pick_color", {"label": "Two"}),
    ]
    assert all(set(entry) == {"tool_use_id", "name", "input"} for entry in turn.pause)


@requirement("awaiting:pause")
async def test_what_the_pause_names_is_stored_and_the_run_is_parked(serve: Serve, store: str) -> None:
    server = await serve(agent_with([[Ask("user_confirm", {"message": "Sure?"})]]), store=store)
    turn = await Page(server.http).run("hi")
    [call] = await server.service.log.open_calls(LOCAL, turn.agent_uuid)
    run = await server.service.last_run(LOCAL, turn.agent_uuid)
    assert call.call_id == turn.pause[0]["tool_use_id"]
    assert run.parked
    assert run.state is RunState.WAITING


async def test_a_paused_run_reports_why_it_stopped() -> None:
    agent = agent_with([[Ask("user_confirm", {"message": "Sure?"})], "Thanks."])
    async with agent:
        paused = await agent.run("hi", thread="t1")
        assert paused.stop_reason == "awaiting_frontend_tools"
        answered = await agent.answer("t1", [(paused.pending[0].call_id, Success("yes"))])
        assert answered.stop_reason == "end"


async def test_server_tools_of_the_step_run_before_the_pause_and_once(serve: Serve, store: str) -> None:
    asks = [Ask("user_confirm", {"message": "Sure?"}), Ask("get_weather", {"city": "Oslo"})]
    model = ScriptedModel([asks, "Done."])
    server = await serve(agent_with(model), store=store)
    agents.weather_reports.clear()
    page = Page(server.http)
    turn = await page.run("hi")
    assert agents.weather_reports == ["Oslo"]
    shown = [data.split(" ")[0] for data in turn.datas[1:-1]]
    assert shown == [
        "<content-block-tool_call",
        "<content-block-tool_call",
        "<content-block-tool_result",
        "<awaiting_frontend_tools",
    ]
    assert [entry["name"] for entry in turn.pause] == ["user_confirm"]
    await page.answer(result(turn.pause[0], "yes"))
    assert agents.weather_reports == ["Oslo"]


async def test_the_model_gets_all_results_of_the_step_in_the_order_of_its_calls(
    serve: Serve, store: str
) -> None:
    asks = [
        Ask("pick_color", {"label": "first"}),
        Ask("get_weather", {"city": "Oslo"}),
        Ask("user_confirm", {"message": "third"}),
        Ask("no_such_tool", {}),
    ]
    model = ScriptedModel([asks, "Done."])
    server = await serve(agent_with(model), store=store)
    page = Page(server.http)
    turn = await page.run("hi")
    color, confirm = turn.pause
    await page.answer(result(confirm, "yes"), result(color, '{"hex": "#abc"}'))
    results = model.prompts[-1].messages[-1]
    assert isinstance(results, ResultsMessage)
    assert [each.tool for each in results.results] == [
        "pick_color",
        "get_weather",
        "user_confirm",
        "no_such_tool",
    ]
    assert [each.outcome.output for each in results.results if isinstance(each.outcome, Success)] == [
        {"hex": "#abc"},
        {"city": "Oslo", "sky": "clear"},
        "yes",
    ]


async def test_several_pauses_may_follow_in_one_conversation(serve: Serve, store: str) -> None:
    def script(moment: Moment) -> Step:
        if moment.steps < 3:
            return [f"Question {moment.steps + 1}. ", Ask("user_confirm", {"message": str(moment.steps)})]
        return "You said " + ", ".join(str(each.output) for each in moment.results) + "."

    server = await serve(agent_with(script), store=store)
    page = Page(server.http)
    turn = await page.run("hi")
    seen = []
    for number in range(3):
        seen.append(turn.pause[0]["tool_use_id"])
        assert turn.text == f"Question {number + 1}. "
        turn = await page.answer(result(turn.pause[0], f"answer {number}"))
    assert turn.text == "You said answer 0, answer 1, answer 2."
    assert len(set(seen)) == 3
    assert (await page.run("bye")).status == 200


@requirement("runs:one-at-a-time")
async def test_a_new_message_on_a_paused_thread_leaves_the_pause_behind(serve: Serve, store: str) -> None:
    model = ScriptedModel([[Ask("user_confirm", {"message": "Sure?"})], "Something else, then."])
    server = await serve(agent_with(model), store=store)
    page = Page(server.http)
    paused = await page.run("hi")
    turn = await page.run("never mind")
    assert turn.text == "Something else, then."
    results = model.prompts[-1].messages[-2]
    assert isinstance(results, ResultsMessage)
    assert "moved on" in str(results.results[0].outcome)
    late = await page.answer(result(paused.pause[0], "yes"))
    assert late.status == 410
    assert late.body["error"]["code"] == "cancelled"


@requirement("awaiting:approval")
async def test_an_approved_server_tool_runs_and_a_denied_one_does_not(serve: Serve, store: str) -> None:
    asks = [Ask("delete_file", {"path": "a.txt"}), Ask("delete_file", {"path": "b.txt"})]
    model = ScriptedModel([asks, "Done."])
    server = await serve(agent_with(model), store=store)
    agents.deleted.clear()
    page = Page(server.http)
    paused = await page.run("clean up")
    assert [entry["needs_approval"] for entry in paused.pause] == [True, True]
    assert agents.deleted == []
    yes, no = paused.pause
    turn = await page.answer(result(yes, "", approved=True), result(no, "I need that one", approved=False))
    assert turn.text == "Done."
    assert agents.deleted == ["a.txt"]
    results = model.prompts[-1].messages[-1]
    assert isinstance(results, ResultsMessage)
    assert results.results[0].outcome == Success("a.txt is gone")
    assert "I need that one" in str(results.results[1].outcome)


@requirement("awaiting:approval")
async def test_an_approved_frontend_tool_brings_its_result_with_the_approval(
    serve: Serve, store: str
) -> None:
    model = ScriptedModel([[Ask("take_photo", {"camera": "front"})], "Nice."])
    server = await serve(agent_with(model), store=store)
    page = Page(server.http)
    paused = await page.run("a photo")
    assert paused.pause[0]["needs_approval"] is True
    turn = await page.answer(result(paused.pause[0], "blob_1", approved=True))
    assert turn.text == "Nice."
    results = model.prompts[-1].messages[-1]
    assert isinstance(results, ResultsMessage)
    assert results.results[0].outcome == Success("blob_1")


@requirement("awaiting:approval")
async def test_a_result_without_a_yes_or_no_is_refused_and_nothing_is_applied(
    serve: Serve, store: str
) -> None:
    asks = [Ask("take_photo", {"camera": "front"}), Ask("user_confirm", {"message": "Sure?"})]
    server = await serve(agent_with([asks, "Nice."]), store=store)
    page = Page(server.http)
    paused = await page.run("a photo")
    photo, confirm = paused.pause
    refused = await page.answer(result(photo, "blob_1"), result(confirm, "yes"))
    assert refused.status == 409
    assert refused.body["error"]["code"] == "not_approved"
    assert refused.body["error"]["detail"][0]["tool_use_id"] == photo["tool_use_id"]
    for bad in ("true", 1, None):
        assert (await page.answer(result(photo, "x", approved=bad), result(confirm, "yes"))).status == 400
    turn = await page.answer(result(photo, "blob_1", approved=True), result(confirm, "yes"))
    assert turn.text == "Nice."


@requirement("awaiting:approval")
async def test_an_approval_nobody_asked_for_has_no_effect(serve: Serve) -> None:
    model = ScriptedModel([[Ask("user_confirm", {"message": "Sure?"})], "Done."])
    server = await serve(agent_with(model))
    page = Page(server.http)
    paused = await page.run("hi")
    await page.answer(result(paused.pause[0], "no", approved=False))
    results = model.prompts[-1].messages[-1]
    assert isinstance(results, ResultsMessage)
    assert results.results[0].outcome == Success("no")
