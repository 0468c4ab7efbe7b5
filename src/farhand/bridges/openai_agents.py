"""The OpenAI Agents SDK: far hands as function tools of an agent. Needs `farhand[openai-agents]`.

```python
from agents import Agent

from farhand import Toolbox, create_app
from farhand.bridges.openai_agents import farhand_tools

hands = create_app(Toolbox(), store="memory:")
agent = Agent("clerk", tools=[*farhand_tools(hands, thread="t1")])
```

A call's key is `thread:tool_call_id`: the SDK offers nothing more specific. The same id with a different
input is another call; the same id with the same input is the same call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, Unpack

from farhand.agent.keyed_calls import Waiting
from farhand.bridges.bridge import HandCaller, ThreadOptions, ToolReply, read_arguments
from farhand.bridges.far_tools import FarTool, Hands, convert_arguments, declare_own, explain_schema_errors
from farhand.errors import BadTool, not_installed
from farhand.tools.options import ToolOptions

try:
    from agents import FunctionTool, RunContextWrapper
    from agents.tool_context import ToolContext
except ModuleNotFoundError as error:
    raise not_installed("Bridges to the OpenAI Agents SDK", "openai-agents") from error

__all__ = ["approved", "farhand_tools"]

# Any, here and below: the contexts of other people's runs
RunContext: TypeAlias = RunContextWrapper[Any]


def farhand_tools(
    hands: Hands, *, only: Sequence[str] | None = None, **where: Unpack[ThreadOptions[RunContext]]
) -> list[FunctionTool]:
    """The current tools of the app.

    A call that is still open after `hold_for` seconds interrupts the run. Approve each of its interruptions
    to continue: the tool then waits for the outcome. People approve the call itself elsewhere.

    >>> Agent("clerk", tools=[*farhand_tools(hands, thread="t1", hold_for=30)])
    """
    return [_make_tool(hands, each, where) for each in HandCaller(hands, where).list_tools(only=only)]


def approved(
    hands: Hands,
    tool: FunctionTool,
    *,
    options: ToolOptions | None = None,
    **where: Unpack[ThreadOptions[RunContext]],
) -> FunctionTool:
    """A tool of your own that needs approval: farhand runs its function once, with the approved input.

    >>> Agent("clerk", tools=[approved(hands, delete_file, thread="t1")])
    """
    try:
        with explain_schema_errors(tool, is_tool=isinstance(tool, FunctionTool), hint="Use @function_tool."):
            function = tool.__wrapped__
    except AttributeError:
        raise BadTool(f"`{tool.name}` has no function of its own.", hint="Use @function_tool.") from None
    about, schema = {"name": tool.name, "description": tool.description}, tool.params_json_schema
    run = convert_arguments(function, tool.name, schema)
    far = declare_own(hands, run, **about, schema=schema, options=options)
    return _make_tool(hands, far, where)


def _make_tool(hands: Hands, tool: FarTool, where: ThreadOptions[RunContext]) -> FunctionTool:
    caller = HandCaller(hands, where)

    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        input = read_arguments(arguments)
        if isinstance(input, ToolReply):
            return input.text
        # also if it was resumed too early: the SDK has no second pause
        return (await caller.wait(tool.tool, input, context, context.tool_call_id)).text

    async def is_open(context: RunContext, input: dict[str, Any], call_id: str) -> bool:
        return isinstance(await caller.call(tool.tool, input, context, call_id), Waiting)

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.schema,
        on_invoke_tool=invoke,
        strict_json_schema=False,
        needs_approval=False if where.get("hold_for") is None else is_open,
    )
