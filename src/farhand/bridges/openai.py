"""OpenAI's library: far hands in a loop of your own over Responses or Chat Completions.

Needs `farhand[openai]`.

```python
from farhand import Toolbox, create_app
from farhand.bridges.openai import responses_tools

hands = create_app(Toolbox(), store="memory:")
tools = responses_tools(hands)  # client.responses.create(tools=tools, …)
```

A call's key is `thread:response.id:call_id`. Store the response (`response.to_dict()`), and a loop that was
killed can ask for the results again, even in another process.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, Unpack

from farhand.bridges.bridge import ThreadOptions, read_arguments, refuse_call
from farhand.bridges.far_tools import Hands, list_far_tools
from farhand.bridges.provider_calls import ModelCall, call_all, field_of, list_field
from farhand.core.principal import LOCAL, Who

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion, ChatCompletionToolMessageParam
    from openai.types.chat import ChatCompletionFunctionToolParam as ChatTool
    from openai.types.responses import FunctionToolParam as Function
    from openai.types.responses import Response
    from openai.types.responses.response_input_param import FunctionCallOutput

__all__ = ["chat_results", "chat_tools", "responses_outputs", "responses_tools"]

Saved: TypeAlias = Mapping[str, object]
"""The result of `response.to_dict()`."""
CUT_OFF = "This call was not executed: the answer was cut off."


def responses_tools(hands: Hands, *, owner: Who = LOCAL, only: Sequence[str] | None = None) -> list[Function]:
    """The current tools, for `responses.create(tools=…)`. Call it at each step: programs come and go.

    >>> client.responses.create(model=model, input=input, tools=responses_tools(hands))
    """
    return [
        {
            "type": "function",
            "name": t.name,
            "description": t.description,
            "parameters": t.schema,
            "strict": False,
        }
        for t in list_far_tools(hands, owner, only=only)
    ]


def chat_tools(hands: Hands, *, owner: Who = LOCAL, only: Sequence[str] | None = None) -> list[ChatTool]:
    """The same for `chat.completions.create(tools=…)`.

    >>> client.chat.completions.create(model=model, messages=messages, tools=chat_tools(hands))
    """
    return [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": t.schema},
        }
        for t in list_far_tools(hands, owner, only=only)
    ]


async def responses_outputs(
    hands: Hands,
    response: Response | Saved,
    *,
    own: Collection[str] = (),
    **where: Unpack[ThreadOptions[None]],
) -> list[FunctionCallOutput]:
    """One `function_call_output` for each call, once all are settled. `own` names functions that you run.

    Raises `TimeoutError` if a call is still open after `hold_for` seconds: store the response and call this
    again with the same one, when `on_settled` notifies you or later.

    >>> input += await responses_outputs(hands, response, thread="t1")
    """
    output = list_field(response, "output", "Response")
    items = [item for item in output if field_of(item, "type") == "function_call"]
    is_whole = field_of(response, "status") in {None, "completed"}
    calls = [_call(field_of(item, "call_id"), item, is_whole=is_whole) for item in items]
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": reply.text}
        for call, reply in await call_all(hands, calls, field_of(response, "id"), own, where)
    ]


async def chat_results(
    hands: Hands,
    completion: ChatCompletion | Saved,
    *,
    own: Collection[str] = (),
    **where: Unpack[ThreadOptions[None]],
) -> list[ChatCompletionToolMessageParam]:
    """One `tool` message for each call of the first choice; otherwise as `responses_outputs`.

    >>> messages += await chat_results(hands, completion, thread="t1")
    """
    # a response that was filtered has no choice
    choice = next(iter(list_field(completion, "choices", "ChatCompletion")), None)
    asked = field_of(field_of(choice, "message"), "tool_calls") or ()
    is_whole = field_of(choice, "finish_reason") not in {"length", "content_filter"}
    items = [(field_of(item, "id"), field_of(item, "function")) for item in asked]
    # custom tools have no function
    calls = [_call(call_id, each, is_whole=is_whole) for call_id, each in items if each is not None]
    return [
        {"role": "tool", "tool_call_id": call.call_id, "content": reply.text}
        for call, reply in await call_all(hands, calls, field_of(completion, "id"), own, where)
    ]


def _call(call_id: str, function: object, *, is_whole: bool) -> ModelCall:
    input = read_arguments(field_of(function, "arguments")) if is_whole else refuse_call(CUT_OFF)
    return ModelCall(call_id, field_of(function, "name"), input)
