"""Anthropic's library: far hands in a loop of your own over `client.messages`. Needs `farhand[anthropic]`.

```python
from farhand import Toolbox, create_app
from farhand.bridges.anthropic import anthropic_tools

hands = create_app(Toolbox(), store="memory:")
tools = anthropic_tools(hands)  # client.messages.create(tools=tools, …)
```

A call's key is `thread:message.id:tool_use.id`. Store the message (`message.to_dict()`), and a loop that was
killed can ask for the results again, even in another process.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, Unpack

from farhand.bridges.bridge import ThreadOptions, ToolReply, refuse_call
from farhand.bridges.far_tools import Hands, list_far_tools
from farhand.bridges.provider_calls import ModelCall, call_all, field_of, list_field
from farhand.core.principal import LOCAL, Who

if TYPE_CHECKING:
    from anthropic.types import Message, MessageParam, ToolParam, ToolResultBlockParam

__all__ = ["anthropic_results", "anthropic_tools"]

SavedMessage: TypeAlias = Mapping[str, object]
"""The result of `message.to_dict()`."""
CUT_OFF = "This call was not executed: the message did not end with its tool calls."


def anthropic_tools(
    hands: Hands, *, owner: Who = LOCAL, only: Sequence[str] | None = None
) -> list[ToolParam]:
    """The current tools, for `messages.create(tools=…)`. Call it at each step: programs come and go.

    >>> client.messages.create(model=model, max_tokens=1000, messages=messages, tools=anthropic_tools(hands))
    """
    return [
        {"name": each.name, "description": each.description, "input_schema": each.schema}
        for each in list_far_tools(hands, owner, only=only)
    ]


async def anthropic_results(
    hands: Hands,
    message: Message | SavedMessage,
    *,
    own: Collection[str] = (),
    **where: Unpack[ThreadOptions[None]],
) -> MessageParam:
    """The next user message: one `tool_result` for each `tool_use`, once all calls are settled.

    `own` names tools that you run yourself; add their results to `content`. Raises `TimeoutError` if a call
    is still open after `hold_for` seconds: store the messages and call this again with the same message, when
    `on_settled` notifies you or later.

    >>> messages.append(await anthropic_results(hands, message, thread="t1"))
    """
    content = list_field(message, "content", "Message")
    blocks = [block for block in content if field_of(block, "type") == "tool_use"]
    is_whole = field_of(message, "stop_reason") == "tool_use"
    calls = [
        ModelCall(
            field_of(it, "id"),
            field_of(it, "name"),
            field_of(it, "input") if is_whole else refuse_call(CUT_OFF),
        )
        for it in blocks
    ]
    answered = await call_all(hands, calls, field_of(message, "id"), own, where)
    return {"role": "user", "content": [_result(call, reply) for call, reply in answered]}


def _result(call: ModelCall, reply: ToolReply) -> ToolResultBlockParam:
    return {
        "type": "tool_result",
        "tool_use_id": call.call_id,
        "content": reply.text or "(no output)",
        "is_error": reply.is_error,
    }
