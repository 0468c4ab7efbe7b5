"""LangChain and LangGraph: far hands as tools of a graph. Needs `farhand[langgraph]`.

```python
from langgraph.prebuilt import ToolNode

from farhand import Toolbox, create_app
from farhand.bridges.langgraph import farhand_tools

hands = create_app(Toolbox(), store="memory:")
tools = ToolNode(farhand_tools(hands))
```

A call's key is `thread:task_id:tool_call_id`; a task keeps its id when the graph runs it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, Unpack

from farhand.agent.keyed_calls import Waiting
from farhand.bridges.bridge import CallOptions, HandCaller, ThreadOptions
from farhand.bridges.far_tools import FarTool, Hands, check_parameters, declare_own, explain_schema_errors
from farhand.errors import Misuse, not_installed
from farhand.tools.options import ToolOptions

try:
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.prebuilt import ToolRuntime
    from langgraph.types import interrupt
except ModuleNotFoundError as error:
    raise not_installed("Bridges to LangGraph", "langgraph") from error

__all__ = ["approved", "farhand_tools", "thread_id"]

# Any, here and below: the state and context of other people's graphs, the inputs and results of their tools
Runtime: TypeAlias = ToolRuntime[Any, Any]


def thread_id(runtime: Runtime) -> str:
    """The thread of the graph's run."""
    found = runtime.config.get("configurable", {}).get("thread_id")
    if found is None:
        raise Misuse("This run has no thread_id.", hint="Configure one, or pass `thread` to the bridge.")
    return str(found)


def farhand_tools(
    hands: Hands,
    *,
    thread: str | Callable[[Runtime], str] = thread_id,
    only: Sequence[str] | None = None,
    **where: Unpack[CallOptions[Runtime]],
) -> list[BaseTool]:
    """The current tools of the app, for `create_agent` or a `ToolNode`.

    A call that is still open after `hold_for` seconds interrupts the graph, which then needs a checkpointer.
    Resume it with any value: the tool fetches the outcome itself.

    >>> create_agent(model, farhand_tools(hands, hold_for=30), checkpointer=saver)
    """
    place: ThreadOptions[Runtime] = {"thread": thread, **where}
    return [_make_tool(hands, each, place) for each in HandCaller(hands, place).list_tools(only=only)]


def approved(
    hands: Hands,
    tool: BaseTool,
    *,
    thread: str | Callable[[Runtime], str] = thread_id,
    options: ToolOptions | None = None,
    **where: Unpack[CallOptions[Runtime]],
) -> BaseTool:
    """A tool of your own that needs approval: farhand runs it once, with the approved input.

    >>> create_agent(model, [approved(hands, delete_file)])
    """
    with explain_schema_errors(
        tool, is_tool=isinstance(tool, BaseTool), hint="Use @tool of langchain_core.tools."
    ):
        schema = convert_to_openai_tool(tool)["function"]["parameters"]
    if isinstance(tool, StructuredTool) and (function := tool.coroutine or tool.func) is not None:
        check_parameters(tool.name, function, schema)

    async def run(**input: Any) -> Any:
        return await tool.ainvoke(input)

    about = {"name": tool.name, "description": tool.description}
    far = declare_own(hands, run, **about, schema=schema, options=options)
    return _make_tool(hands, far, {"thread": thread, **where})


def _make_tool(hands: Hands, tool: FarTool, where: ThreadOptions[Runtime]) -> BaseTool:
    first, again = HandCaller(hands, where), HandCaller(hands, {**where, "hold_for": 0.0})

    async def run(farhand_runtime: Runtime, **input: Any) -> str:
        task = farhand_runtime.execution_info
        assert task is not None, "a graph runs its tools in tasks"
        key = (task.task_id, farhand_runtime.tool_call_id)
        reply = await first.call(tool.tool, input, farhand_runtime, *key)
        while isinstance(reply, Waiting):
            # continues if the task was resumed; if the call is still open then, the next pass interrupts
            interrupt({"farhand": reply.key, "tool": tool.name, "input": input})
            reply = await again.call(tool.tool, input, farhand_runtime, *key)
        if reply.is_error:
            raise ToolException(reply.text)
        return reply.text

    name, words, schema = tool.name, tool.description, tool.schema
    return _GraphTool(name=name, description=words, args_schema=schema, coroutine=run, handle_tool_error=True)


class _GraphTool(StructuredTool):
    """Accepts any input: `StructuredTool` would drop a member named `config`."""

    # the base class declares arguments of its own
    async def _arun(self, /, **input: Any) -> Any:  # type: ignore[override]
        if self.coroutine is None or "farhand_runtime" not in input:
            raise Misuse(
                f"`{self.name}` runs only in a graph.", hint="Use it in a ToolNode, or with create_agent."
            )
        return await self.coroutine(**input)
