"""Pydantic AI: far hands as a toolset of an agent. Needs `farhand[pydantic-ai]`.

```python
from pydantic_ai import Agent

from farhand import Toolbox, create_app
from farhand.bridges.pydantic_ai import FarhandToolset

hands = create_app(Toolbox(), store="memory:")
agent = Agent("test", toolsets=[FarhandToolset(hands, thread="t1")])
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, Unpack

from farhand.agent.keyed_calls import Waiting
from farhand.bridges.bridge import HandCaller, ThreadOptions, attach, run_concurrently
from farhand.bridges.far_tools import FarTool, Hands, declare_own, explain_schema_errors
from farhand.core.principal import LOCAL, Who
from farhand.errors import BadTool, not_installed
from farhand.tools.options import ToolOptions

try:
    from pydantic_ai import CallDeferred, DeferredToolRequests, DeferredToolResults, RunContext, ToolReturn
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.tools import Tool
    from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema
except ModuleNotFoundError as error:
    raise not_installed("Bridges to Pydantic AI", "pydantic-ai") from error

__all__ = ["FarhandToolset", "approved", "hands_results"]

D = TypeVar("D")
# the entry for the call's key in the metadata of a deferred call
KEY = "farhand"


class FarhandToolset(AbstractToolset[D]):
    """The tools of the app, looked up at each step. A failure reaches the model as `ToolFailed`.

    A call that is still open after `hold_for` seconds is deferred: the agent needs `DeferredToolRequests`
    among its output types, and its next run needs the `hands_results`.

    >>> Agent(model, toolsets=[FarhandToolset(hands, thread=lambda ctx: ctx.deps.thread)])
    """

    @property
    def id(self) -> str:
        return "farhand"

    def __init__(
        self,
        hands: Hands,
        *,
        only: Sequence[str] | None = None,
        **where: Unpack[ThreadOptions[RunContext[D]]],
    ) -> None:
        self._caller, self._only = HandCaller(hands, where), only

    async def get_tools(self, ctx: RunContext[D]) -> dict[str, ToolsetTool[D]]:
        tools = [_tool(self._caller, each) for each in self._caller.list_tools(ctx, self._only)]
        return await FunctionToolset[D](tools).get_tools(ctx)

    # Any, here and below: the inputs and results of other people's tools
    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[D], tool: ToolsetTool[D]
    ) -> Any:
        return await tool.toolset.call_tool(name, tool_args, ctx, tool)


async def hands_results(
    hands: Hands, requests: DeferredToolRequests, *, owner: Who = LOCAL
) -> DeferredToolResults:
    """The outcomes of the far calls that a run deferred, once all are settled. Add those of other tools.

    >>> results = await hands_results(hands, result.output)
    >>> await agent.run(message_history=result.all_messages(), deferred_tool_results=results)
    """
    keys = {each: noted[KEY] for each, noted in requests.metadata.items() if KEY in noted}
    replies = await run_concurrently([attach(hands, key, owner=owner) for key in keys.values()])
    results = [ToolFailed(reply.text) if reply.is_error else ToolReturn(reply.content) for reply in replies]
    return requests.build_results(calls=dict(zip(keys, results, strict=True)))


def approved(
    hands: Hands,
    tool: Tool[D] | Callable[..., Any],
    *,
    options: ToolOptions | None = None,
    **where: Unpack[ThreadOptions[RunContext[D]]],
) -> Tool[D]:
    """A tool of your own that needs approval: farhand runs its function once, with the approved input.

    >>> Agent(model, tools=[approved(hands, delete_file, thread="t1")])
    """
    with explain_schema_errors(
        tool, is_tool=isinstance(tool, Tool) or callable(tool), hint="Pass a function."
    ):
        own: Tool[D] = tool if isinstance(tool, Tool) else Tool(tool)
    if own.takes_ctx:
        raise BadTool(
            f"`{own.name}` takes a RunContext, which no longer exists when a person approves the call later.",
            hint="Remove it; farhand.current() returns the owner that the tool works for.",
        )

    def run(**input: object) -> object:
        function: Callable[..., object] = own.function
        return function(**own.function_schema.validator.validate_python(input))

    schema, words = own.tool_def.parameters_json_schema, own.description or own.name
    far = declare_own(hands, run, name=own.name, description=words, schema=schema, options=options)
    return _tool(HandCaller(hands, where), far)


def _tool(caller: HandCaller[RunContext[D]], far: FarTool) -> Tool[D]:
    async def call(ctx: RunContext[D], /, **input: Any) -> Any:
        reply = await caller.call(far.tool, input, ctx, ctx.run_id, ctx.run_step, ctx.tool_call_id)
        if isinstance(reply, Waiting):
            raise CallDeferred(metadata={KEY: reply.key})
        if reply.is_error:
            raise ToolFailed(reply.text)
        return reply.content

    tool = Tool[D].from_schema(call, far.name, far.description, far.schema, takes_ctx=True)
    # the desk checks the input against the schema; here it only has to be an object
    tool.function_schema.validator = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
    return tool
