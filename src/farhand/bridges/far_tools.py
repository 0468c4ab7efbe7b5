"""Lists farhand's tools for a framework, and adds a framework's own tools to farhand's.

It must not know any framework.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from msgspec import Struct
from pydantic import PydanticUserError, validate_call

from farhand.agent.service import AgentService, Spec
from farhand.core.principal import LOCAL, Who
from farhand.core.tool import Tool
from farhand.errors import BadTool, DuplicateTool, Misuse
from farhand.models.prompt_encoding import ToolNames
from farhand.models.tool_schema import define_tool
from farhand.tools.options import ToolOptions

__all__ = [
    "FarTool",
    "Hands",
    "check_parameters",
    "convert_arguments",
    "declare_own",
    "explain_schema_errors",
    "list_far_tools",
]


class Hands(Protocol):
    """The part of the app, as `create_app` returns it, that bridges use."""

    @property
    def spec(self) -> Spec: ...

    @property
    def service(self) -> AgentService: ...

    def tools(self, owner: Who = LOCAL) -> Sequence[Tool]: ...


class FarTool(Struct, frozen=True):
    """A tool of the app, in a form that every provider accepts."""

    name: str
    """The name for providers: an alias if they would reject ours."""
    description: str
    schema: dict[str, object]
    tool: str
    """The name for `App.call`."""


class BridgedFunction:
    """The function of a framework's own tool, as our toolbox runs it."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    def __call__(self, /, **input: object) -> object:
        return self._function(**input)


def list_far_tools(hands: Hands, owner: Who = LOCAL, *, only: Sequence[str] | None = None) -> list[FarTool]:
    """The tools that this owner can call now, without the framework's own tools that `approved` added. With
    `only`, exactly those."""
    if isinstance(only, str):
        raise Misuse(f"`only` must be a list of tool names, not {only!r}.")
    tools = [tool for tool in hands.tools(owner) if _is_listed(hands, tool.name, only)]
    names = ToolNames(tool.name for tool in tools)
    defined = [(define_tool(tool, names.alias(tool.name)), tool.name) for tool in tools]
    return [FarTool(each.name, each.description, each.schema, name) for each, name in defined]


def declare_own(
    hands: Hands,
    function: Callable[..., object],
    *,
    name: str,
    description: str,
    schema: Mapping[str, object],
    options: ToolOptions | None = None,
) -> FarTool:
    """Adds a framework's own tool to the app, with approval: our executor runs its function, once."""
    own: ToolOptions = {"needs_approval": True, **(options or {})}
    try:
        hands.spec.toolbox.add(name, description or name, schema, BridgedFunction(function), **own)
    except DuplicateTool:
        raise DuplicateTool(
            f"The app already has a tool `{name}`.",
            hint="Call approved() once for each tool; for values that differ by run, pass functions.",
        ) from None
    [tool] = list_far_tools(hands, only=[name])
    return tool


def convert_arguments(
    function: Callable[..., object], name: str, schema: Mapping[str, object]
) -> Callable[..., object]:
    """The function of the tool `name`; its input is converted to the types that it declares."""
    check_parameters(name, function, schema)
    with explain_schema_errors(function, is_tool=callable(function), hint="Pass a function."):
        return validate_call(function)


@contextmanager
def explain_schema_errors(tool: object, *, is_tool: bool, hint: str) -> Iterator[None]:
    """Around the code in which a framework derives the schema of its own tool. Raises `BadTool` with a reason
    if it is no tool, or if JSON cannot describe one of its parameters."""
    if not is_tool:
        raise BadTool(f"approved() does not accept {tool!r}.", hint=hint)
    try:
        yield
    except PydanticUserError as error:
        name = getattr(tool, "__name__", None) or getattr(tool, "name", tool)
        raise BadTool(
            f"`{name}` has a parameter that JSON cannot describe, so no model can call it.",
            hint="Use plain values; instead of a Context parameter, call farhand.current().",
        ) from error


def check_parameters(name: str, function: Callable[..., object], schema: Mapping[str, object]) -> None:
    """Raises `BadTool` for a function with parameters besides its input: the context of a run no longer
    exists when a person approves the call."""
    members = schema.get("properties")
    known = members if isinstance(members, dict) else {}
    other = next((each for each in inspect.signature(function).parameters if each not in known), None)
    if other is not None:
        raise BadTool(
            f"`{name}` takes `{other}`, which no longer exists when a person approves the call later.",
            hint="Remove it; farhand.current() returns the owner that the tool works for.",
        )


def _is_listed(hands: Hands, name: str, only: Sequence[str] | None) -> bool:
    if only is not None:
        return name in only
    declared = hands.spec.toolbox.declared(name)
    return declared is None or not isinstance(declared.function, BridgedFunction)
