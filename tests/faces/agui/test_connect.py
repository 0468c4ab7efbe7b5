"""What a reloaded page, another worker and another face see of the same run; and stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from farhand.models.scripted import Ask, Moment, Step, Think
from tests.faces.agui.page import Page, yes
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once
from tests.requirement import requirement

OPEN = Ask("open_url", {"url": "a.example"})
WEATHER = Ask("weather", {"city": "Oslo"})
DELETE = Ask("delete_file", {"path": "a.txt"})


@requirement("agui:connect")
async def test_a_reloaded_page_gets_the_same_messages_with_the_same_ids(serve: Serve, store: str) -> None:
    scene = Scene(["One.", [Think("Hm."), "Look: ", WEATHER], "Two."])
    page = Page((await serve(scene.agent, store=store)).http)
    await page.send("a")
    await page.send("b")
    before, run_id = page.messages, page.run_id
    run = await page.connect()
    assert run.events[0]["runId"] == run_id
    assert page.messages == before
    assert run.all("MESSAGES_SNAPSHOT")[0]["messages"][0]["id"] == "m1"


@requirement("agui:connect")
async def test_open_calls_and_interrupts_are_told_again(serve: Serve, store: str) -> None:
    scene = Scene(once(DELETE, OPEN))
    page = Page((await serve(scene.agent, store=store)).http)
    first = await page.send("go")
    run = await page.connect()
    assert run.interrupts == first.interrupts
    assert list(run.calls) == list(first.calls)
    run = await page.resume(yes(run.interrupts[0]))
    [call_id] = run.calls
    assert (await page.connect()).outcome["pendingToolCallIds"] == [call_id]
    page.finds(call_id, "{}")
    assert (await page.run()).text


@requirement("agui:connect")
async def test_an_active_run_is_replayed_and_then_live(serve: Serve, store: str) -> None:
    gate = asyncio.Event()

    async def slowly(moment: Moment) -> AsyncGenerator[Step, None]:
        yield "One, "
        await gate.wait()
        yield "two."

    page = Page((await serve(Scene([slowly]).agent, store=store)).http)
    page.says("go")
    async with page.live() as live:
        await live.until("TEXT_MESSAGE_CONTENT")
    other = Page(page.http, path="/copilotkit/agent/default/connect")
    async with other.live() as again:
        await again.until("TEXT_MESSAGE_CONTENT")
        gate.set()
        run = await again.rest()
    run.check()
    assert run.text == "One, two."


async def test_a_thread_that_is_not_there_is_an_empty_stream(serve: Serve) -> None:
    page = Page((await serve(Scene(["x"]).agent)).http)
    response = await page.http.post("/copilotkit/agent/default/connect", json=page.input())
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-type"] == "text/event-stream"


async def test_a_run_without_messages_in_an_unknown_thread_says_so(serve: Serve) -> None:
    run = await Page((await serve(Scene(["x"]).agent)).http).run()
    assert (run.status, run.code) == (200, "unknown")


async def test_a_run_that_brings_nothing_new_gets_the_record(serve: Serve, store: str) -> None:
    scene = Scene(["One."])
    page = Page((await serve(scene.agent, store=store)).http)
    await page.send("a")
    before = page.messages
    run = await page.run()
    assert run.outcome == {"type": "success"}
    assert page.messages == before
    assert len(scene.model.prompts) == 1


@requirement("agui:restart")
@pytest.mark.parametrize("answer", ["result", "resume"])
async def test_a_pause_is_answered_after_a_restart(serve: Serve, file_store: str, answer: str) -> None:
    asked = OPEN if answer == "result" else DELETE
    server = await serve(Scene(once(asked)).agent, store=file_store)
    page = Page(server.http)
    paused = await page.send("go")
    await server.stop()
    scene = Scene(once(asked))
    page.http = (await serve(scene.agent, store=file_store)).http
    if answer == "result":
        page.finds(next(iter(paused.calls)), "{}")
        run = await page.run()
    else:
        run = await page.resume(yes(paused.interrupts[0]))
        assert scene.ran == [("delete_file", "a.txt")]
    assert "success" in run.text


async def test_a_server_that_stops_cuts_the_stream_with_an_error_and_connect_has_the_rest(
    serve: Serve, file_store: str
) -> None:
    gate = asyncio.Event()

    async def slowly(moment: Moment) -> AsyncGenerator[Step, None]:
        yield "One, "
        await gate.wait()
        yield "two."

    server = await serve(Scene([slowly]).agent, store=file_store)
    page = Page(server.http)
    page.says("go")
    async with page.live() as live:
        await live.until("TEXT_MESSAGE_CONTENT")
        await server.stop()
        run = await live.rest()
    run.check()
    assert run.code == "shutting_down"
    page.http = (await serve(Scene(["All of it."]).agent, store=file_store)).http
    assert (await page.connect()).text == "All of it."


# ---------------------------------------------------------------------------------- other faces, and back


@requirement("ack:across")
async def test_a_call_opened_here_is_answered_by_ack_and_connect_shows_the_rest(
    serve: Serve, store: str
) -> None:
    page = Page((await serve(Scene(once(OPEN)).agent, store=store)).http)
    [call_id] = (await page.send("go")).calls
    [waiting] = (await page.http.get("/api/inbox")).json()["calls"]
    assert waiting["callId"] == call_id
    sent = {"toolCallId": call_id, "status": "success", "output": {"by": "ack"}}
    assert (await page.http.post("/api/tools/ack", json=sent)).json() == {"ok": True}
    run = await page.connect()
    assert run.results == {call_id: '{"by":"ack"}'}
    assert run.text == "open_url: success {'by': 'ack'}."


@requirement("ack:across")
async def test_a_call_opened_in_the_chat_is_answered_here(serve: Serve, store: str) -> None:
    page = Page((await serve(Scene(once(OPEN)).agent, store=store)).http)
    said = [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "go"}]}]
    await page.http.post("/api/chat", json={"id": "t1", "messages": said})
    run = await page.connect()
    [call_id] = run.calls
    page.finds(call_id, '{"by": "ag-ui"}')
    assert (await page.run()).text == "open_url: success {'by': 'ag-ui'}."
    record = (await page.http.get("/api/chat/t1")).json()
    assert record["state"] == "done"


@requirement("ack:across")
async def test_an_approval_asked_in_the_chat_is_given_here(serve: Serve, store: str) -> None:
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent, store=store)).http)
    said = [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "go"}]}]
    await page.http.post("/api/chat", json={"id": "t1", "messages": said})
    await page.resume(yes((await page.connect()).interrupts[0]))
    assert scene.ran == [("delete_file", "a.txt")]


# -------------------------------------------------------------------------------------------------- stop


@requirement("agui:busy")
async def test_a_stop_that_names_an_older_run_stops_nothing(serve: Serve, store: str) -> None:
    page = Page((await serve(Scene([[OPEN], [OPEN], "x"]).agent, store=store)).http)
    [call_id] = (await page.send("go")).calls
    older = page.run_id
    page.finds(call_id, "{}")
    await page.run()
    stopped = await page.stop(older)
    assert stopped["stopped"] is False
    assert stopped["message"]
    assert await page.stop(page.run_id) == {
        "stopped": True,
        "interrupt": {"type": "RUN_ERROR", "message": "The run was stopped.", "code": "STOPPED"},
    }
    assert (await page.stop())["stopped"] is False


@requirement("agui:busy")
async def test_a_stop_without_a_body_stops_whatever_runs_and_the_next_message_is_answered(
    serve: Serve,
) -> None:
    page = Page((await serve(Scene([[OPEN], "Next."]).agent)).http)
    await page.send("go")
    assert (await page.http.post("/copilotkit/agent/default/stop/t1")).json()["stopped"] is True
    assert (await page.send("more")).text == "Next."


async def test_the_inspector_shows_such_a_run_and_its_calls_as_this_wire_sends_them(serve: Serve) -> None:
    page = Page((await serve(Scene(once(DELETE, OPEN)).agent)).http)
    run = await page.send("go")
    [asked] = run.interrupts
    run = await page.resume(yes(asked))
    [opened] = run.calls
    page.finds(opened, "{}")
    await page.run()
    for call_id, shown in ((asked["toolCallId"], asked["id"]), (opened, "pendingToolCallIds")):
        seen = (await page.http.get(f"/api/inspect/calls/{call_id}")).json()
        [wire] = [each for each in seen["wires"] if each["name"] == "ag-ui"]
        frames = "".join(frame["text"] for frame in wire["frames"])
        assert frames.count("TOOL_CALL_START") == 1
        assert f'"{call_id}:result"' in frames
        assert shown in frames
