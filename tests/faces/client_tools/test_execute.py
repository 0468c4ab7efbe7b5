"""Calls that a program makes itself: their answers, their key, their time."""

from __future__ import annotations

import asyncio

import pytest

from farhand import Agent, ClientTools, ScriptedModel, tool
from farhand.core.principal import LOCAL
from tests.faces.client_tools.program import Json, Program, eventually, ready, soon
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.requirement import requirement

QUIET = ScriptedModel(lambda moment: "hm")


@pytest.fixture
async def server(serve: Serve, store: str) -> Served:
    return await serve(Agent(QUIET), store=store)


@requirement("client-tools:execute")
async def test_a_call_is_answered_with_what_the_client_brought(server: Served) -> None:
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        executed = group.create_task(
            notes.program.execute("read", {"text": "a"}, sessionID="s1", messageID="m7", callID="c9")
        )
        request = await notes.answer(
            status="success", title="Read", output={"n": [1, 2.5, None]}, metadata={"k": 1}
        )
    assert executed.result().status_code == 200
    assert executed.result().json() == {
        "status": "success",
        "title": "Read",
        "output": {"n": [1, 2.5, None]},
        "metadata": {"k": 1},
    }
    assert (request["sessionID"], request["messageID"], request["callID"]) == ("s1", "m7", "c9")


@requirement("client-tools:execute")
async def test_calls_without_a_session_stand_in_one_thread_of_their_own(server: Served) -> None:
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        for text in "ab":
            group.create_task(notes.program.execute("read", {"text": text}))
        sessions = {(await notes.answer(status="success", output=1))["sessionID"] for _ in range(2)}
    assert len(sessions) == 1
    threads = (await server.http.get("/api/chat")).json()["threads"]
    assert [(thread["id"], thread["title"]) for thread in threads] == [
        (sessions.pop(), "Direct calls of client_notes_read")
    ]


@requirement("client-tools:execute")
async def test_a_tool_error_is_a_200_with_its_words(server: Served) -> None:
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        executed = group.create_task(notes.program.execute("read", {"text": "a"}))
        await notes.answer(status="error", error="no such note")
    assert executed.result().status_code == 200
    assert executed.result().json() == {"status": "error", "error": "no such note"}


@requirement("client-tools:execute")
async def test_a_call_that_nobody_answers_in_time_is_a_504(server: Served) -> None:
    async with ready(Program(server.http), "read") as notes:
        answer = await notes.program.execute("read", {"text": "a"}, timeout=50)
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "TIMEOUT")


@requirement("client-tools:execute")
async def test_the_default_time_is_the_servers(serve: Serve) -> None:
    server = await serve(Agent(QUIET), settings=soon(client_call=0.1))
    notes = Program(server.http)
    await notes.register("read")
    assert (await notes.execute("read", {"text": "a"})).status_code == 504


@requirement("client-tools:grace")
async def test_a_disconnect_is_a_200_with_an_error(serve: Serve, store: str) -> None:
    server = await serve(Agent(QUIET), store=store, settings=soon(client_grace=0.1))
    async with asyncio.TaskGroup() as group, ready(Program(server.http), "read") as notes:
        executed = group.create_task(notes.program.execute("read", {"text": "a"}))
        await notes.stream.request()
    assert executed.result().status_code == 200
    assert executed.result().json() == {"status": "error", "error": "client disconnected"}


async def test_an_unknown_tool_is_not_found(server: Served) -> None:
    answer = await Program(server.http).execute("read", {"text": "a"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")


@requirement("client-tools:execute")
async def test_a_bad_input_is_an_invalid_request_and_the_client_is_not_asked(server: Served) -> None:
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        bad = await notes.program.execute("read", {"text": 3})
        assert (bad.status_code, bad.json()["error"]["code"]) == (400, "INVALID_REQUEST")
        assert "`text` must be a string" in bad.json()["error"]["message"]
        group.create_task(notes.program.execute("read", {"text": "good"}))
        assert (await notes.answer(status="success", output=1))["input"] == {"text": "good"}


BAD: dict[str, Json] = {
    "no tool": {"input": {}},
    "no input": {"toolID": "client_notes_read"},
    "an input that is no object": {"toolID": "client_notes_read", "input": [1]},
    "a time of nothing": {"toolID": "client_notes_read", "input": {}, "timeout": 0},
    "a time below the least": {"toolID": "client_notes_read", "input": {}, "timeout": 0.5},
    "a time in words": {"toolID": "client_notes_read", "input": {}, "timeout": "30"},
    "a time of more than a day": {"toolID": "client_notes_read", "input": {}, "timeout": 86_400_001},
    "a request id with a blank": {"toolID": "client_notes_read", "input": {}, "requestID": "a b"},
    "an empty request id": {"toolID": "client_notes_read", "input": {}, "requestID": ""},
    "a session id that is too long": {"toolID": "client_notes_read", "input": {}, "sessionID": "s" * 129},
    "an empty message id": {"toolID": "client_notes_read", "input": {}, "messageID": ""},
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_call_is_an_invalid_request(server: Served, name: str) -> None:
    answer = await server.http.post("/client-tools/execute", json=BAD[name])
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")


async def test_an_input_that_is_too_large_is_refused(server: Served) -> None:
    notes = Program(server.http)
    await notes.register("read")
    answer = await notes.execute("read", {"text": "x" * 300_000})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "TOO_LARGE")


@requirement("client-tools:request-key")
async def test_a_request_id_stands_for_one_call(server: Served) -> None:
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        first = group.create_task(notes.program.execute("read", {"text": "a"}, requestID="job-1"))
        request = await notes.stream.request()
        assert request["requestID"] != "job-1"
        pending = await notes.program.execute("read", {"text": "a"}, requestID="job-1")
        assert (pending.status_code, pending.json()["error"]["code"]) == (409, "CONFLICT")
        await notes.program.result(request["requestID"], status="success", title="T", output="once")
        answer = (await first).json()
        again = await notes.program.execute("read", {"text": "a"}, requestID="job-1")
        assert again.status_code == 200
        assert again.json() == answer == {"status": "success", "title": "T", "output": "once"}
        other = await notes.program.execute("read", {"text": "b"}, requestID="job-1")
        assert other.status_code == 409
        await notes.program.unregister()
        kept = await notes.program.execute("read", {"text": "a"}, requestID="job-1")
        assert kept.json() == answer
    assert len([call for call in await _calls(server) if call]) == 1


@requirement("client-tools:request-key")
async def test_of_many_at_once_with_one_request_id_one_is_executed(server: Served) -> None:
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        all_at_once = [
            group.create_task(notes.program.execute("read", {"text": "a"}, requestID="job-1"))
            for _ in range(20)
        ]
        await notes.answer(status="success", output=1)
    statuses = sorted(answer.result().status_code for answer in all_at_once)
    assert statuses[0] == 200
    assert set(statuses) <= {200, 409}
    assert len(await _calls(server)) == 1


@requirement("client-tools:request-key")
async def test_a_call_that_timed_out_is_answered_so_again(server: Served) -> None:
    notes = Program(server.http)
    await notes.register("read")
    for _ in range(2):
        late = await notes.execute("read", {"text": "a"}, requestID="job-1", timeout=50)
        assert late.status_code == 504


@requirement("client-tools:request-key")
async def test_a_request_id_is_remembered_over_a_restart(serve: Serve, file_store: str) -> None:
    first = await serve(Agent(QUIET), store=file_store)
    async with ready(Program(first.http), "read") as notes, asyncio.TaskGroup() as group:
        executed = group.create_task(notes.program.execute("read", {"text": "a"}, requestID="job-1"))
        await notes.answer(status="success", output="before")
    await first.stop()
    second = await serve(Agent(QUIET), store=file_store)
    again = await Program(second.http).execute("read", {"text": "a"}, requestID="job-1")
    assert again.json() == executed.result().json()


@tool
def shout(text: str) -> str:
    """Say it loudly.

    Args:
        text: What to say.

    Returns:
        The same in capitals.
    """
    return text.upper()


@tool(needs_approval=True)
def erase(text: str) -> str:
    """Erase something.

    Args:
        text: What to erase.

    Returns:
        What was erased.
    """
    return f"{text} is gone"


@requirement("client-tools:execute")
async def test_a_tool_of_the_server_can_be_called_as_well(serve: Serve) -> None:
    server = await serve(Agent(QUIET, tools=[shout]))
    body = {"toolID": "shout", "input": {"text": "hey"}}
    answer = await server.http.post("/client-tools/execute", json=body)
    assert answer.json() == {"status": "success", "title": "shout", "output": "HEY"}


@requirement("client-tools:execute")
@pytest.mark.parametrize("yes", [True, False])
async def test_a_call_that_needs_an_approval_waits_for_it(serve: Serve, yes: bool) -> None:
    server = await serve(Agent(QUIET, tools=[erase]))
    body = {"toolID": "erase", "input": {"text": "it"}}
    async with asyncio.TaskGroup() as group:
        executed = group.create_task(server.http.post("/client-tools/execute", json=body))
        [asked] = await eventually(lambda: server.service.log.open_calls(LOCAL))
        assert asked.approval is not None
        answer = {"approvalId": asked.approval.approval_id, "approved": yes, "reason": "just so"}
        assert (await server.http.post("/api/tools/approve", json=answer)).status_code == 200
    told = executed.result().json()
    assert told == (
        {"status": "success", "title": "erase", "output": "it is gone"}
        if yes
        else {"status": "error", "error": "Denied: just so"}
    )


@requirement("client-tools:approval")
async def test_policy_may_ask_before_every_call_of_a_client(serve: Serve, store: str) -> None:
    server = await serve(Agent(QUIET), store=store, client_tools=ClientTools(approval="always"))
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        executed = group.create_task(notes.program.execute("read", {"text": "a"}))
        [asked] = await eventually(lambda: server.service.log.open_calls(LOCAL))
        early = await notes.program.result(asked.call_id, status="success", output="too early")
        assert (early.status_code, early.json()["error"]["code"]) == (409, "CONFLICT")
        assert asked.approval is not None
        yes = {"approvalId": asked.approval.approval_id, "approved": True, "input": {"text": "edited"}}
        assert (await server.http.post("/api/tools/approve", json=yes)).json() == {"ok": True}
        request = await notes.answer(status="success", output="allowed")
        assert request["input"] == {"text": "edited"}
    assert executed.result().json()["output"] == "allowed"


@requirement("client-tools:approval")
async def test_an_approval_for_the_thread_holds_for_this_version_of_the_tool_alone(serve: Serve) -> None:
    server = await serve(Agent(QUIET), client_tools=ClientTools(approval="always"))
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        group.create_task(notes.program.execute("read", {"text": "a"}, sessionID="s1"))
        [asked] = await eventually(lambda: server.service.log.open_calls(LOCAL))
        assert asked.approval is not None
        yes = {"approvalId": asked.approval.approval_id, "approved": True, "scope": "thread"}
        await server.http.post("/api/tools/approve", json=yes)
        await notes.answer(status="success", output=1)
        group.create_task(notes.program.execute("read", {"text": "b"}, sessionID="s1"))
        await notes.answer(status="success", output=2)
        await notes.program.register({"id": "read", "description": "Reads and deletes.", "parameters": {}})
        changed = group.create_task(notes.program.execute("read", {"text": "c"}, sessionID="s1"))
        [asked] = await eventually(lambda: server.service.log.open_calls(LOCAL))
        assert asked.approval is not None
        no = {"approvalId": asked.approval.approval_id, "approved": False}
        await server.http.post("/api/tools/approve", json=no)
        assert (await changed).json() == {"status": "error", "error": "Denied."}


@requirement("client-tools:approval")
async def test_a_function_decides_for_which_tool_and_input_to_ask(serve: Serve) -> None:
    def policy(tool: object, input: dict[str, object]) -> bool:
        return "secret" in str(input)

    server = await serve(Agent(QUIET), client_tools=ClientTools(approval=policy))
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        group.create_task(notes.program.execute("read", {"text": "plain"}))
        await notes.answer(status="success", output=1)
        executed = group.create_task(notes.program.execute("read", {"text": "secret"}))
        [asked] = await eventually(lambda: server.service.log.open_calls(LOCAL))
        assert asked.approval is not None
        no = {"approvalId": asked.approval.approval_id, "approved": False}
        await server.http.post("/api/tools/approve", json=no)
        assert (await executed).json()["status"] == "error"


async def _calls(server: Served) -> list[object]:
    """Every call that was ever opened, by the feed."""
    feed = await server.service.log.feed(LOCAL)
    return [news.event for news in feed if type(news.event).__name__ == "CallOpened"]
