"""A client's tools by name, and the effect of registering again."""

from __future__ import annotations

import pytest

from farhand.core.client import Client, tool_id, tool_name, with_tools, without_tools
from farhand.core.ids import is_client_id
from farhand.core.principal import LOCAL
from farhand.core.tool import Executor, Tool
from tests.requirement import requirement


def a_tool(name: str, description: str = "Does it.") -> Tool:
    return Tool(
        name=tool_name("notes", name),
        description=description,
        input_schema={"type": "object"},
        executor=Executor.CLIENT,
        client_id="notes",
    )


def a_client(*tools: Tool) -> Client:
    return Client(owner=LOCAL, client_id="notes", tools=tools, grace_sec=5.0, registered_at=1.0)


def test_a_full_name_holds_the_client_and_the_short_id() -> None:
    assert tool_name("my-client", "search-docs") == "client_my-client_search-docs"
    assert tool_id("my-client", "client_my-client_search-docs") == "search-docs"
    assert tool_id("my-client", "client_other_search-docs") == "client_other_search-docs"


@pytest.mark.parametrize(
    ("text", "good"), [("a", True), ("A-b_9", True), ("a" * 64, True), ("a" * 65, False)]
)
def test_an_id_has_up_to_64_plain_characters(text: str, good: bool) -> None:
    assert is_client_id(text) is good


@pytest.mark.parametrize("text", ["", "a.b", "a b", "ä", "a/b", "a\n"])
def test_other_characters_make_no_id(text: str) -> None:
    assert not is_client_id(text)


@requirement("client-tools:register")
def test_registering_again_replaces_by_name_and_keeps_the_others() -> None:
    before = a_client(a_tool("read"), a_tool("search"))
    after = with_tools(before, [a_tool("search", "Searches better."), a_tool("notify")])
    assert [tool.name for tool in after.tools] == [
        "client_notes_read",
        "client_notes_search",
        "client_notes_notify",
    ]
    assert after.tools[1].description == "Searches better."
    assert after.tools[1].version != before.tools[1].version
    assert after.tools[0].version == before.tools[0].version
    assert after.version == before.version + 1


@requirement("client-tools:register")
def test_tools_that_leave_are_gone_and_the_others_stay() -> None:
    before = a_client(a_tool("read"), a_tool("search"))
    after = without_tools(before, ["client_notes_read", "client_notes_unknown"])
    assert [tool.name for tool in after.tools] == ["client_notes_search"]
    assert after.version == before.version + 1
