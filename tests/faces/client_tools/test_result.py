"""Results in both dialects, their receipts, and what is shown to whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from starlette.requests import HTTPConnection

from farhand import Agent, Principal, ScriptedModel
from farhand.core.principal import LOCAL
from farhand.models.scripted import Ask
from tests.faces.client_tools.pages import paging
from tests.faces.client_tools.program import Json, Program, a_tool, asks, chat, ready, said
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.requirement import requirement

QUIET = ScriptedModel(lambda moment: "hm")
NESTED_UNKNOWN = {"error": "Unknown request ID"}


@pytest.fixture
async def server(serve: Serve, store: str) -> Served:
    return await serve(Agent(QUIET), store=store)


class Waiting:
    """A program with one request that it has not answered."""

    def __init__(self, program: Program, request_id: str, executed: asyncio.Task[Json]) -> None:
        self.program = program
        self.request_id = request_id
        self.executed = executed


@asynccontextmanager
async def waiting(server: Served, **more: Json) -> AsyncIterator[Waiting]:
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        executed = group.create_task(notes.program.execute("read", {"text": "a"}, **more))
        request = await notes.stream.request()
        yield Waiting(notes.program, request["requestID"], executed)
        await notes.program.result(request["requestID"], status="error", error="the test is over")


@requirement("client-tools:result")
async def test_a_flat_result_is_answered_with_true_and_again_when_it_is_repeated(server: Served) -> None:
    async with waiting(server) as has:
        for _ in range(2):
            answer = await has.program.result(has.request_id, status="success", title="T", output={"a": 1})
            assert (answer.status_code, answer.json()) == (200, True)
        assert (await has.executed).json() == {"status": "success", "title": "T", "output": {"a": 1}}


@requirement("client-tools:result")
async def test_a_nested_result_is_answered_with_success_and_ignored_when_it_is_repeated(
    server: Served,
) -> None:
    result = {"status": "success", "title": "T", "output": "text", "metadata": {"pages": 3}}
    async with waiting(server) as has:
        first = await has.program.nested(has.request_id, **result)
        assert (first.status_code, first.json()) == (200, {"success": True})
        second = await has.program.nested(has.request_id, **result)
        assert (second.status_code, second.json()) == (200, {"success": True, "ignored": True})
        assert (await has.executed).json() == result


@requirement("client-tools:result")
async def test_both_dialects_say_the_same_result(server: Served) -> None:
    async with waiting(server) as has:
        await has.program.result(has.request_id, status="success", output="same")
        again = await has.program.nested(has.request_id, status="success", title="other", output="same")
        assert again.json() == {"success": True, "ignored": True}


@requirement("client-tools:result")
@pytest.mark.parametrize("dialect", ["flat", "nested"])
async def test_an_error_is_the_outcome_of_the_tool(server: Served, dialect: str) -> None:
    async with waiting(server) as has:
        bring = has.program.result if dialect == "flat" else has.program.nested
        assert (await bring(has.request_id, status="error", error="no such note")).status_code == 200
        assert (await has.executed).json() == {"status": "error", "error": "no such note"}


@requirement("client-tools:result")
async def test_a_flat_result_may_leave_out_what_it_does_not_have(server: Served) -> None:
    async with waiting(server) as has:
        await has.program.result(has.request_id, status="success")
        assert (await has.executed).json() == {
            "status": "success",
            "title": "client_notes_read",
            "output": None,
        }
    async with waiting(server) as has:
        await has.program.result(has.request_id, status="error")
        assert (await has.executed).json() == {"status": "error", "error": "failed"}


async def test_an_output_that_breaks_the_schema_it_was_promised_is_a_failure_that_says_so(
    server: Served,
) -> None:
    offered = a_tool("count", output={"type": "object", "required": ["n"]})
    async with ready(Program(server.http), offered) as notes, asyncio.TaskGroup() as group:
        executed = group.create_task(notes.program.execute("count", {"text": "a"}))
        request = await notes.stream.request()
        for _ in range(2):
            bad = await notes.program.result(request["requestID"], status="success", output={"m": 1})
            assert (bad.status_code, bad.json()) == (200, True)
        told = (await executed).json()
        assert told["status"] == "error"
        assert "`n` is missing" in told["error"]
        fine = group.create_task(notes.program.execute("count", {"text": "b"}))
        await notes.answer(status="success", output={"n": 1})
        assert (await fine).json()["output"] == {"n": 1}


@requirement("client-tools:result")
@pytest.mark.parametrize("dialect", ["flat", "nested"])
async def test_another_result_is_a_conflict(server: Served, dialect: str) -> None:
    async with waiting(server) as has:
        bring = has.program.result if dialect == "flat" else has.program.nested
        await bring(has.request_id, status="success", title="T", output=1)
        other = await bring(has.request_id, status="success", title="T", output=2)
        assert (other.status_code, other.json()["error"]["code"]) == (409, "CONFLICT")
        assert (await has.executed).json()["output"] == 1


@requirement("client-tools:result")
async def test_a_result_after_the_deadline_is_gone_or_unknown_by_dialect(server: Served) -> None:
    async with waiting(server, timeout=100) as has:
        assert (await has.executed).status_code == 504
        flat = await has.program.result(has.request_id, status="success", output=1)
        assert (flat.status_code, flat.json()["error"]["code"]) == (410, "GONE")
        nested = await has.program.nested(has.request_id, status="success", title="T", output=1)
        assert (nested.status_code, nested.json()) == (404, NESTED_UNKNOWN)


@requirement("client-tools:result")
async def test_a_result_for_a_stopped_run_is_gone_or_unknown_by_dialect(serve: Serve, store: str) -> None:
    server = await serve(asks(Ask("client_notes_read", {"text": "a"})), store=store)
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        group.create_task(chat(server.http))
        request = await notes.stream.request()
        assert (await server.http.post("/api/chat/t1/stop")).json() == {"ok": True}
        flat = await notes.program.result(request["requestID"], status="success", output=1)
        assert (flat.status_code, flat.json()["error"]["code"]) == (410, "GONE")
        nested = await notes.program.nested(request["requestID"], status="success", output=1)
        assert (nested.status_code, nested.json()) == (404, NESTED_UNKNOWN)
        call = await server.service.log.get_call(LOCAL, request["requestID"])
        assert call is not None
        assert "stopped by the user" in str(call.outcome)


@requirement("client-tools:result")
@pytest.mark.parametrize("request_id", ["call_00000000000000000000000000000000", "anything"])
async def test_an_unknown_request_is_not_found(server: Served, request_id: str) -> None:
    notes = Program(server.http)
    flat = await notes.result(request_id, status="success", output=1)
    assert (flat.status_code, flat.json()["error"]["code"]) == (404, "NOT_FOUND")
    nested = await notes.nested(request_id, status="success", output=1)
    assert (nested.status_code, nested.json()) == (404, NESTED_UNKNOWN)


BAD: dict[str, Json] = {
    "nothing": {},
    "no request": {"status": "success", "output": 1},
    "an empty request": {"requestID": "", "status": "success", "output": 1},
    "an empty nested request": {"requestID": "", "result": {"status": "error", "error": "e"}},
    "no status": {"requestID": "x", "output": 1},
    "another status": {"requestID": "x", "status": "done"},
    "a nested status that is none": {"requestID": "x", "result": {"status": "done"}},
    "both dialects": {"requestID": "x", "status": "success", "result": {"status": "error", "error": "e"}},
    "a nested success without output": {"requestID": "x", "result": {"status": "success", "title": "T"}},
    "a nested error without words": {"requestID": "x", "result": {"status": "error"}},
    "a title that is no text": {"requestID": "x", "status": "success", "title": 3},
    "metadata that is no object": {"requestID": "x", "status": "success", "metadata": []},
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_result_is_an_invalid_request(server: Served, name: str) -> None:
    answer = await server.http.post("/client-tools/result", json=BAD[name])
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize(
    "more",
    [
        {"status": "success", "title": "x" * 257},
        {"status": "success", "metadata": {"a": "x" * 17_000}},
        {"status": "error", "error": "x" * 4_097},
        {"status": "success", "output": "x" * 1_100_000},
    ],
)
async def test_what_is_too_large_is_refused_and_nothing_is_lost(server: Served, more: Json) -> None:
    async with waiting(server) as has:
        answer = await has.program.result(has.request_id, **more)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "TOO_LARGE")
        await has.program.result(has.request_id, status="success", output="small")
        assert (await has.executed).json()["output"] == "small"


async def test_title_and_metadata_are_kept_and_the_model_gets_the_output_alone(serve: Serve) -> None:
    server = await serve(asks(Ask("client_notes_read", {"text": "a"})))
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        answer = group.create_task(chat(server.http))
        request = await notes.answer(
            status="success", title="Read a note", output="the note", metadata={"size": 8}
        )
    assert said(answer.result()) == "the note"
    call = await server.service.log.get_call(LOCAL, request["requestID"])
    assert call is not None
    assert (call.title, call.metadata) == ("Read a note", {"size": 8})


def someone(request: HTTPConnection) -> Principal | None:
    """`Bearer subject:scope,scope` lets in whoever it names."""
    name, _, scopes = request.headers.get("authorization", "").removeprefix("Bearer ").partition(":")
    return Principal("acme", name, frozenset(scopes.split(","))) if name else None


@requirement("client-tools:owner")
async def test_each_route_needs_its_scope(serve: Serve) -> None:
    server = await serve(Agent(QUIET), authenticate=someone)
    client, other = {"authorization": "Bearer ann:client"}, {"authorization": "Bearer ann:chat,answer"}
    for headers, status in ((client, 200), (other, 403)):
        answer = await server.http.post(
            "/client-tools/register", json={"clientID": "c", "tools": []}, headers=headers
        )
        assert answer.status_code == status
        assert (await server.http.get("/client-tools/tools", headers=headers)).status_code == status
    body = {"toolID": "client_c_t", "input": {}}
    refused = await server.http.post("/client-tools/execute", json=body, headers=client)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "FORBIDDEN")
    may = {"authorization": "Bearer ann:execute"}
    assert (await server.http.post("/client-tools/execute", json=body, headers=may)).status_code == 404


@requirement("client-tools:owner")
async def test_who_may_only_be_a_client_answers_for_no_page(serve: Serve) -> None:
    server = await serve(paging(), authenticate=someone)
    may = {"authorization": "Bearer ann:chat"}
    await chat_as(server, may)
    [call] = await server.service.log.open_calls(Principal("acme", "ann").owner)
    body = {"requestID": call.call_id, "status": "success", "output": {"viewKey": "forged"}}
    refused = await server.http.post(
        "/client-tools/result", json=body, headers={"authorization": "Bearer ann:client"}
    )
    assert refused.status_code == 404
    taken = await server.http.post(
        "/client-tools/result", json=body, headers={"authorization": "Bearer ann:client,answer"}
    )
    assert taken.status_code == 200


async def chat_as(server: Served, headers: dict[str, str]) -> None:
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
    answer = await server.http.post("/api/chat", json={"id": "t1", "messages": [message]}, headers=headers)
    assert answer.status_code == 200


@requirement("client-tools:owner")
async def test_clients_calls_and_streams_of_another_do_not_exist(serve: Serve, store: str) -> None:
    server = await serve(Agent(QUIET), store=store, authenticate=someone)
    every = "client,execute,answer,chat"
    ann, bob = ({"authorization": f"Bearer {name}:{every}"} for name in ("ann", "bob"))
    async with _as(server, ann) as as_ann, _as(server, bob) as as_bob:
        await _check_strangers(Program(as_ann), Program(as_bob))


async def _check_strangers(own: Program, foreign: Program) -> None:
    async with ready(own, "read") as notes, asyncio.TaskGroup() as group:
        executed = group.create_task(own.execute("read", {"text": "a"}))
        request = await notes.stream.request()
        assert await foreign.tools() == []
        assert (await foreign.http.get("/client-tools/tools")).json() == {}
        assert (await foreign.execute("read", {"text": "b"})).status_code == 404
        assert (await foreign.unregister()).json() == {"success": True, "unregistered": []}
        stolen = await foreign.result(request["requestID"], status="success", output="stolen")
        assert stolen.status_code == 404
        # the same id is another client there, and takes nothing from this one
        async with ready(foreign, "read"):
            await own.result(request["requestID"], status="success", output="own")
            assert (await executed).json()["output"] == "own"
        assert len(await own.tools()) == 1


def _as(server: Served, headers: dict[str, str]) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=None)
