from __future__ import annotations

import re

from farhand.core.tool import Tool
from farhand.models.tool_schema import ToolDefinition, define_tool

PATH = {"type": "string", "description": "A path."}
URL = {"type": "string", "description": "An address."}


def offered(schema: dict[str, object], *, members: str | None = None) -> ToolDefinition:
    tool = Tool(name="open", description="Open it.", input_schema=schema)
    return define_tool(tool, "open", members=re.compile(members) if members else None)


def test_a_plain_schema_goes_out_as_it_is() -> None:
    schema = {"type": "object", "properties": {"path": PATH}, "additionalProperties": False}
    assert offered(schema) == ToolDefinition("open", "Open it.", schema)
    assert offered({}).schema == {"type": "object"}


def test_an_input_is_an_object_whatever_else_a_schema_allows() -> None:
    assert offered({"type": ["object", "null"]}).schema == {"type": "object"}


def test_one_of_two_is_offered_with_the_members_of_both_and_told_in_words() -> None:
    branches = [
        {"properties": {"path": PATH, "mode": {"type": "string"}}, "required": ["path", "mode"]},
        {"properties": {"url": URL, "mode": {"type": "integer"}}, "required": ["url", "mode"]},
    ]
    tool = offered({"type": "object", "oneOf": branches, "additionalProperties": False, "title": "Open"})
    assert tool.schema == {
        "type": "object",
        "title": "Open",
        "properties": {
            "path": PATH,
            "mode": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "url": URL,
        },
        "required": ["mode"],
    }
    assert tool.description.startswith('Open it.\n\nThe input must also fit this JSON Schema: {"oneOf":[{')


def test_all_of_several_need_what_each_of_them_needs() -> None:
    tool = offered(
        {
            "properties": {"a": {}},
            "required": ["a"],
            "allOf": [
                {"properties": {"b": {}}, "required": ["b"]},
                {"anyOf": [{"required": ["c"]}, {"required": ["c", "d"]}]},
            ],
        }
    )
    assert set(tool.schema) == {"type", "properties", "required"}
    assert tool.schema["required"] == ["a", "b", "c"]


def test_a_reference_at_the_top_is_followed_within_the_schema() -> None:
    schema: dict[str, object] = {
        "$ref": "#/$defs/a~1b",
        "$defs": {"a/b": {"properties": {"path": PATH}, "required": ["path"]}},
    }
    tool = offered(schema)
    assert tool.schema["properties"] == {"path": PATH}
    assert tool.schema["required"] == ["path"]
    assert offered({"$ref": "#/$defs/nowhere"}).schema == {"type": "object", "properties": {}}
    assert offered({"$ref": "#"}).schema == {"type": "object", "properties": {}}


def test_a_schema_that_refers_to_itself_comes_to_an_end() -> None:
    schema: dict[str, object] = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 100}},
    }
    assert offered(schema).schema["properties"] == {}


def test_a_rule_that_is_too_long_to_read_is_left_to_the_desk() -> None:
    assert offered({"enum": [{"a": "x" * 5_000}]}).description == "Open it."


def test_members_whose_names_a_provider_refuses_are_told_in_words() -> None:
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"file name": PATH, "url": URL},
        "required": ["file name", "url"],
        "additionalProperties": False,
    }
    assert offered(schema).schema == schema
    tool = offered(schema, members="[a-z]+")
    assert tool.schema == {"type": "object", "properties": {"url": URL}, "required": ["url"]}
    assert '"file name"' in tool.description
