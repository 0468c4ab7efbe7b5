"""What loops written by hand share: the calls in a provider's answer, read from its library's objects or from
the same as JSON, and made side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from farhand.agent.keyed_calls import Waiting
from farhand.bridges.bridge import HandCaller, ToolReply, Where, side_by_side
from farhand.bridges.far_tools import Hands
from farhand.errors import Misuse

__all__ = ["ModelCall", "call_all", "field_of", "list_field"]


class ModelCall(Struct, frozen=True):
    """A call in a provider's answer; its input may be refused already."""

    call_id: str
    name: str
    input: Mapping[str, object] | ToolReply


async def call_all(
    hands: Hands, calls: Sequence[ModelCall], message_id: str, own: Collection[str], where: Where[None]
) -> list[tuple[ModelCall, ToolReply]]:
    """The calls of one message, side by side, without those of the program's `own` tools. `TimeoutError` if
    one is still open after `hold_for`."""
    _check(calls, message_id, own)
    caller = HandCaller(hands, where)
    names = {tool.name: tool.tool for tool in caller.list_tools(None)}
    ours = [call for call in calls if call.name not in own]

    async def reply_to(call: ModelCall) -> ToolReply | Waiting:
        if isinstance(call.input, ToolReply):
            return call.input
        return await caller.call(names.get(call.name, call.name), call.input, None, message_id, call.call_id)

    replies = await side_by_side([reply_to(call) for call in ours])
    answered = [reply for reply in replies if isinstance(reply, ToolReply)]
    if len(answered) < len(replies):
        raise TimeoutError(
            f"{len(replies) - len(answered)} calls are still open; ask again with the same message."
        )
    return list(zip(ours, answered, strict=True))


def field_of(item: object, name: str) -> Any:
    """Of an object of a provider's library, or of the same as JSON."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def list_field(item: object, name: str, what: str) -> list[Any]:
    """The same for a list; `what` is the name of the object in the provider's library."""
    found = field_of(item, name)
    if isinstance(found, str | Mapping) or not isinstance(found, Sequence):
        raise Misuse(
            f"This is not a {what}: it has no list `{name}` ({type(item).__name__}).",
            hint=f"Pass the {what} as the library returned it, or its to_dict().",
        )
    return list(found)


def _check(calls: Sequence[ModelCall], message_id: object, own: object) -> None:
    if isinstance(own, str) or not isinstance(own, Collection):
        raise Misuse(f"`own` is a list of the names of your tools, not {own!r}.")
    if calls and not (isinstance(message_id, str) and message_id):
        raise Misuse(
            "This message has no id, so its calls cannot be distinguished from those of another message.",
            hint="Give it one of your own that stays the same: {**message.to_dict(), 'id': …}.",
        )
    for call in calls:
        named: tuple[object, object] = call.call_id, call.name
        if not all(isinstance(each, str) and each for each in named):
            raise Misuse(
                f"A call of this message has no id or no name: {call.call_id!r}, {call.name!r}.",
                hint="Pass the message as the library returned it.",
            )
