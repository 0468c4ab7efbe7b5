"""Google's Agent Development Kit: far hands as tools of an agent. Needs `farhand[google-adk]`.

```python
from google.adk.agents import LlmAgent

from farhand import Toolbox, create_app
from farhand.bridges.google_adk import farhand_tools

hands = create_app(Toolbox(), store="memory:")
agent = LlmAgent(name="clerk", tools=[*farhand_tools(hands)])
```

A session is a thread. A call's key is `session_id:event_id:function_call_id`; the event is the model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, Unpack

from farhand.agent.keyed_calls import Waiting
from farhand.bridges.bridge import CallOptions, HandCaller, ToolReply
from farhand.bridges.far_tools import FarTool, Hands, convert_arguments, declare_own, explain_schema_errors
from farhand.errors import Misuse, not_installed
from farhand.tools.options import ToolOptions

try:
    from google.adk.events import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.sessions import Session
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.function_tool import FunctionTool
    from google.adk.tools.tool_context import ToolContext
    from google.genai.types import Content, FunctionCall, FunctionDeclaration, FunctionResponse, Part, Tool
except ModuleNotFoundError as error:
    raise not_installed("Bridges to Google ADK", "google-adk") from error

__all__ = ["approved", "farhand_tools", "hands_responses"]

SessionOptions: TypeAlias = CallOptions[Session]


def farhand_tools(
    hands: Hands, *, only: Sequence[str] | None = None, **where: Unpack[SessionOptions]
) -> list[BaseTool]:
    """The current tools of the app.

    A call that is still open after `hold_for` seconds pauses the invocation, which needs
    `ResumabilityConfig(is_resumable=True)`; resume it with `hands_responses`.

    >>> LlmAgent(name="clerk", tools=[*farhand_tools(hands, hold_for=30)])
    """
    return [_HandTool(hands, each, where) for each in _caller(hands, where).list_tools(only=only)]


async def hands_responses(hands: Hands, session: Session, **where: Unpack[SessionOptions]) -> Content | None:
    """The message that resumes the last invocation that waits for far calls: their outcomes, once all are
    settled. None if there is no such invocation.

    >>> runner.run_async(…, new_message=await hands_responses(hands, session))
    """
    caller = _caller(hands, {**where, "hold_for": 0.0})
    parts: list[Part] = []
    for event, call in _unanswered(session):
        tool = caller.find_tool(str(call.name), session)
        if tool is not None:
            # opens the call if the process died before it did
            reply = await caller.wait(tool, call.args or {}, session, event.id, call.id)
            response = FunctionResponse(id=call.id, name=call.name, response=_response(reply))
            parts.append(Part(function_response=response))
    return Content(role="user", parts=parts) if parts else None


def approved(
    hands: Hands, tool: FunctionTool, *, options: ToolOptions | None = None, **where: Unpack[SessionOptions]
) -> BaseTool:
    """A tool of your own that needs approval: farhand runs its function once, with the approved input.

    >>> LlmAgent(name="clerk", tools=[approved(hands, FunctionTool(delete_file))])
    """
    request = LlmRequest()
    with explain_schema_errors(
        tool, is_tool=isinstance(tool, FunctionTool), hint="Use FunctionTool(function)."
    ):
        request.append_tools([tool])
    [known] = request.config.tools or []
    assert isinstance(known, Tool), "it holds the declarations of functions"
    [declared] = known.function_declarations or []
    schema = declared.parameters_json_schema or {"type": "object", "properties": {}}
    about = {"name": tool.name, "description": tool.description}
    function = convert_arguments(tool.func, tool.name, schema)
    far = declare_own(hands, function, **about, schema=schema, options=options)
    return _HandTool(hands, far, where)


class _HandTool(BaseTool):
    def __init__(self, hands: Hands, tool: FarTool, where: SessionOptions) -> None:
        parks = where.get("hold_for") is not None
        super().__init__(name=tool.name, description=tool.description, is_long_running=parks)
        self._caller = _caller(hands, where)
        self._tool = tool

    def _get_declaration(self) -> FunctionDeclaration:
        return FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._tool.schema
        )

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        # a tool does not know its app before this
        if self.is_long_running and not tool_context.get_invocation_context().is_resumable:
            raise Misuse(
                "`hold_for` needs a resumable app: otherwise ADK does not wait for all responses of a step.",
                hint="Set App(resumability_config=ResumabilityConfig(is_resumable=True)).",
            )
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)

    # Any: the inputs of other people's tools
    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, object] | None:
        session, call_id = tool_context.session, tool_context.function_call_id
        # the last one counts: a provider may use an id again; there is none if the session is not saved yet
        events = {call.id: each.id for each in session.events for call in each.get_function_calls()}
        asked = events.get(call_id, tool_context.invocation_id)
        reply = await self._caller.call(self._tool.tool, args, session, asked, call_id)
        return None if isinstance(reply, Waiting) else _response(reply)


def _caller(hands: Hands, where: SessionOptions) -> HandCaller[Session]:
    return HandCaller(hands, {"thread": lambda session: session.id, **where})


def _response(reply: ToolReply) -> dict[str, object]:
    return {"error": reply.text} if reply.is_error else {"result": reply.content}


def _unanswered(session: Session) -> list[tuple[Event, FunctionCall]]:
    waiting: dict[str | None, tuple[Event, FunctionCall]] = {}
    for event in session.events:
        for response in event.get_function_responses():
            waiting.pop(response.id, None)
        lasting = event.long_running_tool_ids or ()
        waiting |= {call.id: (event, call) for call in event.get_function_calls() if call.id in lasting}
    last = [event.invocation_id for event, _ in waiting.values()][-1:]
    return [(event, call) for event, call in waiting.values() if event.invocation_id in last]
