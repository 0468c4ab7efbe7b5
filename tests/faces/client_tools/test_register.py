"""Registering, listing and withdrawing tools: every row of the contract, and what is refused."""

from __future__ import annotations

import pytest

from farhand import Agent, Limits, ScriptedModel, Settings, Toolbox
from tests.faces.client_tools.program import TEXT, Json, Program, a_tool
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.requirement import requirement

QUIET = ScriptedModel(lambda moment: "hm")


@pytest.fixture
async def server(serve: Serve, store: str) -> Served:
    return await serve(Agent(QUIET), store=store)


@pytest.fixture
def notes(server: Served) -> Program:
    return Program(server.http)


@requirement("client-tools:register")
async def test_a_registration_is_answered_with_the_full_ids(notes: Program) -> None:
    answer = await notes.register("read", "search")
    assert answer.status_code == 200
    assert answer.json() == {"registered": ["client_notes_read", "client_notes_search"]}


async def test_tools_of_a_client_are_listed_with_full_ids(notes: Program) -> None:
    assert await notes.tools() == []
    await notes.register("read")
    full = {"id": "client_notes_read", "description": "Can read.", "parameters": TEXT}
    assert await notes.tools() == [full]
    assert (await notes.http.get("/client-tools/tools")).json() == {"client_notes_read": full}


async def test_all_tools_are_a_map_over_all_clients_of_the_caller(notes: Program, server: Served) -> None:
    assert (await server.http.get("/client-tools/tools")).json() == {}
    await notes.register("read")
    await Program(server.http, "mail").register("send")
    listed = (await server.http.get("/client-tools/tools")).json()
    assert list(listed) == ["client_notes_read", "client_mail_send"]


@requirement("client-tools:register")
async def test_an_empty_schema_counts_as_one_of_an_object(notes: Program) -> None:
    assert (await notes.register(a_tool("any", parameters={}))).status_code == 200
    assert (await notes.tools())[0]["parameters"] == {"type": "object"}


@requirement("client-tools:register")
async def test_a_registration_of_nothing_is_one(notes: Program) -> None:
    assert (await notes.register()).json() == {"registered": []}


@requirement("client-tools:register")
async def test_registering_again_replaces_a_tool_and_keeps_the_others(notes: Program) -> None:
    await notes.register("read", "search")
    await notes.register(a_tool("read", description="Can read better."))
    assert [(tool["id"], tool["description"]) for tool in await notes.tools()] == [
        ("client_notes_read", "Can read better."),
        ("client_notes_search", "Can search."),
    ]


@requirement("client-tools:register")
async def test_a_changed_tool_has_another_version_and_an_unchanged_one_the_same(
    notes: Program, server: Served
) -> None:
    async def version() -> str:
        tools = (await server.http.get("/api/tools")).json()["tools"]
        return next(str(tool["version"]) for tool in tools if tool["name"] == "client_notes_read")

    await notes.register("read")
    first = await version()
    await notes.register("read")
    assert await version() == first
    await notes.register(a_tool("read", parameters={}))
    assert await version() != first


BAD: dict[str, Json] = {
    "no client": {"tools": []},
    "no tools": {"clientID": "c"},
    "an empty client": {"clientID": "", "tools": []},
    "a client with a dot": {"clientID": "a.b", "tools": []},
    "a long client": {"clientID": "a" * 65, "tools": []},
    "a tool without an id": {"clientID": "c", "tools": [{"description": "x", "parameters": {}}]},
    "a tool with a blank in its id": {"clientID": "c", "tools": [a_tool("a b")]},
    "a tool without a description": {"clientID": "c", "tools": [{"id": "a", "parameters": {}}]},
    "an empty description": {"clientID": "c", "tools": [a_tool("a", description="\u202e ")]},
    "a long description": {"clientID": "c", "tools": [a_tool("a", description="x" * 4097)]},
    "a tool without parameters": {"clientID": "c", "tools": [{"id": "a", "description": "x"}]},
    "parameters that are no object": {"clientID": "c", "tools": [a_tool("a", parameters=[])]},
    "a schema of a list": {"clientID": "c", "tools": [a_tool("a", parameters={"type": "array"})]},
    "a remote reference": {
        "clientID": "c",
        "tools": [a_tool("a", parameters={"$ref": "http://127.0.0.1:9/x.json"})],
    },
    "an output schema that is none": {"clientID": "c", "tools": [a_tool("a", output={"type": "nothing"})]},
    "an output schema from elsewhere": {"clientID": "c", "tools": [a_tool("a", output={"$ref": "x"})]},
    "the same id twice": {"clientID": "c", "tools": [a_tool("a"), a_tool("a")]},
    "a negative grace": {"clientID": "c", "tools": [], "graceSec": -1},
    "a grace of more than a day": {"clientID": "c", "tools": [], "graceSec": 86401},
    "a grace that is no number": {"clientID": "c", "tools": [], "graceSec": "5"},
    "a list": [],
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_registration_is_an_invalid_request_and_registers_nothing(
    notes: Program, name: str
) -> None:
    answer = await notes.http.post("/client-tools/register", json=BAD[name])
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "INVALID_REQUEST"
    assert answer.json()["error"]["message"]
    assert (await notes.http.get("/client-tools/tools")).json() == {}


async def test_one_bad_tool_keeps_the_good_ones_out(notes: Program) -> None:
    assert (await notes.register("good", a_tool("bad", parameters={"$ref": "x"}))).status_code == 400
    assert await notes.tools() == []


@requirement("client-tools:no-ambiguity")
async def test_two_clients_can_not_have_the_same_full_name(server: Served) -> None:
    assert (await Program(server.http, "a").register("b_c")).status_code == 200
    second = await Program(server.http, "a_b").register("c", "d")
    assert second.status_code == 409
    assert second.json()["error"]["code"] == "CONFLICT"
    assert await Program(server.http, "a_b").tools() == []


@requirement("client-tools:no-ambiguity")
async def test_a_tool_of_the_server_is_not_shadowed(serve: Serve) -> None:
    box = Toolbox()
    box.add("client_notes_read", "The server's own.", {}, lambda: "own")
    server = await serve(Agent(QUIET, tools=box))
    answer = await Program(server.http).register("search", "read")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "CONFLICT")
    assert await Program(server.http).tools() == []


async def test_a_client_has_a_limit_of_tools_and_a_principal_one_of_clients(serve: Serve) -> None:
    limits = Limits(tools_per_client=2, clients_per_principal=2)
    server = await serve(Agent(QUIET), settings=Settings(limits=limits))
    notes = Program(server.http)
    assert (await notes.register("a", "b")).status_code == 200
    assert (await notes.register("c")).status_code == 400
    assert (await notes.register("a", "b")).status_code == 200
    assert (await Program(server.http, "mail").register("a")).status_code == 200
    third = await Program(server.http, "third").register("a")
    assert (third.status_code, third.json()["error"]["code"]) == (429, "TOO_MANY")
    assert third.headers["retry-after"]
    await notes.unregister()
    assert (await Program(server.http, "third").register("a")).status_code == 200


async def test_a_registration_that_is_too_large_is_refused(notes: Program) -> None:
    answer = await notes.register(a_tool("a", description="x" * 300_000))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "TOO_LARGE")


@requirement("client-tools:unregister")
async def test_all_tools_leave_when_none_is_named(notes: Program) -> None:
    await notes.register("read", "search")
    answer = await notes.unregister()
    assert answer.json() == {
        "success": True,
        "unregistered": ["client_notes_read", "client_notes_search"],
    }
    assert await notes.tools() == []


@requirement("client-tools:unregister")
@pytest.mark.parametrize(
    ("ids", "gone"),
    [
        ([], []),
        (["read"], ["client_notes_read"]),
        (["client_notes_search"], ["client_notes_search"]),
        (["read", "client_notes_read", "unknown"], ["client_notes_read"]),
        (["unknown"], []),
    ],
)
async def test_some_tools_leave_by_short_or_full_id(notes: Program, ids: list[str], gone: list[str]) -> None:
    await notes.register("read", "search")
    assert (await notes.unregister(toolIDs=ids)).json() == {"success": True, "unregistered": gone}
    left = [tool["id"] for tool in await notes.tools()]
    assert left == [name for name in ("client_notes_read", "client_notes_search") if name not in gone]


@requirement("client-tools:unregister")
async def test_who_was_never_here_leaves_without_a_word(notes: Program) -> None:
    assert (await notes.unregister()).json() == {"success": True, "unregistered": []}


async def test_a_program_unregisters_what_is_its_own(notes: Program) -> None:
    await notes.register("read", holder="notes.1")
    await notes.register("read", holder="notes.2")
    assert (await notes.unregister(holder="notes.1")).json() == {"success": True, "unregistered": []}
    assert [tool["id"] for tool in await notes.tools()] == ["client_notes_read"]
    gone = {"success": True, "unregistered": ["client_notes_read"]}
    assert (await notes.unregister(holder="notes.2")).json() == gone


@pytest.mark.parametrize("holder", ["mail.1", "notes.", "notes.a b", 1])
async def test_a_program_has_the_name_of_its_client_and_a_suffix(notes: Program, holder: Json) -> None:
    for answer in (await notes.register("read", holder=holder), await notes.unregister(holder=holder)):
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert await notes.tools() == []


@pytest.mark.parametrize("body", [{}, {"clientID": "a b"}, {"clientID": "c", "toolIDs": "read"}, []])
async def test_a_bad_unregistration_is_an_invalid_request(notes: Program, body: Json) -> None:
    answer = await notes.http.request("DELETE", "/client-tools/unregister", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")


async def test_other_refusals_have_codes_of_their_own(notes: Program, server: Served) -> None:
    stranger = await server.stranger.get("/client-tools/tools")
    assert (stranger.status_code, stranger.json()["error"]["code"]) == (401, "UNAUTHENTICATED")
    form = await notes.http.post("/client-tools/register", data={"clientID": "c"})
    assert (form.status_code, form.json()["error"]["code"]) == (415, "WRONG_TYPE")
    method = await notes.http.get("/client-tools/register")
    assert (method.status_code, method.json()["error"]["code"]) == (405, "WRONG_METHOD")
    bad_id = await notes.http.get("/client-tools/tools/a.b")
    assert (bad_id.status_code, bad_id.json()["error"]["code"]) == (400, "INVALID_REQUEST")
