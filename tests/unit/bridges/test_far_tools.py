"""Tools of the hands as a framework lists them, and a framework's own tools as tools of the hands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from farhand.bridges.bridge import ToolReply
from farhand.bridges.far_tools import convert_arguments, declare_own, list_far_tools
from farhand.errors import BadTool, DuplicateTool, Misuse
from tests.frameworks.stage import Stage
from tests.unit.bridges.calls import call_hand


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with Stage("memory:", tmp_path) as stage:
        yield stage


def test_tools_are_listed_before_the_app_starts_with_schema_and_description(tmp_path: Path) -> None:
    tools = list_far_tools(Stage("memory:", tmp_path).hands)
    assert [tool.name for tool in tools] == ["pay", "open_url", "ask_quickly"]
    assert tools[0].description == "Pay an invoice."
    assert tools[0].schema["required"] == ["amount"]


async def test_a_framework_s_own_tool_runs_once_behind_approval_and_is_not_listed_twice(stage: Stage) -> None:
    ran: list[str] = []

    async def delete_file(path: str) -> str:
        ran.append(path)
        return f"deleted {path}"

    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    own = declare_own(stage.hands, delete_file, name="delete_file", description="Delete.", schema=schema)
    assert own.name not in [tool.name for tool in list_far_tools(stage.hands)]
    async with asyncio.TaskGroup() as group:
        called = [group.create_task(call_hand(stage.hands, own.tool, {"path": "a"})) for _ in range(2)]
        await stage.approve_next()
    assert [each.result() for each in called] == [ToolReply("deleted a", content="deleted a")] * 2
    assert ran == ["a"]
    with pytest.raises(DuplicateTool, match=r"already has a tool `delete_file`. Call approved\(\) once"):
        declare_own(stage.hands, delete_file, name="delete_file", description="Delete.", schema=schema)


def test_a_function_of_a_framework_s_tool_takes_nothing_but_its_input() -> None:
    def delete_file(path: Path, context: object) -> str:
        return str(path)

    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    with pytest.raises(
        BadTool, match="`delete_file` takes `context`, which no longer exists when a person approves"
    ):
        convert_arguments(delete_file, "delete_file", schema)
    with pytest.raises(BadTool, match="takes `path`"):
        convert_arguments(delete_file, "delete_file", {})


async def test_a_function_of_a_framework_s_tool_gets_the_types_that_it_declares(stage: Stage) -> None:
    def stem_of(path: Path) -> str:
        return path.stem

    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    function = convert_arguments(stem_of, "stem_of", schema)
    declare_own(stage.hands, function, name="stem_of", description="The stem.", schema=schema)
    async with asyncio.TaskGroup() as group:
        call = call_hand(stage.hands, "stem_of", {"path": "a/b.txt"})
        called = group.create_task(call)
        await stage.approve_next()
    assert called.result() == ToolReply("b", content="b")


def test_a_list_of_tools_is_limited_by_names_and_not_by_a_text(tmp_path: Path) -> None:
    hands = Stage("memory:", tmp_path).hands
    assert [tool.name for tool in list_far_tools(hands, only=["open_url", "pay"])] == ["pay", "open_url"]
    # of a text, each name in it would count
    only: Any = "pay"
    with pytest.raises(Misuse, match="`only` must be a list of tool names, not 'pay'"):
        list_far_tools(hands, only=only)
