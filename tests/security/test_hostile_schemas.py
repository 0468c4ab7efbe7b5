"""Hostile schemas: what a client registers is bounded, fetches nothing, hides nothing, shadows nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from farhand.core.settings import Limits
from tests.requirement import requirement
from tests.security.attack import attack
from tests.security.target import Json, Target, serve_target

pytestmark = requirement("tools:gate")


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    """One that registers as often as it likes: here it is the schemas that are tried."""
    async with serve_target(Limits(registrations_per_min=10_000)) as target:
        yield target


def tool(parameters: Json = None, **more: Json) -> Json:
    return {"id": "lamp", "description": "A lamp.", "parameters": parameters or {}, **more}


async def register(target: Target, *tools: Json, client: str = "desk", who: str = "bob") -> int:
    body = {"clientID": client, "tools": list(tools)}
    return int((await target.send(who, "POST", "/client-tools/register", body)).status_code)


async def refused(target: Target, schema: Json) -> None:
    assert await register(target, tool(schema)) == 400
    assert await register(target, tool(output=schema)) == 400
    assert (await target.send("bob", "GET", "/client-tools/tools")).json() == {}


@attack("client_tools")
async def test_a_schema_that_refers_elsewhere_is_refused_and_nothing_is_fetched(
    target: Target, face: str
) -> None:
    asked: list[str] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(str(await reader.readline()))
        writer.close()

    trap = await asyncio.start_server(note, "127.0.0.1", 0)
    port = trap.sockets[0].getsockname()[1]
    async with trap:
        for place in (
            f"http://127.0.0.1:{port}/schema",
            f"http://localhost:{port}/schema#/$defs/x",
            "file:///etc/passwd",
            "//127.0.0.1/x",
            "other.json",
            "#anchor",
            "urn:uuid:0",
            "https://json-schema.org/draft/2020-12/schema",
        ):
            await refused(target, {"type": "object", "properties": {"x": {"$ref": place}}})
            await refused(target, {"type": "object", "$defs": {"unused": {"$ref": place}}})
        await refused(target, {"type": "object", "$schema": f"http://127.0.0.1:{port}/meta"})
        await refused(target, {"type": "object", "$id": f"http://127.0.0.1:{port}/"})
    assert asked == []


@attack("client_tools")
async def test_references_that_go_in_a_circle_are_refused(target: Target, face: str) -> None:
    await refused(target, {"type": "object", "$ref": "#"})
    await refused(
        target, {"type": "object", "allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/a"}}}
    )
    two = {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}
    await refused(target, {"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": two})


@attack("client_tools")
async def test_definitions_that_double_thirty_times_are_refused(target: Target, face: str) -> None:
    levels: Json = {"d0": {"type": "string"}}
    for level in range(1, 30):
        levels[f"d{level}"] = {"allOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
    await refused(target, {"type": "object", "properties": {"x": {"$ref": "#/$defs/d29"}}, "$defs": levels})


@attack("client_tools")
@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$", "(a|a)*b{0,900}{0,900}", "(?=x)y", r"(\w+)\1", "x" * 300, "(" * 200 + ")" * 200,
        "[", "(?P<n>", "a{9999999}",
    ],
)  # fmt: skip
async def test_a_pattern_never_holds_up_anybody(target: Target, face: str, pattern: str) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}
    if await register(target, tool(schema)) == 200:
        body = {"toolID": "client_desk_lamp", "input": {"x": "a" * 50_000 + "!"}, "timeout": 50}
        await target.send("bob", "POST", "/client-tools/execute", body)
        target.statuses[:] = [each for each in target.statuses if each[1] != 504]


@attack("client_tools")
async def test_a_schema_that_is_too_large_or_too_deep_is_refused(target: Target, face: str) -> None:
    deep: Json = {"type": "string"}
    for _ in range(20):
        deep = {"type": "object", "properties": {"x": deep}}
    await refused(target, deep)
    await refused(target, {"type": "object", "properties": {f"p{n}": {"enum": [n]} for n in range(2_000)}})
    await refused(target, {"type": "object", "properties": {"x": {"enum": ["x" * 40_000]}}})


@attack("client_tools")
async def test_what_is_no_schema_of_an_object_is_refused(target: Target, face: str) -> None:
    wrong: list[Json] = [
        {"type": "string"},
        [],
        "x",
        7,
        True,
        {"type": 7},
        {"type": "object", "properties": []},
    ]
    for schema in wrong:
        assert await register(target, {**tool(), "parameters": schema}) == 400, schema


@attack("client_tools")
async def test_keywords_that_change_what_a_reference_means_are_refused(target: Target, face: str) -> None:
    for keyword in ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$anchor", "$vocabulary"):
        await refused(target, {"type": "object", "properties": {"x": {keyword: "#x"}}})
    await refused(target, {"type": "object", "unevaluatedProperties": False})


@attack("client_tools")
async def test_choices_that_multiply_are_refused_or_cheap(target: Target, face: str) -> None:
    choice: Json = {"type": "object", "properties": {"v": {"$ref": "#/$defs/n"}}}
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"anyOf": [choice] * 8}},
    }
    if await register(target, tool(schema)) == 200:
        value: Json = {}
        for _ in range(50):
            value = {"v": value}
        body = {"toolID": "client_desk_lamp", "input": {"x": value}, "timeout": 50}
        await target.send("bob", "POST", "/client-tools/execute", body)
        target.statuses[:] = [each for each in target.statuses if each[1] != 504]


@attack("client_tools")
async def test_a_name_that_is_none_is_refused(target: Target, face: str) -> None:
    for name in ("", "a b", "a/b", "../x", "é", "x" * 65, "a\x00", "a\nb", "\u202elamp", "{x}"):
        assert await register(target, tool(id=name)) == 400, name
        assert await register(target, tool(), client=name) == 400, name
    assert await register(target, tool(), tool()) == 400


@attack("client_tools")
async def test_the_servers_own_tools_can_not_be_shadowed(target: Target, face: str) -> None:
    before = (await target.send("bob", "GET", "/api/tools")).json()["tools"]
    for name in ("weather", "delete_file", "open_url"):
        assert await register(target, tool(id=name)) == 200
    after = (await target.send("bob", "GET", "/api/tools")).json()["tools"]
    assert [each for each in after if each in before] == before
    await target.open_call("bob", "delete_file")
    assert target.scene.ran == []


@attack("client_tools")
async def test_two_clients_whose_names_run_together_do_not_share_a_tool(target: Target, face: str) -> None:
    assert await register(target, tool(id="b_c"), client="a") == 200
    assert await register(target, tool(id="c"), client="a_b") == 409
    assert await register(target, tool(id="c"), client="a_b", who="eve") == 200


@attack("client_tools")
async def test_words_that_hide_something_are_shown_without_it(target: Target, face: str) -> None:
    hidden = "A lamp.\u202e\u2066\U000e0041\u200b\x07 Ignore\u202c this."
    assert await register(target, tool({"type": "object", "description": hidden}, description=hidden)) == 200
    shown = (await target.send("bob", "GET", "/client-tools/tools")).text
    for letter in ("\u202e", "\u2066", "\U000e0041", "\x07"):
        assert letter not in shown


@attack("client_tools")
async def test_a_registration_that_is_refused_changes_nothing(target: Target, face: str) -> None:
    assert await register(target, tool()) == 200
    before = (await target.send("bob", "GET", "/client-tools/tools")).json()
    assert await register(target, tool(id="fine"), tool({"$ref": "http://x/"}, id="bad")) == 400
    assert (await target.send("bob", "GET", "/client-tools/tools")).json() == before


@attack("client_tools")
async def test_a_grace_that_never_ends_is_refused(target: Target, face: str) -> None:
    for grace in (-1, 86_401, 1e300, "1"):
        body = {"clientID": "desk", "tools": [tool()], "graceSec": grace}
        assert (await target.send("bob", "POST", "/client-tools/register", body)).status_code == 400
