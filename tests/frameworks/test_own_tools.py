"""What `approved()` cannot accept is refused with a clear error, not with one of another library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from google.adk.tools.function_tool import FunctionTool
from langchain_core.tools import tool as langchain_tool

from farhand import Context
from farhand.bridges import google_adk, langgraph, openai_agents, pydantic_ai
from farhand.bridges.far_tools import Hands
from farhand.errors import BadTool
from tests.frameworks.stage import Stage

# Any: what a program passes, whatever it is
Approve: TypeAlias = Callable[[Hands, Any], object]


def delete_file(path: str, context: Context) -> str:
    """Delete a file.

    Args:
        path: Where it is.
        context: For whom.
    """
    return f"{context.owner.subject} deleted {path}"


def of_pydantic_ai(hands: Hands, own: Any) -> object:
    return pydantic_ai.approved(hands, own, thread="t")


def of_agents(hands: Hands, own: Any) -> object:
    return openai_agents.approved(hands, own, thread="t")


@pytest.mark.parametrize(
    ("approve", "own"),
    [
        (of_pydantic_ai, delete_file),
        (langgraph.approved, langchain_tool(delete_file)),
        (google_adk.approved, FunctionTool(delete_file)),
    ],
    ids=["pydantic_ai", "langgraph", "google_adk"],
)
def test_a_function_that_takes_a_context_is_told_what_to_write(
    tmp_path: Path, approve: Approve, own: object
) -> None:
    with pytest.raises(
        BadTool, match=r"`delete_file` has a parameter that JSON cannot .* farhand.current\(\)"
    ):
        approve(Stage("memory:", tmp_path).hands, own)


@pytest.mark.parametrize("own", [None, "delete_file", 3])
@pytest.mark.parametrize("approve", [of_pydantic_ai, langgraph.approved, google_adk.approved, of_agents])
def test_what_is_no_tool_is_refused_in_words(tmp_path: Path, approve: Approve, own: object) -> None:
    with pytest.raises(BadTool, match=r"approved\(\) does not accept"):
        approve(Stage("memory:", tmp_path).hands, own)


@pytest.mark.parametrize("approve", [langgraph.approved, google_adk.approved, of_agents])
def test_a_plain_function_is_told_how_to_become_a_tool(tmp_path: Path, approve: Approve) -> None:
    with pytest.raises(BadTool, match="Use "):
        approve(Stage("memory:", tmp_path).hands, delete_file)
