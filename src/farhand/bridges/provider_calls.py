"""Makes the calls in a provider's response, for loops over the provider's own library. The response may be an
object of that library or the same as JSON. Calls run concurrently."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from farhand.agent.keyed_calls import Waiting
from farhand.bridges.bridge import HandCaller, ThreadOptions, ToolReply, run_concurrently
from farhand.bridges.far_tools import Hands
from farhand.errors import Misuse

__all__ = ["ModelCall", "call_all", "field_of", "list_field"]


class ModelCall(Struct, frozen=True):
    """A call in a provider's response. `input` is a reply if the call was already refused."""

    call_id: str
    name: str
    input: Mapping[str, object] | ToolReply


async def call_all(
    hands: Hands,
    calls: Sequence[ModelCall],
    message_id: str,
    own: Collection[str],
    where: ThreadOptions[None],
) -> list[tuple[ModelCall, ToolReply]]:
    """The replies to the calls of one message, without those of the program's `own` tools. Raises
    `TimeoutError` if a call is still open after `hold_for`."""
    _check(calls, message_id, own)
    caller = HandCaller(hands, where)
    names = {tool.name: tool.tool for tool in caller.list_tools(None)}
    ours = [call for call in calls if call.name not in own]

    async def reply_to(call: ModelCall) -> ToolReply | Waiting:
        if isinstance(call.input, ToolReply):
            return call.input
        return await caller.call(names.get(call.name, call.name), call.input, None, message_id, call.call_id)

    replies = await run_concurrently([reply_to(call) for call in ours])
    answered = [reply for reply in replies if isinstance(reply, ToolReply)]
    waiting = len(replies) - len(answered)
    if waiting:
        open_calls = "1 call is" if waiting == 1 else f"{waiting} calls are"
        raise TimeoutError(f"{open_calls} still open; ask again with the same message.")
    return list(zip(ours, answered, strict=True))


def field_of(item: object, name: str) -> Any:
    """A field of an object of a provider's library, or of the same as JSON."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def list_field(item: object, name: str, what: str) -> list[Any]:
    """The same for a list; `what` is the name of the object in the provider's library."""
    found = field_of(item, name)
    if isinstance(found, str | Mapping) or not isinstance(found, Sequence):
        raise Misuse(
            f"{type(item).__name__} is not a {what}: it has no list `{name}`.",
            hint=f"Pass the {what} as the library returned it, or its to_dict().",
        )
    return list(found)


def _check(calls: Sequence[ModelCall], message_id: object, own: object) -> None:
    if isinstance(own, str) or not isinstance(own, Collection):
        raise Misuse(f"`own` must be a list of tool names, not {own!r}.")
    if calls and not (isinstance(message_id, str) and message_id):
        raise Misuse(
            "This message has no id, so its calls cannot be distinguished from those of another message.",
            hint="Add one that stays the same: {**message.to_dict(), 'id': …}.",
        )
    for call in calls:
        named: tuple[object, object] = call.call_id, call.name
        if not all(isinstance(each, str) and each for each in named):
            raise Misuse(
                f"A call of this message has no id or no name: {call.call_id!r}, {call.name!r}.",
                hint="Pass the message as the library returned it.",
            )
