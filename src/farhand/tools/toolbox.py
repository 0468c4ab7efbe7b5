"""The tools of one program, by name.

Owns the map from names to tools. There is no global one: create a `Toolbox` in a module, or let an agent
create its own. It must not know calls, threads or models: the desk decides who may run what, and when.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ParamSpec, Protocol, TypeAlias, TypeVar, Unpack, overload

import anyio

from farhand.core.outcome import Failure, Success, kind_of
from farhand.core.principal import Owner
from farhand.core.settings import Limits, Timeouts
from farhand.core.tool import Executor, Tool
from farhand.errors import BadTool, DuplicateTool
from farhand.tools.context import current
from farhand.tools.declared import DeclaredTool
from farhand.tools.decorate import declare, declare_explicitly
from farhand.tools.execute import MayStart, run_tool_function
from farhand.tools.keyword_arguments import explain_arguments
from farhand.tools.options import NamedToolOptions, ToolOptions
from farhand.tools.to_json import shorten

log = logging.getLogger("farhand.tools")

P = ParamSpec("P")
R = TypeVar("R")

AnyTool: TypeAlias = DeclaredTool[..., object]

MOST_NAMES = 20
"""In a sentence that lists the tools."""


class ToolSource(Protocol):
    """Tools that belong to an owner and may come and go: those of registered clients."""

    def tools(self, owner: Owner) -> Sequence[Tool]: ...

    def get(self, owner: Owner, name: str) -> Tool | None: ...

    def asks(self, tool: Tool, input: dict[str, object]) -> bool:
        """True if this input of one of its tools needs a person's approval."""
        ...


class Toolbox:
    """A set of tools that an agent can use.

    ```python
    from farhand import Agent, Toolbox

    toolbox = Toolbox()


    @toolbox.tool
    def add(a: int, b: int) -> int:
        '''Add two numbers.

        Args:
            a: The first number.
            b: The second number.
        '''
        return a + b


    agent = Agent("anthropic:claude-sonnet-5", tools=toolbox)
    ```
    """

    def __init__(self, *tools: object) -> None:
        """`tools` are those of `include`."""
        self._tools: dict[str, AnyTool] = {}
        self.include(*tools)

    @overload
    def tool(self, function: Callable[P, R], /) -> DeclaredTool[P, R]: ...
    @overload
    def tool(
        self, /, **options: Unpack[NamedToolOptions]
    ) -> Callable[[Callable[P, R]], DeclaredTool[P, R]]: ...
    def tool(
        self, function: Callable[P, R] | None = None, /, **options: Unpack[NamedToolOptions]
    ) -> DeclaredTool[P, R] | Callable[[Callable[P, R]], DeclaredTool[P, R]]:
        """Like `@tool`, and adds the tool to this toolbox."""

        def with_options(function: Callable[P, R]) -> DeclaredTool[P, R]:
            declared = declare(function, options)
            self.include(declared)
            return declared

        return with_options if function is None else with_options(function)

    @explain_arguments("Toolbox.add()")
    def add(
        self,
        name: str,
        description: str,
        parameters: Mapping[str, object],
        function: Callable[..., object] | None = None,
        **options: Unpack[ToolOptions],
    ) -> AnyTool:
        """Add a tool with an explicit schema; the function gets the members of the input by name.

        A frontend tool needs no function.
        """
        declared = declare_explicitly(name, description, parameters, function, options)
        self.include(declared)
        return declared

    def include(self, *tools: object) -> None:
        """Add tools, toolboxes and functions (which become server tools): all, or none on error."""
        fresh: dict[str, AnyTool] = {}
        for declared in (declared for given in tools for declared in _to_declared(given)):
            name = declared.tool.name
            if name in self._tools or name in fresh:
                raise DuplicateTool(f"A tool `{name}` already exists.", hint="Rename one of the two.")
            fresh[name] = declared
        self._tools.update(fresh)

    def get(self, name: str) -> Tool | None:
        declared = self._tools.get(name)
        return None if declared is None else declared.tool

    def declared(self, name: str) -> AnyTool | None:
        return self._tools.get(name)

    def all_declared(self) -> list[AnyTool]:
        """In the order in which they were added."""
        return list(self._tools.values())

    def tools(self) -> list[Tool]:
        return [declared.tool for declared in self._tools.values()]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def check(self, name: str, input: object) -> Failure | None:
        """What the model reads instead of a result: there is no such tool, or the input is invalid."""
        declared = self._find(name)
        ready = declared if isinstance(declared, Failure) else declared.bind(input)
        return ready if isinstance(ready, Failure) else None

    async def execute(
        self,
        name: str,
        arguments: object,
        *,
        within: float | None = None,
        call_id: str | None = None,
        at_most: int = Limits().tool_output,
        may_start: MayStart | None = None,
    ) -> Success | Failure:
        """Run a server tool. Every error is a Failure; only a cancellation from outside is raised.

        The deadline is `within` seconds, otherwise the tool's `timeout_sec`, otherwise 120 s. An output of
        more than `at_most` bytes of JSON is a Failure. Approval is not requested here; it comes before.
        `may_start` is asked right before the function is called: if it says no, `ToolNotStarted` is raised.
        """
        started = anyio.current_time()
        outcome = await self._execute(name, arguments, within, at_most, may_start)
        took = (anyio.current_time() - started) * 1000
        log.info("tool %s call %s: %s in %.1f ms", shorten(name, 64), call_id, kind_of(outcome), took)
        return outcome

    async def _execute(
        self, name: str, arguments: object, within: float | None, at_most: int, may_start: MayStart | None
    ) -> Success | Failure:
        declared = self._find(name)
        if isinstance(declared, Failure):
            return declared
        if declared.function is None or declared.tool.executor is not Executor.SERVER:
            return Failure(f"`{name}` runs in the {declared.tool.executor}, not on the server.")
        ready = declared.bind(arguments)
        if isinstance(ready, Failure):
            return ready
        if declared.context_parameter is not None:
            ready[declared.context_parameter] = current()
        limit = within if within is not None else declared.tool.timeout_sec or Timeouts().server_tool
        return await run_tool_function(
            name, declared.function, ready, within=limit, at_most=at_most, may_start=may_start
        )

    def _find(self, name: str) -> AnyTool | Failure:
        declared = self._tools.get(name)
        if declared is not None:
            return declared
        asked = shorten(name, 64)
        near = difflib.get_close_matches(asked, self._tools, n=3)
        if near:
            return Failure(f"There is no tool `{asked}`. Did you mean {_join_names(near)}?")
        return Failure(f"There is no tool `{asked}`. Available tools: {_join_names(list(self._tools))}.")


def make_toolbox(tools: Iterable[object] = (), frontend_tools: Iterable[object] = ()) -> Toolbox:
    """A toolbox from a toolbox, tools, functions, or a mix; `frontend_tools` must run in the frontend."""
    box = Toolbox()
    box.include(*_items(tools), *(_frontend(given) for given in _items(frontend_tools)))
    return box


def _items(given: Iterable[object]) -> Iterable[object]:
    """`tools=toolbox` and `tools=function` mean a list of one."""
    return [given] if isinstance(given, Toolbox) or callable(given) else given


def _frontend(given: object) -> object:
    if callable(given) and not isinstance(given, DeclaredTool):
        raise BadTool(
            f"{_name_of(given)} is in `frontend_tools` but is not declared as a frontend tool.",
            hint='Decorate it with @tool(executor="frontend").',
        )
    for declared in _to_declared(given):
        if declared.tool.executor is not Executor.FRONTEND:
            raise BadTool(
                f"`{declared.tool.name}` is in `frontend_tools` but runs on the server.",
                hint='Move it to `tools`, or declare it with @tool(executor="frontend").',
            )
    return given


def _to_declared(given: object) -> list[AnyTool]:
    if isinstance(given, Toolbox):
        return given.all_declared()
    if isinstance(given, DeclaredTool):
        return [given]
    if callable(given):
        return [declare(given, {})]
    raise BadTool(
        f"{shorten(repr(given))} is not a tool.",
        hint="Pass functions, tools made with @tool, or a Toolbox.",
    )


def _name_of(given: object) -> str:
    return f"`{getattr(given, '__name__', shorten(repr(given)))}`"


def _join_names(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown or "none"
