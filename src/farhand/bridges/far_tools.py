"""The tools of the hands as a framework lists them, and a framework's own tools as tools of the hands.

Must not know a framework.
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
from farhand.models.provider_ids import ToolNames
from farhand.models.tool_schema import define_tool
from farhand.tools.options import ToolOptions

__all__ = [
    "FarTool",
    "Hands",
    "check_plain",
    "declare_function",
    "declare_own",
    "describing",
    "list_far_tools",
]


class Hands(Protocol):
    """What `create_app` returns, as far as bridges use it."""

    @property
    def spec(self) -> Spec: ...

    @property
    def service(self) -> AgentService: ...

    def tools(self, owner: Who = LOCAL) -> Sequence[Tool]: ...


class FarTool(Struct, frozen=True):
    """A tool of the hands, in a form that every provider accepts."""

    name: str
    """As providers know it: an alias where they refuse ours."""
    description: str
    schema: dict[str, object]
    tool: str
    """As `App.call` knows it."""


class BridgedFunction:
    """The body of a framework's own tool, as our toolbox runs it."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    def __call__(self, /, **input: object) -> object:
        return self._function(**input)


def list_far_tools(hands: Hands, owner: Who = LOCAL, *, only: Sequence[str] | None = None) -> list[FarTool]:
    """The tools that a call of this owner can name now, without those that `approved` made of a framework's
    own; with `only`, exactly these."""
    if isinstance(only, str):
        raise Misuse(f"`only` is a list of names of tools, not {only!r}.")
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
    """Makes a framework's own tool one of the hands, behind approval: our executor runs its body, once."""
    own: ToolOptions = {"needs_approval": True, **(options or {})}
    try:
        hands.spec.toolbox.add(name, description or name, schema, BridgedFunction(function), **own)
    except DuplicateTool:
        raise DuplicateTool(
            f"The hands already have a tool `{name}`.",
            hint="Call approved() once for each tool; what differs by run may be a function of it.",
        ) from None
    [tool] = list_far_tools(hands, only=[name])
    return tool


def declare_function(
    hands: Hands,
    function: Callable[..., object],
    *,
    name: str,
    description: str,
    schema: Mapping[str, object],
    options: ToolOptions | None = None,
) -> FarTool:
    """The same for the function in such a tool. Its arguments get the types that it declares."""
    check_plain(name, function, schema)
    with describing(function, is_tool=callable(function), hint="Pass a function."):
        run = validate_call(function)
    return declare_own(hands, run, name=name, description=description, schema=schema, options=options)


@contextmanager
def describing(tool: object, *, is_tool: bool, hint: str) -> Iterator[None]:
    """While the framework derives the schema of its own tool: what is none, or takes what JSON cannot
    describe, is refused in words."""
    if not is_tool:
        raise BadTool(f"approved() does not take {tool!r}.", hint=hint)
    try:
        yield
    except PydanticUserError as error:
        name = getattr(tool, "__name__", None) or getattr(tool, "name", tool)
        raise BadTool(
            f"`{name}` takes what JSON cannot describe, so no model can call it.",
            hint="Let it take plain values; of a Context, farhand.current() gives the same.",
        ) from error


def check_plain(name: str, function: Callable[..., object], schema: Mapping[str, object]) -> None:
    """Refuses a function that takes more than its input: the context of a run is gone by the time a person
    approves the call."""
    members = schema.get("properties")
    known = members if isinstance(members, dict) else {}
    other = next((each for each in inspect.signature(function).parameters if each not in known), None)
    if other is not None:
        raise BadTool(
            f"`{name}` takes `{other}`, which no longer exists when a person approves the call later.",
            hint="Leave it out; farhand.current() says for whom the tool works.",
        )


def _is_listed(hands: Hands, name: str, only: Sequence[str] | None) -> bool:
    if only is not None:
        return name in only
    declared = hands.spec.toolbox.declared(name)
    return declared is None or not isinstance(declared.function, BridgedFunction)
