"""The model sees registered tools and uses them, however the page waits."""

from __future__ import annotations

import asyncio

import pytest

from farhand import Agent, ClientTools, ScriptedModel
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL
from farhand.models.scripted import Ask, Moment, Step
from tests.faces.client_tools.pages import paging
from tests.faces.client_tools.program import Program, asks, chat, eventually, ready, said, soon
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.requirement import requirement

READ = Ask("client_notes_read", {"text": "a"})


async def test_a_tool_is_offered_from_the_next_step_on_and_no_longer_when_it_left(serve: Serve) -> None:
    seen: list[tuple[str, ...]] = []

    def script(moment: Moment) -> Step:
        seen.append(moment.tools)
        return Ask("client_notes_read", {"text": "a"}) if moment.steps < 2 else "done"

    server = await serve(Agent(ScriptedModel(script)))
    notes = Program(server.http)
    async with ready(notes, "read") as here, asyncio.TaskGroup() as group:
        answer = group.create_task(chat(server.http))
        first = await here.stream.request()
        await notes.register("search")
        await notes.result(first["requestID"], status="success", output=1)
        second = await here.stream.request()
        await notes.result(second["requestID"], status="success", output=2)
        await answer
        await notes.unregister(toolIDs=["read"])
        await chat(server.http, "again", "t2")
    assert seen[:3] == [
        ("client_notes_read",),
        ("client_notes_read", "client_notes_search"),
        ("client_notes_read", "client_notes_search"),
    ]
    assert seen[3] == ("client_notes_search",)


async def test_a_tool_that_left_is_an_unknown_one_to_the_model(serve: Serve) -> None:
    server = await serve(asks(READ))
    assert "There is no tool 'client_notes_read'" in said(await chat(server.http))


@requirement("client-tools:execute")
async def test_a_bad_input_of_the_model_goes_back_to_it_and_the_client_is_not_asked(serve: Serve) -> None:
    def script(moment: Moment) -> Step:
        if moment.steps == 0:
            return Ask("client_notes_read", {"text": 3})
        return Ask("client_notes_read", {"text": "3"}) if moment.steps == 1 else moment.results[0].seen

    server = await serve(Agent(ScriptedModel(script)))
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        answer = group.create_task(chat(server.http))
        assert (await notes.answer(status="success", output=1))["input"] == {"text": "3"}
    assert "`text` must be a string" in said(answer.result())


@pytest.mark.parametrize("wait", ["turn", "hold"])
async def test_a_response_waits_for_a_client_in_both_waits(serve: Serve, store: str, wait: str) -> None:
    server = await serve(asks(READ, Ask("client_notes_search", {"text": "b"})), store=store)
    async with ready(Program(server.http), "read", "search") as notes, asyncio.TaskGroup() as group:
        answer = group.create_task(chat(server.http, wait=wait))
        requests = [await notes.stream.request() for _ in range(2)]
        for request in reversed(requests):
            await notes.program.result(request["requestID"], status="success", output=request["tool"])
    assert said(answer.result()) == "read | search"
    kinds = [chunk["type"] for chunk in answer.result()]
    assert kinds.count("tool-output-available") == 2
    # a page runs whatever becomes available, and this is not for the page
    assert "tool-input-available" not in kinds
    assert kinds[-1] == "finish"


async def test_a_page_is_asked_after_the_client_has_answered(serve: Serve) -> None:
    server = await serve(paging(READ))
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        answer = group.create_task(chat(server.http))
        request = await notes.stream.request()
        assert not answer.done()
        await notes.program.result(request["requestID"], status="success", output="the note")
        chunks = await answer
    # the turn ends with the page's call alone open
    assert [chunk["type"] for chunk in chunks][-1] == "finish"
    assert chunks[-1]["finishReason"] == "tool-calls"
    run = await server.service.last_run(LOCAL, "t1")
    page, client = await server.service.calls(run)
    assert (page.outcome, client.outcome) == (None, Success("the note"))
    assert run.parked
    body = {"toolCallId": page.call_id, "status": "success", "output": {"viewKey": "v1"}}
    assert (await server.http.post("/api/tools/ack", json=body)).json() == {"ok": True}
    await _done(server)


async def test_after_hold_for_the_response_ends_and_the_result_resumes_the_run(
    serve: Serve, store: str
) -> None:
    server = await serve(asks(READ), store=store, settings=soon(hold_for=0.2))
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        answer = group.create_task(chat(server.http))
        request = await notes.stream.request()
        chunks = await answer
        assert chunks[-1] == {"type": "finish", "finishReason": "tool-calls"}
        resumed = group.create_task(_stream(server))
        await notes.program.result(request["requestID"], status="success", output="late but good")
    assert "late" in resumed.result()
    await _done(server)


async def test_the_awaiting_face_waits_for_a_client_like_for_a_server_tool(serve: Serve) -> None:
    server = await serve(asks(READ))
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        answer = group.create_task(server.http.post("/agent/run", json={"user_prompt": "go"}))
        await notes.answer(status="success", output="the note")
    assert answer.result().status_code == 200
    assert "the note" in answer.result().text.replace("</content>", "")


@requirement("client-tools:approval")
async def test_an_approval_in_the_chat_lets_the_client_continue_in_the_same_response(serve: Serve) -> None:
    server = await serve(asks(READ), client_tools=ClientTools(approval="always"))
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        chunks = await chat(server.http)
        [asked] = [chunk for chunk in chunks if chunk["type"] == "tool-approval-request"]
        part = {
            "type": "tool-client_notes_read",
            "toolCallId": asked["toolCallId"],
            "state": "approval-responded",
            "input": {"text": "a"},
            "approval": {"id": asked["approvalId"], "approved": True},
        }
        user = {"id": "m-2", "role": "user", "parts": [{"type": "text", "text": "go"}]}
        message = {"id": chunks[0]["messageId"], "role": "assistant", "parts": [part]}
        body = {"id": "t1", "messages": [user, message]}
        answer = group.create_task(server.http.post("/api/chat", json=body))
        await notes.answer(status="success", output="allowed")
    assert "allowed" in answer.result().text


@requirement("client-tools:grace")
async def test_the_model_continues_when_a_client_is_lost(serve: Serve, store: str) -> None:
    server = await serve(asks(READ, Ask("client_mail_send", {"text": "b"})), store=store, settings=soon())
    mail = Program(server.http, "mail")
    async with (
        asyncio.TaskGroup() as group,
        ready(mail, "send") as stays,
        ready(Program(server.http), "read", graceSec=0.1) as lost,
    ):
        answer = group.create_task(chat(server.http))
        await lost.stream.request()
        await stays.answer(status="success", output="sent")
    heard = said(answer.result())
    assert "client disconnected" in heard
    assert heard.endswith("| sent")


async def test_a_new_message_cancels_what_a_client_was_asked_for(serve: Serve) -> None:
    server = await serve(asks(READ))
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        group.create_task(chat(server.http))
        request = await notes.stream.request()
        group.create_task(chat(server.http, "something else"))
        event = await notes.stream.event()
        assert event is not None
        assert (event.event, "cancelled" in event.data) == ("tool-settled", True)
        again = await notes.stream.request()
        assert again["requestID"] != request["requestID"]
        await notes.program.result(again["requestID"], status="success", output=1)
    call = await server.service.log.get_call(LOCAL, request["requestID"])
    assert call is not None
    assert "the user moved on" in str(call.outcome)


@requirement("client-tools:register")
async def test_a_call_in_flight_keeps_the_schema_it_was_made_with(serve: Serve) -> None:
    server = await serve(asks(READ))
    notes = Program(server.http)
    async with ready(notes, "read") as here, asyncio.TaskGroup() as group:
        answer = group.create_task(chat(server.http))
        request = await here.stream.request()
        call = await server.service.log.get_call(LOCAL, request["requestID"])
        await notes.register({"id": "read", "description": "Another one.", "parameters": {}})
        await notes.result(request["requestID"], status="success", output="old schema")
        await answer
    assert call is not None
    kept = await server.service.log.get_tool(call.tool_version)
    assert kept is not None
    assert kept.description == "Can read."
    assert said(answer.result()) == "old schema"


@requirement("client-tools:restart")
async def test_a_run_that_a_restart_interrupted_continues_with_its_client(
    serve: Serve, file_store: str
) -> None:
    first = await serve(asks(READ), store=file_store)
    async with asyncio.TaskGroup() as group:
        async with ready(Program(first.http), "read", graceSec=60) as notes:
            cut = group.create_task(chat(first.http))
            request = await notes.stream.request()
            await first.stop()
        await cut
    second = await serve(asks(READ), store=file_store)
    again = Program(second.http)
    async with again.listen() as stream:
        assert await stream.request() == request
        await again.result(request["requestID"], status="success", output="after the restart")
        await _done(second)
    shown = (await second.http.get("/api/chat/t1")).json()
    assert "after the restart" in str(shown["messages"])


@requirement("client-tools:execute")
async def test_a_client_that_does_not_answer_is_a_timeout_for_the_model(serve: Serve) -> None:
    server = await serve(asks(READ), settings=soon(client_call=0.2))
    async with ready(Program(server.http), "read"):
        assert said(await chat(server.http)) == '{"status":"timeout"}'


async def test_the_registry_answers_every_look_up(serve: Serve) -> None:
    server = await serve(asks(READ))
    await Program(server.http).register("read")
    registry = server.app.sessions.registry
    assert [tool.name for tool in registry.tools_of(LOCAL, "notes")] == ["client_notes_read"]
    assert [tool.name for tool in registry.tools(LOCAL)] == ["client_notes_read"]
    assert registry.get(LOCAL, "client_notes_read") is not None
    assert registry.get(LOCAL, "client_notes_other") is None


async def _done(server: Served) -> None:
    async def look() -> bool:
        return not (await server.service.last_run(LOCAL, "t1")).active

    await eventually(look)


async def _stream(server: Served) -> str:
    return (await server.http.get("/api/chat/t1/stream")).text
