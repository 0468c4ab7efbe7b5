"""Schemas from outside: which are admitted, which are refused, and that none of them blocks the process."""

from __future__ import annotations

import asyncio
import random
import socket
from time import thread_time

import msgspec
import pytest

from farhand.core.tool import Executor, Schema, Tool
from farhand.errors import BadTool
from farhand.tools.schema_admission import admit_output_schema, admit_schema, check_input, check_output
from tests.requirement import requirement


def nested(levels: int) -> Schema:
    return {} if levels == 1 else {"properties": {"a": nested(levels - 1)}}


@requirement("tools:gate")
def test_an_empty_schema_counts_as_one_of_an_object() -> None:
    assert admit_schema({}, "The schema") == {"type": "object"}
    assert admit_schema({"type": "object", "properties": {}}, "The schema") == {
        "type": "object",
        "properties": {},
    }


REFUSED: dict[str, tuple[object, str]] = {
    "no object": ([], "does not describe an object"),
    "a list": ({"type": "array"}, "does not describe an object"),
    "too large": ({"description": "x" * 40_000}, "larger than 32768 bytes"),
    "too deep": (nested(17), "nested more than 16"),
    "a remote reference": ({"properties": {"a": {"$ref": "http://127.0.0.1:9/s.json"}}}, "refers to 'http:"),
    "a file": ({"$defs": {"unused": {"$ref": "file:///etc/passwd"}}}, "refers to 'file:"),
    "another document": ({"$ref": "other.json#/a"}, "refers to 'other"),
    "a reference that leads nowhere": ({"$ref": "#/$defs/none"}, "refers to '#/"),
    "an address": ({"$id": "http://127.0.0.1:9/s.json"}, "uses `\\$id`"),
    "an anchor": ({"$defs": {"a": {"$anchor": "x"}}}, "uses `\\$anchor`"),
    "a dynamic reference": ({"$dynamicRef": "#x"}, "uses `\\$dynamicRef`"),
    "unevaluated members": ({"unevaluatedProperties": False}, "uses `unevaluatedProperties`"),
    "an unknown dialect": ({"$schema": "http://127.0.0.1:9/dialect"}, "unknown dialect"),
    "a circle": ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "form a loop"),
    "doubled definitions": (
        {
            "$ref": "#/$defs/d0",
            "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)}
            | {"d30": {}},
        },
        "more than 10000 subschemas",
    ),
    "a branching recursion": (
        {
            "$defs": {"t": {"anyOf": [{"items": {"$ref": "#/$defs/t"}}, {"items": {"$ref": "#/$defs/t"}}]}},
            "properties": {"x": {"$ref": "#/$defs/t"}},
        },
        "too long to check",
    ),
    "look-around": ({"properties": {"a": {"pattern": "(?=a)b"}}}, "linear time"),
    "a huge pattern": ({"properties": {"a": {"pattern": r"(\p{L}{50}){20}"}}}, "linear time"),
    "a long pattern": ({"properties": {"a": {"pattern": "a" * 257}}}, "more than 256 characters"),
    "a pattern that is no text": ({"properties": {"a": {"pattern": 3}}}, "is not a string"),
    "many large patterns": (
        {"properties": {f"p{n}": {"pattern": f"[ab]*a[ab]{{{n + 100}}}c"} for n in range(200)}},
        "too many large patterns",
    ),
    "words too long": ({"properties": {"a": {"description": "x" * 5_000}}}, "5000 characters"),
    "no schema": ({"properties": {"a": {"type": "nothing"}}}, "cannot be used"),
}


@requirement("tools:gate")
@pytest.mark.parametrize("name", REFUSED)
def test_what_could_do_harm_is_refused_with_its_reason(name: str) -> None:
    schema, why = REFUSED[name]
    with pytest.raises(BadTool, match=why):
        admit_schema(schema, "The schema of tool 'x'")


PASSING: dict[str, Schema] = {
    "16 levels": nested(16),
    "a tree": {"properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}},
    "definitions": {"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}}},
    "an older dialect": {"$schema": "http://json-schema.org/draft-07/schema#"},
    "properties with names of keywords": {"properties": {"$ref": {"type": "string"}, "$id": {}, "id": {}}},
    "a plain pattern": {"properties": {"day": {"pattern": r"^\d{4}-\d{2}-\d{2}$"}}},
}


@requirement("tools:gate")
@pytest.mark.parametrize("name", PASSING)
def test_what_does_no_harm_passes(name: str) -> None:
    schema = PASSING[name]
    assert admit_schema(schema, "The schema") == {"type": "object", **schema}


@requirement("tools:gate")
def test_the_schema_of_an_output_may_be_of_anything_and_passes_the_same_gate() -> None:
    assert admit_output_schema({"type": "string"}, "The output") == {"type": "string"}
    assert admit_output_schema({}, "The output") == {}
    with pytest.raises(BadTool, match="is not a JSON Schema"):
        admit_output_schema([], "The output")
    with pytest.raises(BadTool, match="refers to"):
        admit_output_schema({"$ref": "http://127.0.0.1:9/x"}, "The output")
    tool = msgspec.structs.replace(a_tool({}), output_schema={"items": {"multipleOf": 1e-9}})
    assert check_output(tool, [1.0]) is None
    assert "too large to be checked" in (check_output(tool, [1.0] * 2_000) or "")
    assert check_output(a_tool({}), [1.0] * 2_000) is None


@requirement("tools:gate")
def test_words_that_the_model_reads_hide_nothing_and_values_stay_as_they_are() -> None:
    hidden = "plain\u202e\U000e0041 words\x07"
    admitted_schema = admit_schema(
        {"title": hidden, "properties": {"a": {"description": hidden, "enum": [hidden, 1], "allOf": [True]}}},
        "The schema",
    )
    assert admitted_schema == {
        "type": "object",
        "title": "plain words",
        "properties": {"a": {"description": "plain words", "enum": [hidden, 1], "allOf": [True]}},
    }


def a_tool(schema: Schema, *, executor: Executor = Executor.CLIENT, is_foreign: bool = True) -> Tool:
    return Tool(
        name="client_notes_x",
        description="x",
        input_schema=admit_schema(schema, "The schema"),
        executor=executor,
        client_id="notes" if executor is Executor.CLIENT else None,
        is_foreign=is_foreign,
    )


@requirement("tools:gate")
def test_an_input_is_checked_against_the_schema_it_came_with() -> None:
    tool = a_tool({"properties": {"n": {"type": "integer"}}, "required": ["n"]})
    assert check_input(tool, {"n": 1}) is None
    assert check_input(tool, {"n": "one"}) == "`n` must be an integer, got a string"
    assert check_input(tool, {}) == "`n` is missing"


@requirement("tools:gate")
def test_an_input_that_would_take_too_long_to_check_is_refused_and_only_for_tools_from_outside() -> None:
    schema: Schema = {"properties": {"n": {"items": {"multipleOf": 1e-9}}}}
    large = {"n": [1.0] * 2_000}
    assert "too large to be checked" in (check_input(a_tool(schema), large) or "")
    assert check_input(a_tool(schema), {"n": [1.0]}) is None
    assert check_input(a_tool(schema, is_foreign=False), large) is None


@requirement("tools:gate")
def test_the_cost_of_a_check_counts_for_a_tool_from_outside_that_belongs_to_no_client() -> None:
    schema: Schema = {"items": {"multipleOf": 1e-9}}
    tool = msgspec.structs.replace(
        a_tool({}, executor=Executor.FRONTEND), input_schema=schema, output_schema=schema
    )
    assert tool.client_id is None
    for check in (check_input, check_output):
        assert "too large to be checked" in (check(tool, [1.0] * 2_000) or "")
        assert check(tool, [1.0]) is None


SLOW_PATTERNS = ["^(a+)+$", "(x+x+)+y", "^([a-z]+)*$", "[ab]*a[ab]{100}c", "[ab]*a[ab]{250}c", "^(a|a)*$"]


@requirement("tools:gate")
@pytest.mark.parametrize("pattern", SLOW_PATTERNS)
async def test_no_pattern_holds_up_the_loop(pattern: str) -> None:
    chance = random.Random(1)
    text = "".join(chance.choice("ab") for _ in range(200_000)) + "!"
    tool = await asyncio.to_thread(a_tool, {"properties": {"a": {"pattern": pattern}}})
    begun = thread_time()
    assert check_input(tool, {"a": text}) is not None
    # of processor time, and generous: such a pattern takes minutes in a matcher that goes back
    assert thread_time() - begun < 5
    assert check_input(tool, {"a": text[-10_000:]}) is not None


@requirement("tools:gate")
async def test_nothing_is_fetched_for_a_reference_to_somewhere_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        for schema in ({"$ref": address}, {"$schema": address}, {"$id": address, "$ref": "#"}):
            with pytest.raises(BadTool):
                await asyncio.to_thread(admit_schema, schema, "The schema")
        with pytest.raises(BlockingIOError):
            listener.accept()
