"""The two suites of the servers that client tools come from, assertion by assertion.

One was written against a server in Go (`citest/service`), the other against one in TypeScript. Each test here
is one of theirs, over real HTTP; where farhand answers otherwise, the name of the test says so.
"""

from __future__ import annotations

import asyncio
import uuid

import httpx2
import pytest

from farhand import Agent, ScriptedModel
from farhand.core.principal import LOCAL
from farhand.core.settings import Settings, Timeouts
from farhand.models.scripted import Ask
from tests.faces.client_tools.program import Json, Program, Stream, asks, chat, eventually, said
from tests.faces.conftest import Serve
from tests.faces.served import Served

OBJECT = {"type": "object"}
WITHIN_SEC = 20.0


def a_tool(tool_id: str, description: str = "A tool", parameters: Json = None) -> Json:
    return {"id": tool_id, "description": description, "parameters": {} if parameters is None else parameters}


@pytest.fixture
async def server(serve: Serve) -> Served:
    return await serve(Agent(ScriptedModel(lambda moment: "hm")))


@pytest.fixture
def client_id() -> str:
    return f"test-client-{uuid.uuid4().hex[:8]}"


async def register(http: httpx2.AsyncClient, client_id: str, *tools: Json) -> httpx2.Response:
    return await http.post("/client-tools/register", json={"clientID": client_id, "tools": list(tools)})


async def listed(http: httpx2.AsyncClient, client_id: str) -> list[Json]:
    response = await http.get(f"/client-tools/tools/{client_id}")
    assert response.status_code == 200
    tools: list[Json] = response.json()
    return tools


# -------------------------------------------------------------------------------------- Go: listing


async def test_go_tools_of_a_client_that_registered_none_are_an_empty_array(
    server: Served, client_id: str
) -> None:
    assert await listed(server.http, client_id) == []


async def test_go_a_registered_tool_is_listed_with_its_description_and_prefix(
    server: Served, client_id: str
) -> None:
    await register(server.http, client_id, a_tool("test-tool", "A test tool", OBJECT))
    [tool] = await listed(server.http, client_id)
    assert tool["description"] == "A test tool"
    assert tool["id"].startswith("client_")


async def test_go_several_registered_tools_are_listed(server: Served, client_id: str) -> None:
    await register(
        server.http, client_id, a_tool("tool1", "First tool", OBJECT), a_tool("tool2", "Second tool", OBJECT)
    )
    assert len(await listed(server.http, client_id)) == 2


async def test_go_all_tools_are_an_empty_map_at_first(server: Served) -> None:
    response = await server.http.get("/client-tools/tools")
    assert (response.status_code, response.json()) == (200, {})


async def test_go_all_tools_are_a_map_across_clients(server: Served, client_id: str) -> None:
    await register(server.http, client_id, a_tool("tool1"))
    await register(server.http, f"other-{client_id}", a_tool("tool2"))
    tools = (await server.http.get("/client-tools/tools")).json()
    assert set(tools) == {f"client_{client_id}_tool1", f"client_other-{client_id}_tool2"}
    assert all(name == tool["id"] for name, tool in tools.items())


# -------------------------------------------------------------------------------------- Go: registering


async def test_go_a_registration_gives_back_the_full_ids(server: Served, client_id: str) -> None:
    response = await register(server.http, client_id, a_tool("my-tool", "My custom tool", OBJECT))
    assert (response.status_code, response.json()) == (200, {"registered": [f"client_{client_id}_my-tool"]})


async def test_go_a_registration_without_a_client_is_a_400(server: Served) -> None:
    response = await server.http.post("/client-tools/register", json={"tools": [a_tool("tool")]})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "INVALID_REQUEST")


async def test_go_clients_that_register_and_leave_at_the_same_time_do_not_disturb_each_other(
    server: Served,
) -> None:
    async def come(number: int) -> None:
        await register(server.http, f"many-{number}", a_tool("tool"))
        if number % 2:
            await Program(server.http, f"many-{number}").unregister()

    async with asyncio.timeout(WITHIN_SEC), asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(come(number))
    tools = (await server.http.get("/client-tools/tools")).json()
    assert set(tools) == {f"client_many-{number}_tool" for number in range(0, 20, 2)}


async def test_go_all_tools_of_a_client_are_unregistered(server: Served, client_id: str) -> None:
    await register(server.http, client_id, a_tool("tool1"), a_tool("tool2"))
    response = await Program(server.http, client_id).unregister()
    assert len(response.json()["unregistered"]) == 2
    assert await listed(server.http, client_id) == []


async def test_go_one_tool_of_a_client_is_unregistered(server: Served, client_id: str) -> None:
    await register(server.http, client_id, a_tool("tool1"), a_tool("tool2"))
    response = await Program(server.http, client_id).unregister(toolIDs=["tool1"])
    assert len(response.json()["unregistered"]) == 1
    assert len(await listed(server.http, client_id)) == 1


# -------------------------------------------------------------------------------------- Go: results and calls


async def test_go_a_result_for_a_request_that_never_was_is_a_404(server: Served) -> None:
    body = {"requestID": "non-existent-request", "status": "success", "output": "test output"}
    response = await server.http.post("/client-tools/result", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")


async def test_go_a_result_without_a_request_is_a_400(server: Served) -> None:
    response = await server.http.post(
        "/client-tools/result", json={"status": "success", "output": "test output"}
    )
    assert (response.status_code, response.json()["error"]["code"]) == (400, "INVALID_REQUEST")


async def test_go_a_call_of_a_tool_that_is_not_there_is_a_404(server: Served) -> None:
    ids = {"requestID": "req-123", "sessionID": "session-123", "messageID": "msg-123", "callID": "call-123"}
    response = await server.http.post(
        "/client-tools/execute", json={"toolID": "non-existent-tool", **ids, "input": {}}
    )
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")


async def test_go_a_call_that_nobody_answers_is_a_504(server: Served, client_id: str) -> None:
    await register(server.http, client_id, a_tool("slow"))
    program = Program(server.http, client_id)
    async with program.listen():
        response = await program.execute("slow", {}, timeout=200)
    assert (response.status_code, response.json()["error"]["code"]) == (504, "TIMEOUT")


# -------------------------------------------------------------------------------------- Go: the stream


async def test_go_the_stream_opens_at_once_with_its_headers(server: Served, client_id: str) -> None:
    async with server.http.stream("GET", f"/client-tools/pending/{client_id}") as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-cache"


async def test_go_the_stream_pings_with_empty_data(serve: Serve, client_id: str) -> None:
    # theirs is skipped, since it would take 30 seconds
    served = await serve(Agent(ScriptedModel([])), settings=Settings(timeouts=Timeouts(client_ping=0.1)))
    async with Program(served.http, client_id).listen() as stream:
        ping = await stream.ping()
    assert (ping.event, ping.data) == ("ping", "")


async def test_go_a_client_that_leaves_its_stream_leaves_the_server_running(
    server: Served, client_id: str
) -> None:
    async with Program(server.http, client_id).listen():
        pass
    assert (await server.http.get("/readyz")).status_code == 200


async def test_go_the_client_of_a_tool_is_found_by_its_full_id(server: Served, client_id: str) -> None:
    await register(server.http, client_id, a_tool("findme", "Find me tool"))
    tool = server.app.sessions.registry.get(LOCAL, f"client_{client_id}_findme")
    assert tool is not None
    assert tool.client_id == client_id
    assert server.app.sessions.registry.get(LOCAL, "non-existent") is None


async def test_go_a_client_that_leaves_loses_its_tools_after_a_grace_and_not_at_once(
    serve: Serve, client_id: str
) -> None:
    settings = Settings(timeouts=Timeouts(client_grace=0.2))
    served = await serve(Agent(ScriptedModel([])), settings=settings)
    program = Program(served.http, client_id)
    await program.register(a_tool("tool1"))
    async with program.listen():
        assert len(await program.tools()) == 1
    # a page reload or a short cut costs nothing
    assert len(await program.tools()) == 1

    async def gone() -> bool:
        return not await program.tools()

    assert await eventually(gone)


# -------------------------------------------------------------------------------------- TypeScript


async def test_ts_a_registration_contains_the_full_id(server: Served) -> None:
    parameters = {"type": "object", "properties": {"input": {"type": "string"}}}
    tool = a_tool("test_tool", "A test tool for integration testing", parameters)
    response = await register(server.http, "test-client-1", tool)
    assert response.status_code == 200
    assert "client_test-client-1_test_tool" in response.json()["registered"]


async def test_ts_three_tools_are_registered_at_once(server: Served) -> None:
    tools = [a_tool(f"tool{number}", f"Tool {number}") for number in (1, 2, 3)]
    assert len((await register(server.http, "test-client-2", *tools)).json()["registered"]) == 3


async def test_ts_a_client_reads_its_tools(server: Served) -> None:
    await register(server.http, "test-client-get", a_tool("get_test", "Get test tool"))
    tools = await listed(server.http, "test-client-get")
    assert tools[0]["description"] == "Get test tool"


async def test_ts_an_unknown_client_has_no_tools(server: Served) -> None:
    assert await listed(server.http, "unknown-client-xyz") == []


async def test_ts_all_tools_have_those_of_both_clients(server: Served) -> None:
    await register(server.http, "all-tools-client-1", a_tool("all_tool_1"))
    await register(server.http, "all-tools-client-2", a_tool("all_tool_2"))
    tools = (await server.http.get("/client-tools/tools")).json()
    assert isinstance(tools, dict)
    for name in ("all_tool_1", "all_tool_2"):
        assert any(name in full for full in tools)


async def test_ts_a_named_tool_is_unregistered_and_the_other_stays(server: Served) -> None:
    await register(server.http, "unregister-client", a_tool("keep_tool"), a_tool("remove_tool"))
    response = await Program(server.http, "unregister-client").unregister(toolIDs=["remove_tool"])
    assert response.status_code == 200
    assert response.json() == {"success": True, "unregistered": ["client_unregister-client_remove_tool"]}
    assert len(await listed(server.http, "unregister-client")) == 1


async def test_ts_without_tool_ids_all_are_unregistered(server: Served) -> None:
    await register(server.http, "unregister-all-client", a_tool("tool1"), a_tool("tool2"))
    assert (await Program(server.http, "unregister-all-client").unregister()).status_code == 200
    assert await listed(server.http, "unregister-all-client") == []


async def test_ts_a_nested_result_for_an_unknown_request_is_a_404_in_its_words(server: Served) -> None:
    result = {"status": "success", "title": "Test", "output": "Test output"}
    response = await Program(server.http).nested("unknown-request-id", **result)
    assert (response.status_code, response.json()["error"]) == (404, "Unknown request ID")


async def test_ts_the_stream_of_a_registered_client_opens(server: Served) -> None:
    await register(server.http, "sse-test-client", a_tool("sse_tool", "SSE test tool"))
    async with server.http.stream("GET", "/client-tools/pending/sse-test-client") as response:
        assert response.status_code == 200
        assert "text/event-stream" in response.headers["content-type"]


# -------------------------------------------------------------------------------------- the life of a request


class ToolClient:
    """The client in the design: it registers, connects, executes by the tool's short name and posts back."""

    def __init__(self, program: Program, *, nested: bool) -> None:
        self.program = program
        self.nested = nested
        self.seen: list[Json] = []

    async def serve_one(self, stream: Stream) -> httpx2.Response:
        request = await stream.request()
        self.seen.append(request)
        name = request["tool"].replace(f"client_{self.program.client_id}_", "")
        result = {"status": "success", "title": f"{name} ran", "output": f"found {request['input']['query']}"}
        send = self.program.nested if self.nested else self.program.result
        return await send(request["requestID"], **result, metadata={"count": 1})


@pytest.mark.parametrize("nested", [False, True], ids=["flat, as in Go", "nested, as in TypeScript"])
async def test_a_registered_tool_is_called_by_the_model_and_by_execute(serve: Serve, *, nested: bool) -> None:
    served = await serve(asks(Ask("client_docs_search", {"query": "tea"})))
    program = Program(served.http, "docs")
    query = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    await program.register(a_tool("search", "Search the docs", query))
    client = ToolClient(program, nested=nested)
    async with program.listen() as stream, asyncio.timeout(WITHIN_SEC), asyncio.TaskGroup() as group:
        talk = group.create_task(chat(served.http))
        receipt = await client.serve_one(stream)
        assert (receipt.status_code, receipt.json()) == (200, {"success": True} if nested else True)
        # only the output goes to the model
        assert said(await talk) == "found tea"
        called = group.create_task(program.execute("search", {"query": "milk"}))
        await client.serve_one(stream)
        answer = (await called).json()
    assert answer == {
        "status": "success",
        "title": "search ran",
        "output": "found milk",
        "metadata": {"count": 1},
    }
    first = client.seen[0]
    assert set(first) == {"type", "requestID", "sessionID", "messageID", "callID", "tool", "input"}
    assert (first["type"], first["sessionID"], first["tool"]) == ("client-tool-request", "t1", "search")
