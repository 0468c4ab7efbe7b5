"""The stream of requests: its headers, its pings, its events, and that one stream is enough for any number of
calls."""

from __future__ import annotations

import asyncio
import json

import pytest

from farhand import Agent, ScriptedModel, Settings, Timeouts
from farhand.core.call import Phase
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL
from farhand.models.scripted import Ask
from tests.faces.client_tools.program import Program, asks, chat, eventually, ready, said, soon
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.requirement import requirement

QUIET = ScriptedModel(lambda moment: "hm")


@pytest.fixture
async def server(serve: Serve, store: str) -> Served:
    return await serve(Agent(QUIET), store=store)


async def test_the_head_comes_at_once_and_says_what_the_wire_says(server: Served) -> None:
    async with Program(server.http).listen() as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-cache"


async def test_a_ping_without_data_comes_again_and_again(serve: Serve) -> None:
    server = await serve(Agent(QUIET), settings=Settings(timeouts=Timeouts(client_ping=0.05)))
    async with Program(server.http).listen() as stream:
        for _ in range(3):
            event = await stream.ping()
            assert (event.event, event.data) == ("ping", "")


def test_a_ping_comes_every_30_seconds_unless_it_is_set_otherwise() -> None:
    assert Timeouts().client_ping == 30.0


@pytest.mark.parametrize(
    "path", ["/client-tools/pending", "/client-tools/pending/", "/client-tools/pending/a.b"]
)
async def test_a_stream_for_nobody_is_an_invalid_request(server: Served, path: str) -> None:
    answer = await server.http.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("path", ["/client-tools", "/client-tools/", "/client-tools/nothing/here"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_a_path_that_is_not_there_is_not_found_in_the_words_of_this_wire(
    server: Served, method: str, path: str
) -> None:
    answer = await server.http.request(method, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("holder", ["other", "notesx", "notes.", "notes.a b", "mail.1"])
async def test_nobody_listens_under_a_name_that_is_not_its_own(server: Served, holder: str) -> None:
    answer = await server.http.get("/client-tools/pending/notes", params={"holder": holder})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")


@requirement("client-tools:request")
async def test_a_request_of_the_model_has_the_words_of_the_wire(serve: Serve, store: str) -> None:
    server = await serve(asks(Ask("client_notes_read", {"text": "a"}, id="call_0")), store=store)
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        answer = group.create_task(chat(server.http))
        request = await notes.answer(status="success", output="the note")
        run = await server.service.last_run(LOCAL, "t1")
        [call] = await server.service.calls(run)
        assert request == {
            "type": "client-tool-request",
            "requestID": call.call_id,
            "sessionID": "t1",
            "messageID": f"{run.run_id}:1",
            "callID": "call_0",
            "tool": "read",
            "input": {"text": "a"},
        }
    assert said(answer.result()) == "the note"


@requirement("client-tools:request")
async def test_writing_a_request_takes_it_for_the_client(server: Served) -> None:
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        group.create_task(notes.program.execute("read", {"text": "a"}))
        request = await notes.stream.request()
        call = await server.service.log.get_call(LOCAL, request["requestID"])
        assert call is not None
        assert call.phase is Phase.TAKEN
        assert call.take is not None
        assert call.take.holder == "notes"
        await notes.program.result(request["requestID"], status="success", output=1)


async def test_a_request_made_while_nobody_listens_is_delivered_on_connect(server: Served) -> None:
    notes = Program(server.http)
    await notes.register("read")
    async with asyncio.TaskGroup() as group:
        executed = group.create_task(notes.execute("read", {"text": "early"}))
        await _open(server, 1)
        async with notes.listen() as stream:
            request = await stream.request()
            await notes.result(request["requestID"], status="success", output="in time")
    assert executed.result().json()["output"] == "in time"


@pytest.mark.parametrize("with_position", [True, False])
async def test_what_is_not_answered_is_offered_again_on_reconnect(
    server: Served, with_position: bool
) -> None:
    notes = Program(server.http)
    await notes.register("read")
    async with asyncio.TaskGroup() as group:
        executed = [group.create_task(notes.execute("read", {"text": str(n)})) for n in range(3)]
        await _open(server, 3)
        async with notes.listen() as stream:
            first = [await stream.request() for _ in range(3)]
        await notes.result(first[1]["requestID"], status="success", output=1)
        position = {"last-event-id": first[2]["requestID"]} if with_position else {}
        async with notes.listen(**position) as stream:
            again = [await stream.request() for _ in range(2)]
            assert again == [first[0], first[2]]
            for request in again:
                await notes.result(request["requestID"], status="success", output=1)
    assert {answer.result().status_code for answer in executed} == {200}


async def test_hundreds_of_requests_that_waited_all_come(server: Served) -> None:
    notes = Program(server.http)
    await notes.register("read")
    async with asyncio.TaskGroup() as group:
        calls = [
            group.create_task(server.service.call("client_notes_read", {"text": str(n)}, thread=f"t{n}"))
            for n in range(150)
        ]
        await _open(server, 150)
        async with notes.listen() as stream:
            for _ in range(150):
                request = await stream.request()
                await notes.result(request["requestID"], status="success", output=request["input"]["text"])
    assert [call.result() for call in calls] == [Success(str(n)) for n in range(150)]


@requirement("client-tools:request")
async def test_the_newest_stream_wins_and_the_old_one_is_told(server: Served) -> None:
    async with ready(Program(server.http), "read") as notes, notes.program.listen() as newest:
        last = await notes.stream.event()
        assert last is not None
        assert (last.event, last.data) == ("superseded", "")
        assert await notes.stream.event() is None
        async with asyncio.TaskGroup() as group:
            executed = group.create_task(notes.program.execute("read", {"text": "a"}))
            request = await newest.request()
            await notes.program.result(request["requestID"], status="success", output="newest")
        assert executed.result().json()["output"] == "newest"


@requirement("client-tools:request")
async def test_a_superseded_stream_takes_no_tools_with_it(serve: Serve) -> None:
    server = await serve(Agent(QUIET), settings=soon(client_grace=0.0))
    async with ready(Program(server.http), "read") as notes, notes.program.listen() as newest:
        assert await notes.stream.event() is not None
        assert await notes.stream.event() is None
        assert len(await notes.program.tools()) == 1
        async with asyncio.TaskGroup() as group:
            group.create_task(notes.program.execute("read", {"text": "a"}))
            request = await newest.request()
            await notes.program.result(request["requestID"], status="success", output=1)
        assert len(await notes.program.tools()) == 1


async def test_another_program_of_the_same_client_is_told_that_a_request_was_given_out_before(
    server: Served,
) -> None:
    notes = Program(server.http)
    await notes.register("read")
    async with asyncio.TaskGroup() as group:
        group.create_task(notes.execute("read", {"text": "a"}))
        async with notes.listen(holder="notes.one") as stream:
            assert "again" not in await stream.request()
        async with notes.listen(holder="notes.one") as stream:
            assert "again" not in await stream.request()
        async with notes.listen(holder="notes.two") as stream:
            request = await stream.request()
            assert request["again"] is True
            await notes.result(request["requestID"], status="error", error="interrupted")


async def test_the_client_is_told_when_a_request_it_has_is_over(server: Served) -> None:
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        executed = group.create_task(notes.program.execute("read", {"text": "a"}, timeout=300))
        request = await notes.stream.request()
        event = await notes.stream.event()
        assert event is not None
        assert event.event == "tool-settled"
        assert json.loads(event.data) == {
            "type": "client-tool-settled",
            "requestID": request["requestID"],
            "outcome": "cancelled",
        }
        assert (await executed).status_code == 504


async def test_a_client_is_told_on_its_stream_when_somebody_unregisters_its_tools(server: Served) -> None:
    async with ready(Program(server.http), "read", "write") as notes, asyncio.TaskGroup() as group:
        executed = group.create_task(notes.program.execute("read", {"text": "a"}))
        await notes.stream.request()
        await Program(server.http).unregister(toolIDs=["read"])
        # in either order
        told = {event.event: event.data for event in [await notes.stream.event() for _ in range(2)] if event}
        assert set(told) == {"tool-unregistered", "tool-settled"}
        assert json.loads(told["tool-unregistered"]) == {
            "type": "client-tool-unregistered",
            "toolIDs": ["client_notes_read"],
        }
        assert (await executed).json()["status"] == "error"
        await Program(server.http).unregister()
        last = await notes.stream.event()
        assert last is not None
        assert json.loads(last.data)["toolIDs"] == ["client_notes_write"]


async def test_a_client_hears_nothing_of_what_others_withdraw(server: Served) -> None:
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        other = Program(server.http, "mail")
        await other.register("send")
        await other.unregister()
        # replaced is not gone
        await notes.program.register("read")
        group.create_task(notes.program.execute("read", {"text": "a"}))
        event = await notes.stream.event()
        assert event is not None
        assert event.event == "tool-request"
        await notes.program.result(json.loads(event.data)["requestID"], status="success", output=1)


async def test_a_person_may_answer_elsewhere_what_a_client_was_asked_for(server: Served) -> None:
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        executed = group.create_task(notes.program.execute("read", {"text": "a"}))
        request = await notes.stream.request()
        here = {"toolCallId": request["requestID"], "status": "success", "output": "typed by hand"}
        assert (await server.http.post("/api/tools/ack", json=here)).json() == {"ok": True}
        assert (await executed).json()["output"] == "typed by hand"
        late = await notes.program.result(request["requestID"], status="success", output="late")
        assert (late.status_code, late.json()["error"]["code"]) == (409, "CONFLICT")


async def test_what_a_person_took_is_not_given_to_the_client(server: Served) -> None:
    notes = Program(server.http)
    await notes.register("read", "search")
    async with asyncio.TaskGroup() as group:
        group.create_task(notes.execute("read", {"text": "a"}))
        [taken] = await _open(server, 1)
        body = {"toolCallId": taken, "clientId": "tab"}
        assert (await server.http.post("/api/tools/take", json=body)).status_code == 200
        group.create_task(notes.execute("search", {"text": "b"}))
        async with notes.listen() as stream:
            request = await stream.request()
            assert request["tool"] == "search"
            for call_id in (request["requestID"], taken):
                await notes.result(call_id, status="success", output=1)


async def _open(server: Served, count: int) -> list[str]:
    """The calls that wait, once there are so many."""

    async def look() -> list[str]:
        calls = await server.service.log.open_calls(LOCAL)
        return [call.call_id for call in calls] if len(calls) >= count else []

    return await eventually(look)
