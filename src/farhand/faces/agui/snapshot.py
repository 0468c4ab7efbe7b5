"""The record of a thread as the messages of a snapshot, with the ids that its events have. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from farhand.core.call import Call
from farhand.core.outcome import Outcome, public, seen_by_model
from farhand.core.thread import (
    AssistantMessage,
    File,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCallPart,
    UserMessage,
)
from farhand.faces.agui.decode import result_message_id
from farhand.faces.agui.shapes import CalledFunction, ShownMessage, ShownPart, ShownToolCall, UrlSource
from farhand.wire.json_writer import encode


def snapshot(
    messages: Iterable[Message], settled: Sequence[Call] = (), *, root: str = "", hidden: Collection[str] = ()
) -> list[ShownMessage]:
    """`settled` are calls of the last message whose results are not in `messages` yet, `hidden` calls that
    the client is not shown yet. `root` is the path under which a host mounts us."""
    shown: list[ShownMessage] = []
    for message in messages:
        match message:
            case UserMessage(message_id=message_id, parts=parts):
                shown.append(ShownMessage(message_id, "user", _content(parts, root)))
            case AssistantMessage():
                shown += _answer(message, hidden)
            case _:
                shown += [_result(each.call_id, each.outcome) for each in message.results]
    results = [_result(call.call_id, call.outcome) for call in settled if call.outcome is not None]
    return [*shown, *results]


def _answer(message: AssistantMessage, hidden: Collection[str]) -> list[ShownMessage]:
    """One message for each text; the calls belong to the last one, as in the stream."""
    shown: list[ShownMessage] = []
    own: ShownMessage | None = None
    for place, part in enumerate(message.parts):
        if isinstance(part, Reasoning) and part.text:
            shown.append(ShownMessage(f"{message.message_id}:r{place}", "reasoning", part.text))
        elif isinstance(part, Text) and part.text:
            message_id = message.message_id if own is None else f"{message.message_id}:{place}"
            own = ShownMessage(message_id, "assistant", part.text)
            shown.append(own)
    calls = [_tool_call(asked) for asked in message.tool_calls if asked.call_id not in hidden]
    if not calls:
        return shown
    if own is None:
        own = ShownMessage(message.message_id, "assistant")
        shown.append(own)
    own.tool_calls = calls
    return shown


def _tool_call(asked: ToolCallPart) -> ShownToolCall:
    return ShownToolCall(asked.call_id, CalledFunction(asked.tool, encode(asked.input).decode()))


def _result(call_id: str, outcome: Outcome) -> ShownMessage:
    text = seen_by_model(public(outcome)).text
    return ShownMessage(result_message_id(call_id), "tool", text, tool_call_id=call_id)


def _content(parts: Sequence[Part], root: str) -> str | list[ShownPart]:
    """A text as it was sent; with files, a list of parts. Notes are only for the model."""
    if not any(isinstance(part, File) for part in parts):
        return "".join([part.text for part in parts if isinstance(part, Text)])
    shown: list[ShownPart] = []
    for part in parts:
        if isinstance(part, Text):
            shown.append(ShownPart("text", text=part.text))
        elif isinstance(part, File):
            source = UrlSource(f"{root}/api/files/{part.ref}", part.media_type)
            shown.append(ShownPart(_kind(part.media_type), source=source))
    return shown


def _kind(media_type: str) -> str:
    kind = media_type.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "document"
