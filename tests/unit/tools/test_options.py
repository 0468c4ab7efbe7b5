"""Each option accepts the values it documents, and a misspelled option is an error."""

from __future__ import annotations

import re

import pytest

from farhand.core.tool import Executor, Tool
from farhand.errors import BadTool
from farhand.tools.options import ToolOptions, build_tool, check_options, check_tool_name
from tests.requirement import requirement


@requirement("tools:schema")
def test_without_options_a_tool_runs_on_the_server_without_approval() -> None:
    assert build_tool("t", "T.", {}, {}) == Tool(name="t", description="T.", input_schema={})


@requirement("tools:schema")
def test_options_become_properties_of_the_tool() -> None:
    options: ToolOptions = {
        "executor": "frontend",
        "needs_approval": lambda input: True,
        "idempotent": True,
        "timeout_sec": 5,
        "approval_timeout_sec": 60.5,
        "card": "confirm",
    }
    check_options(options, "t")
    made = build_tool("t", "T.", {}, options)
    assert made == Tool(
        name="t",
        description="T.",
        input_schema={},
        executor=Executor.FRONTEND,
        may_ask=True,
        idempotent=True,
        timeout_sec=5.0,
        approval_timeout_sec=60.5,
        card="confirm",
    )


async def _later(input: dict[str, object]) -> bool:
    return False


@pytest.mark.parametrize(
    ("option", "value", "takes"),
    [
        ("executor", "client", 'must be "server" or "frontend", not \'client\''),
        ("executor", ["server"], 'must be "server" or "frontend"'),
        ("needs_approval", "yes", "must be True, False or a function"),
        ("needs_approval", None, "must be True, False or a function"),
        ("needs_approval", _later, "must be True, False or a function (not async) of the input"),
        ("idempotent", 1, "must be True or False, not 1"),
        ("card", "", "must be the name of a card"),
        ("card", 3, "must be the name of a card"),
        ("name", " ", "must be a name"),
        ("summary", "", "must be a text such as '{rows} rows', or a function (not async) of the output"),
        ("summary", "{rows", "must be a text such as '{rows} rows'"),
        ("summary", _later, "must be a text such as '{rows} rows', or a function (not async)"),
    ],
)
def test_an_option_with_a_wrong_value_is_refused(option: str, value: object, takes: str) -> None:
    with pytest.raises(BadTool) as refused:
        check_options({option: value}, "t")
    assert str(refused.value).startswith(f"`{option}` of tool `t` {takes}")


def test_a_misspelt_option_is_refused_and_the_right_one_is_suggested() -> None:
    with pytest.raises(BadTool, match=r"`@tool` has no option `approval`; did you mean `needs_approval`\?"):
        check_options({"approval": True}, "t")
    with pytest.raises(
        BadTool, match=r"has no option `xyz`\. Its options are `executor`, .*`needs_approval`"
    ):
        check_options({"xyz": True}, "t")


@pytest.mark.parametrize("option", ["timeout_sec", "approval_timeout_sec"])
def test_both_timeouts_have_the_same_range(option: str) -> None:
    with pytest.raises(BadTool, match=f"`{option}` of tool `t` must be a number of seconds"):
        build_tool("t", "T.", {}, {option: 0})  # type: ignore[misc]


@pytest.mark.parametrize("name", ["", "a b", "a.b", "é", "x" * 65, "<lambda>", "a\n", None, 3])
def test_a_bad_name_is_refused(name: object) -> None:
    with pytest.raises(BadTool, match=r"is not a valid name for a tool. Use 1 to 64 letters"):
        check_tool_name(name)


@pytest.mark.parametrize("name", ["a", "get_weather", "Get-Weather-2", "x" * 64])
def test_a_good_name_is_kept(name: str) -> None:
    assert check_tool_name(name) == name


SCHEMA: dict[str, object] = {"type": "object", "properties": {"city": {"type": "string"}}}


@requirement("tools:title-and-summary")
def test_a_title_may_name_inputs_of_the_tool() -> None:
    for title in ("Weather", "Weather in {city}", "{{as it is}}", "{city.name}"):
        assert build_tool("t", "T.", SCHEMA, {"title": title}).title == title


@requirement("tools:title-and-summary")
@pytest.mark.parametrize(
    ("title", "schema", "says"),
    [
        ("Weather in {place}", SCHEMA, "names {place}, which is not one of its inputs"),
        ("{a}", {"type": "object", "properties": {}}, "names {a}, which is not one of its inputs"),
        ("Weather in {city", SCHEMA, "is not a template: a lone {"),
    ],
)
def test_a_title_that_names_something_else_is_an_error(
    title: str, schema: dict[str, object], says: str
) -> None:
    with pytest.raises(BadTool, match=re.escape(says)):
        build_tool("t", "T.", schema, {"title": title})


def test_of_inputs_that_are_not_listed_any_may_be_named() -> None:
    for schema in ({"type": "object"}, {**SCHEMA, "additionalProperties": True}):
        assert build_tool("t", "T.", dict(schema), {"title": "{any}"}).title == "{any}"
