"""The tools that one step of a model, or one call, may use, and which of two with the same name wins.

The program's own come first, then those that it chooses for this person, then those of registered clients,
and last those of the request. Must not know how a call is opened or executed.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from farhand.core.call import Call
from farhand.core.explained_struct import ExplainedStruct
from farhand.core.principal import Owner
from farhand.core.tool import Executor, Tool
from farhand.errors import BadSetting, BadTool, Malformed
from farhand.tools.context import Context
from farhand.tools.docstring import clean_text
from farhand.tools.execute import CaughtError, attempt
from farhand.tools.options import check_tool_name
from farhand.tools.schema_admission import admit_schema
from farhand.tools.toolbox import AnyTool, Toolbox, ToolSource, make_toolbox

log = logging.getLogger("farhand.tools")

MAX_REQUEST_TOOLS = 64
MAX_CHOSEN = 1_000

ChooseTools: TypeAlias = Callable[[Context], Iterable[object] | Awaitable[Iterable[object]]]
ChooseText: TypeAlias = Callable[[Context], str | Awaitable[str]]
RequestApproval: TypeAlias = Literal["never", "always"] | Callable[[Tool, dict[str, object]], bool]


class RequestTools(ExplainedStruct, frozen=True):
    """How a server treats tools that a client describes in its request and executes itself: whether a person
    must approve their calls. A function decides for each call."""

    approval: RequestApproval = "never"

    def __post_init__(self) -> None:
        if self.approval not in ("never", "always") and not callable(self.approval):
            raise BadSetting(
                f"request_tools.approval must be 'never', 'always' or a function, not {self.approval!r}."
            )


_NEVER_ASK = RequestTools()


class ToolDescription(Struct, frozen=True):
    """A tool as the client of a run describes it."""

    name: str
    description: str
    parameters: object


class OfferedTools:
    def __init__(
        self,
        owner: Owner,
        toolbox: Toolbox,
        sources: Sequence[ToolSource] = (),
        request_tools: Sequence[Tool] = (),
        policy: RequestTools | None = None,
    ) -> None:
        self.toolbox = toolbox
        """The program's own tools, and those that it chose for this person."""
        self._owner = owner
        self._sources = sources
        self._request_tools = request_tools
        self._policy = policy or _NEVER_ASK

    def tools(self) -> Sequence[Tool]:
        """The tools as the model gets them."""
        own = self.toolbox.tools()
        for source in self._sources:
            own += [tool for tool in source.tools(self._owner) if tool.name not in self.toolbox]
        if self._request_tools:
            names = {tool.name for tool in own}
            own += [tool for tool in self._request_tools if tool.name not in names]
        return own

    def get(self, name: str) -> Tool | None:
        own = self.toolbox.get(name) or self._of_client(name)
        return own or next((tool for tool in self._request_tools if tool.name == name), None)

    def declared(self, name: str) -> AnyTool | None:
        return self.toolbox.declared(name)

    def asks(self, tool: Tool, input: dict[str, object]) -> bool:
        """Whether a person must approve this input first. If in doubt: yes."""
        declared = self.toolbox.declared(tool.name)
        if declared is not None:
            return declared.asks(input)
        home = next((source for source in self._sources if source.get(self._owner, tool.name)), None)
        if home is not None:
            return home.asks(tool, input)
        return tool.may_ask if tool not in self._request_tools else self._asks_for_request_tool(tool, input)

    def _of_client(self, name: str) -> Tool | None:
        found = (source.get(self._owner, name) for source in self._sources)
        return next((tool for tool in found if tool is not None), None)

    def _asks_for_request_tool(self, tool: Tool, input: dict[str, object]) -> bool:
        policy = self._policy.approval
        if isinstance(policy, str):
            return policy == "always"
        # a copy: what is decided on must be what runs
        answer: object = attempt(lambda: policy(tool, copy.deepcopy(input)))
        if isinstance(answer, bool):
            return answer
        what = type(answer.error if isinstance(answer, CaughtError) else answer).__name__
        log.warning("the policy for request tools returned %s for %s; asking for approval", what, tool.name)
        return True


class Summaries:
    """Short summaries of outputs, as the program's tools define them. Of the tools chosen for a person, only
    those that this process has offered recently are known."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._chosen: dict[str, AnyTool] = {}

    def remember(self, toolbox: Toolbox) -> None:
        if len(self._chosen) + len(toolbox) > MAX_CHOSEN:
            self._chosen.clear()
        self._chosen |= {declared.tool.version: declared for declared in toolbox.all_declared()}

    def of(self, call: Call, output: object) -> str | None:
        declared = self._toolbox.declared(call.tool)
        if declared is None or declared.tool.version != call.tool_version:
            declared = self._chosen.get(call.tool_version)
        return None if declared is None else declared.summarize(output)


def admit_request_tools(descriptions: Sequence[ToolDescription], own: OfferedTools) -> tuple[Tool, ...]:
    """The request tools that are accepted. Raises `Malformed` for an invalid tool, which rejects the whole
    request. A tool with the name of one of our frontend tools is that tool, with the client's handler."""
    if len(descriptions) > MAX_REQUEST_TOOLS:
        raise Malformed(f"A request may contain at most {MAX_REQUEST_TOOLS} tools, not {len(descriptions)}.")
    admitted: dict[str, Tool] = {}
    for each in descriptions:
        tool = _tool(each)
        if tool.name in admitted:
            raise Malformed(f"Two of the tools are called '{tool.name}'.", hint="Nothing was applied.")
        known = own.get(tool.name)
        if known is None:
            admitted[tool.name] = tool
        elif known.executor is not Executor.FRONTEND:
            log.warning("ignoring request tool %s: the server has a tool with this name", tool.name)
    return tuple(admitted.values())


def _tool(described: ToolDescription) -> Tool:
    try:
        name = check_tool_name(described.name)
        description = clean_text(described.description, f"tool '{name}'")
        schema = admit_schema(described.parameters, f"The schema of tool '{name}'")
    except BadTool as error:
        raise Malformed(error.message, hint=f"{error.hint} Nothing was applied.".strip()) from error
    return Tool(
        name=name,
        description=description,
        input_schema=schema,
        executor=Executor.FRONTEND,
        is_foreign=True,
    )


async def choose_toolbox(own: Toolbox, choose: ChooseTools, context: Context) -> Toolbox:
    """The program's tools and those that it chooses for this person."""
    chosen = choose(context)
    if inspect.isawaitable(chosen):
        chosen = await chosen
    return make_toolbox([own, *chosen])


async def choose_text(choose: ChooseText, context: Context) -> str:
    text = choose(context)
    return await text if inspect.isawaitable(text) else text
