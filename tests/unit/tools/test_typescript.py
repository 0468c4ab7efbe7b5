from __future__ import annotations

import pytest

from farhand.core.tool import Executor, Schema, Tool
from farhand.tools.typescript import declaration, frontend_types, pascal, type_of

NO_NAMES: dict[str, str] = {}


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({}, "unknown"),
        (True, "unknown"),
        (None, "unknown"),
        (False, "never"),
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "number"),
        ({"type": "number"}, "number"),
        ({"type": "boolean"}, "boolean"),
        ({"type": "null"}, "null"),
        ({"type": "surprise"}, "unknown"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"const": "a"}, '"a"'),
        ({"const": {"a": 1}}, "unknown"),
        ({"enum": ["front", "back", 1, None, True, "front"]}, '"front" | "back" | 1 | null | true'),
        ({"enum": []}, "never"),
        ({"enum": "not a list"}, "never"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "number | null"),
        ({"anyOf": [{"type": "number"}, {"type": "integer"}]}, "number"),
        ({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, '("a" | "b") | null'),
        ({"oneOf": [{"type": "string"}]}, "string"),
        ({"oneOf": "not a list"}, "never"),
        ({"allOf": [{"type": "string"}, {"enum": ["a", "b"]}]}, 'string & ("a" | "b")'),
        ({"allOf": []}, "unknown"),
        ({"type": "array"}, "ReadonlyArray<unknown>"),
        ({"type": "array", "items": {"type": "string"}}, "ReadonlyArray<string>"),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False}, "readonly [string]"),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, "readonly [string]"),
        (
            {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "null"}},
            "readonly [string, ...ReadonlyArray<null>]",
        ),
        ({"type": "object"}, "Readonly<Record<string, unknown>>"),
        ({"type": "object", "properties": "not an object"}, "Readonly<Record<string, unknown>>"),
        ({"type": "object", "additionalProperties": False}, "Readonly<Record<string, never>>"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "Readonly<Record<string, string>>"),
        ({"properties": {"a": {"type": "null"}}, "required": ["a"]}, "{\n  readonly a: null;\n}"),
        ({"properties": {"a-b": {}}, "required": "not a list"}, '{\n  readonly "a-b"?: unknown;\n}'),
        (
            {"properties": {"a": {}}, "additionalProperties": {"type": "string"}},
            "{\n  readonly a?: unknown;\n} & Readonly<Record<string, unknown>>",
        ),
        ({"$ref": "#/$defs/Elsewhere"}, "unknown"),
    ],
)
def test_a_schema_is_written_as_the_type_of_what_it_allows(schema: object, written: str) -> None:
    assert type_of(schema, NO_NAMES) == written


def test_a_description_cannot_end_its_comment() -> None:
    schema = {"type": "string", "description": "first */ evil() /*\n\nlast"}
    assert declaration("A", schema, NO_NAMES) == (
        "/**\n * first * / evil() /*\n *\n * last\n */\nexport type A = string;\n"
    )


def test_a_description_of_one_line_is_a_comment_of_one_line() -> None:
    schema = {"type": "string", "description": " Its address. "}
    assert declaration("A", schema, NO_NAMES) == "/** Its address. */\nexport type A = string;\n"


@pytest.mark.parametrize("description", [7, "", "  "])
def test_no_description_is_no_comment(description: object) -> None:
    assert declaration("A", {"description": description}, NO_NAMES) == "export type A = unknown;\n"


def test_names_of_types_begin_with_a_letter() -> None:
    assert [pascal(name) for name in ("open_url", "open-url", "3d", "_")] == [
        "OpenUrl",
        "OpenUrl",
        "T3d",
        "T",
    ]


def tool(name: str, *, input: Schema, output: Schema | None = None, executor: Executor) -> Tool:
    return Tool(name=name, description="", input_schema=input, output_schema=output, executor=executor)


def test_only_frontend_tools_are_written_with_input_and_output() -> None:
    written = frontend_types(
        [
            tool("here", input={"type": "object", "properties": {"a": {}}}, executor=Executor.FRONTEND),
            tool("there", input={"type": "object"}, executor=Executor.SERVER),
        ]
    )
    assert "readonly here: {" in written
    assert "readonly output: unknown;" in written
    assert "there" not in written.partition("export type Handlers")[0].replace("the Python tools", "")


def test_definitions_are_types_of_their_own_and_may_name_themselves() -> None:
    node: Schema = {
        "$ref": "#/$defs/Node",
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
    written = frontend_types(
        [
            tool("a_b", input=node, output=node, executor=Executor.FRONTEND),
            tool("a-b", input=node, executor=Executor.FRONTEND),
        ]
    )
    assert "export type ABInputNode = {\n  readonly next?: ABInputNode;\n};" in written
    assert "export type ABOutputNode = {\n  readonly next?: ABOutputNode;\n};" in written
    assert "export type ABInputNode2 = {\n  readonly next?: ABInputNode2;\n};" in written
    assert 'readonly "a-b": {\n    readonly input: ABInputNode2;' in written


def test_an_agent_without_frontend_tools_owes_no_handlers() -> None:
    assert "export type FrontendTools = Record<never, never>;" in frontend_types([])
