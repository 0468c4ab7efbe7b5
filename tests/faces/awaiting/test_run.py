"""POST /agent/run over real HTTP: how a conversation starts and how it is streamed."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest

from farhand.core.position import parse_bookmark
from farhand.core.thread import UserMessage, text_of
from farhand.models.scripted import Ask, Fail, Moment, Say, ScriptedModel, Step, Think
from tests.faces.awaiting.agents import agent_with
from tests.faces.awaiting.client import Page, result
from tests.faces.conftest import Serve
from tests.requirement import requirement


@requirement("awaiting:run")
async def test_a_run_answers_and_the_thread_remembers(serve: Serve, store: str) -> None:
    def script(moment: Moment) -> str:
        said = [text_of(each) for each in moment.messages if isinstance(each, UserMessage)]
        return f"You said: {' and '.join(said)}."

    page = Page((await serve(agent_with(script), store=store)).http)
    first = await page.run("one")
    second = await page.run("two")
    assert first.text == "You said: one."
    assert second.text == "You said: one and two."
    assert second.agent_uuid == first.agent_uuid


async def test_without_an_id_a_uuid_is_made(serve: Serve) -> None:
    server = await serve(agent_with(lambda moment: "Hi."))
    turns = [await Page(server.http).run("hi") for _ in range(2)]
    made = {uuid.UUID(turn.agent_uuid) for turn in turns}
    assert len(made) == 2
    assert all(each.version == 4 for each in made)


async def test_an_id_that_nobody_made_is_unknown(serve: Serve) -> None:
    server = await serve(agent_with(lambda moment: "Hi."))
    turn = await Page(server.http, "never-made").run("hi")
    assert turn.status == 404
    assert turn.body["error"]["code"] == "unknown"
    assert (await Page(server.http, "never-made").stream()).status == 404
    assert (await Page(server.http, "never-made").answer()).status == 404
    assert (await server.http.post("/agent/never-made/abort")).status_code == 404


async def test_an_id_of_a_wrong_form_is_refused(serve: Serve) -> None:
    server = await serve(agent_with(lambda moment: "Hi."))
    for bad in ("", "a b", "x" * 129, "ü"):
        turn = await Page(server.http, bad).run("hi")
        assert turn.status == 400
        assert "agent_uuid" in turn.body["error"]["message"]


@pytest.mark.parametrize(
    "prompt",
    [
        "plain words",
        [{"type": "text", "text": "plain "}, {"type": "text", "text": "words"}],
        {"role": "user", "content": "plain words"},
        {"content": [{"type": "text", "text": "plain words"}]},
    ],
)
async def test_a_prompt_is_a_text_or_blocks_or_a_message(serve: Serve, prompt: object) -> None:
    server = await serve(agent_with(lambda moment: f"<{moment.text}>"))
    turn = await Page(server.http).run(prompt)
    assert turn.text == "<plain words>"
    assert turn.meta["user_query"] == "plain words"


async def test_any_other_prompt_is_refused_and_starts_nothing(serve: Serve) -> None:
    model = ScriptedModel(["never"])
    server = await serve(agent_with(model))
    prompts: list[object] = [
        *(None, 7, True, "", "  \n", [], {}),
        *(["words"], [{"type": "image", "source": {}}], [{"type": "text"}], [[]]),
        *({"role": "assistant", "content": "x"}, {"role": "system", "content": "x"}, {"content": 5}),
        [{"type": "text", "text": ""}],
    ]
    for prompt in prompts:
        turn = await Page(server.http).run(prompt)
        assert turn.status == 400
        assert turn.body["error"]["code"] == "invalid"
        assert "user_prompt" in turn.body["error"]["message"]
    assert model.prompts == []


async def test_the_first_frame_of_every_response_names_format_query_thread_and_model(serve: Serve) -> None:
    server = await serve(agent_with([[Ask("user_confirm", {"message": "Sure?"})], "Thanks."]))
    page = Page(server.http)
    paused = await page.run('say "hi" & <go>')
    resumed = await page.answer(result(paused.pause[0], "yes"))
    replayed = await page.stream()
    for turn in (paused, resumed, replayed):
        assert turn.datas[0].startswith("<meta_init data=")
        assert turn.datas[0].endswith("></meta_init>")
        assert turn.meta == {
            "format": "xml",
            "user_query": 'say "hi" & <go>',
            "agent_uuid": page.agent_uuid,
            "model": "scripted",
        }


@requirement("awaiting:frames")
async def test_each_frame_has_a_position_and_the_last_one_says_done(serve: Serve) -> None:
    server = await serve(
        agent_with([[Think("hm"), "One two three", Ask("get_weather", {"city": "Oslo"})], "Fine."])
    )
    turn = await Page(server.http).run("hi")
    places = [parse_bookmark(frame.id) for frame in turn.frames]
    positions = [place.position for place in places if place is not None]
    assert len(positions) == len(turn.frames)
    assert positions == sorted(positions, key=str_key)
    assert turn.datas.count("[DONE]") == 1
    assert turn.datas[-1] == "[DONE]"
    assert turn.content_type == "text/event-stream"


@requirement("awaiting:frames")
async def test_on_the_wire_frames_are_an_id_line_and_data_lines(serve: Serve) -> None:
    server = await serve(agent_with(["Hi."]))
    response = await server.http.post("/agent/run", json={"user_prompt": "hi"})
    *frames, end = response.content.removesuffix(b"\n\n").split(b"\n\n")
    events = [each for each in frames if not each.startswith(b":")]
    assert all(each.startswith(b"id: ") and b"\ndata: " in each for each in events)
    assert end == b"data: [DONE]"
    assert b"\r" not in response.content
    assert response.headers["cache-control"] == "no-cache"


@requirement("awaiting:run")
async def test_the_format_is_the_agents_unless_the_request_says_another(serve: Serve) -> None:
    server = await serve(agent_with(lambda moment: "Hi.", formatter="raw"))
    assert (await Page(server.http).run("hi")).meta["format"] == "raw"
    assert (await Page(server.http, query="?format=xml").run("hi")).meta["format"] == "xml"
    other = await serve(agent_with(lambda moment: "Hi."))
    assert (await Page(other.http).run("hi")).meta["format"] == "xml"
    assert (await Page(other.http, query="?format=raw").run("hi")).meta["format"] == "raw"


@requirement("awaiting:run")
@pytest.mark.parametrize("query", ["?format=yaml", "?format=", "?format=xml&format=raw"])
async def test_an_unknown_format_is_refused_on_every_route(serve: Serve, query: str) -> None:
    server = await serve(agent_with(lambda moment: "Hi."))
    agent_uuid = (await Page(server.http).run("hi")).agent_uuid
    page = Page(server.http, agent_uuid, query=query)
    assert [turn.status for turn in (await page.run("x"), await page.answer(), await page.stream())] == [
        400
    ] * 3


async def test_raw_is_json_events_between_tags(serve: Serve) -> None:
    asks: Step = [Think("hm"), Say(["Let ", "me"]), Ask("user_confirm", {"message": "Sure?"})]
    server = await serve(agent_with([asks, "Thanks."], formatter="raw"))
    page = Page(server.http)
    paused = await page.run("hi")
    assert paused.datas[0].startswith("<meta_init ")
    assert paused.datas[-2].startswith("<awaiting_frontend_tools ")
    events = [json.loads(data) for data in paused.datas[1:-2]]
    assert events[0]["message"]["model"] == "scripted"
    assert events[-1] == {"type": "message_stop"}
    resumed = await page.answer(result(paused.pause[0], "yes"))
    assert resumed.datas[1].endswith('name="user_confirm"><![CDATA[yes]]></content-block-tool_result>')
    later = [json.loads(data) for data in resumed.datas[2:-1]]
    deltas = [each["delta"]["text"] for each in later if each["type"] == "content_block_delta"]
    assert "".join(deltas) == "Thanks."


@requirement("awaiting:run-error")
@pytest.mark.parametrize("query", ["", "?format=raw"])
async def test_a_model_that_breaks_is_one_error_frame_and_the_end(
    serve: Serve, store: str, query: str
) -> None:
    server = await serve(
        agent_with([[Say("I was"), Fail("The provider is down.", hint="Try later.")], "Better."]), store=store
    )
    page = Page(server.http, query=query)
    turn = await page.run("hi")
    assert turn.status == 200
    [(code, sentence)] = turn.errors
    assert code == "model_fault"
    assert sentence == "The model failed. Try again later. The server's log has the details."
    assert "ModelFault" not in turn.said
    assert "Traceback" not in turn.said
    assert turn.datas[-2].startswith("<content-block-error ")
    assert turn.datas[-1] == "[DONE]"
    assert "Better." in (await page.run("again")).said


@requirement("awaiting:run-error")
async def test_a_run_without_end_is_ended_with_an_error_frame(serve: Serve) -> None:
    server = await serve(
        agent_with(lambda moment: Ask("get_weather", {"city": str(moment.steps)}), max_steps=3)
    )
    turn = await Page(server.http).run("hi")
    assert turn.errors[0][0] == "max_steps"
    assert turn.datas[-1] == "[DONE]"


async def test_a_message_while_the_run_works_is_refused(serve: Serve) -> None:
    go_on = asyncio.Event()

    async def script(moment: Moment) -> str:
        await go_on.wait()
        return "Done."

    server = await serve(agent_with(script))
    page = Page(server.http)
    async with page.live("hi") as live:
        turn = await page.run("and another")
        go_on.set()
        assert (await live.rest()).text == "Done."
    assert turn.status == 409
    assert turn.body["error"]["code"] == "busy"


def str_key(position: object) -> tuple[int, int]:
    seq, _, offset = str(position).partition(".")
    return int(seq), int(offset)
