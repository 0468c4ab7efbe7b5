"""A post of the chat page becomes our nouns.

Taken from a client's messages: a new user message, results of calls and answers to approvals. Nothing else in
them is believed, and whether those are new and allowed is the desk's to say.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from farhand.agent.attachments import Said
from farhand.calls.change import Reply
from farhand.calls.desk import Brought
from farhand.core.approval import Answer
from farhand.core.event import Bookmark, parse_bookmark
from farhand.core.ids import is_chosen_id
from farhand.core.outcome import Failure, Outcome, Success
from farhand.core.result import Result
from farhand.core.settings import Wait
from farhand.core.thread import Text
from farhand.errors import Malformed
from farhand.faces.ui_stream.attachments import file_of
from farhand.faces.ui_stream.shapes import (
    AbortFrame,
    Addressed,
    ChatRequest,
    InterruptFrame,
    MessageFrame,
    PingFrame,
    ResumeFrame,
    SendFrame,
    ToolResultFrame,
    UIMessage,
    UIPart,
)
from farhand.wire.guard import OneOf, read_as


class Say(Struct, frozen=True):
    """A user's message; `instead_of` names the message it replaces, with all that came after."""

    message_id: str
    said: tuple[Said, ...]
    instead_of: str | None = None


class Again(Struct, frozen=True):
    """Another answer to the last user message, instead of this one or the last one."""

    instead_of: str | None


class Bring(Struct, frozen=True):
    """What far hands and people bring for open calls. `call_ids`: every call that the message shows;
    `claimed`: those of them that it shows as answered."""

    brought: tuple[Brought, ...]
    call_ids: tuple[str, ...]
    claimed: tuple[str, ...] = ()
    inputs: dict[str, object] = {}
    """What the message shows as the calls' inputs; it counts only if it is the stored one."""


class Chat(Struct, frozen=True):
    """`wait` is None where the request does not say it."""

    thread_id: str
    wait: Wait | None
    wish: Say | Again | Bring


Wish: TypeAlias = Say | Again | Bring


def decode_message(body: bytes) -> Chat:
    return chat_of(read_as(body, ChatRequest))


def chat_of(request: ChatRequest) -> Chat:
    if not is_chosen_id(request.id):
        raise Malformed("id must be 1 to 128 letters, digits or _ . : -")
    return Chat(request.id, request.wait, _wish(request))


def decode_position(text: str | None) -> Bookmark | None:
    """Where a reader of our own stopped; a stock client has no position."""
    if text is None:
        return None
    bookmark = parse_bookmark(text)
    if bookmark is None:
        raise Malformed("after is not a position.", hint="Send the last id of the stream, such as 12.0.")
    return bookmark


def _wish(request: ChatRequest) -> Wish:
    if request.trigger == "regenerate-message":
        return Again(request.message_id)
    if not request.messages:
        raise Malformed("messages is empty.", hint="Send the last message at least.")
    last = request.messages[-1]
    if last.role == "user":
        if not is_chosen_id(last.id):
            raise Malformed("A message's id must be 1 to 128 letters, digits or _ . : -")
        edits = request.message_id is not None and request.message_id == last.id
        return Say(last.id, _said(last), request.message_id if edits else None)
    if last.role == "system":
        raise Malformed("The last message must be the user's or the assistant's.")
    calls = [part for part in last.parts if part.tool_call_id]
    return Bring(
        tuple(item for part in calls for item in _brought(part)),
        tuple(part.tool_call_id for part in calls),
        tuple(part.tool_call_id for part in calls if part.state in _ANSWERED),
        {part.tool_call_id: part.input for part in calls if part.input is not None},
    )


def _said(message: UIMessage) -> tuple[Said, ...]:
    said: list[Said] = []
    for part in message.parts:
        if part.type == "text" and part.text.strip():
            said.append(Text(part.text))
        elif part.type == "file":
            said.append(file_of(part))
    if not said:
        raise Malformed("The user's message has no text.")
    return tuple(said)


def _brought(part: UIPart) -> list[Brought]:
    """An answer to an approval comes first: it may be what lets the output beside it count."""
    if not (part.type.startswith("tool-") or part.type == "dynamic-tool"):
        return []
    items: list[Brought] = []
    if part.approval is not None and isinstance(part.approval.approved, bool):
        answer = Answer(approved=part.approval.approved, reason=part.approval.reason or "")
        items.append(Reply(part.approval.id, answer))
    outcome = _outcome_of(part)
    if outcome is not None:
        items.append(Result(call_id=part.tool_call_id, outcome=outcome))
    return items


def _outcome_of(part: UIPart) -> Outcome | None:
    match part.state:
        case "output-available":
            return Success(part.output)
        case "output-error":
            return Failure(part.error_text or "failed")
        case _:
            return None


_ANSWERED = frozenset({"approval-responded", "output-available", "output-error", "output-denied"})

SocketFrame: TypeAlias = SendFrame | ResumeFrame | AbortFrame | PingFrame
LiveFrame: TypeAlias = MessageFrame | ToolResultFrame | InterruptFrame | PingFrame

_SOCKET_FRAMES: OneOf[SocketFrame] = OneOf(SendFrame, ResumeFrame, AbortFrame, PingFrame)
_LIVE_FRAMES: OneOf[LiveFrame] = OneOf(MessageFrame, ToolResultFrame, InterruptFrame, PingFrame)


def decode_socket_frame(frame: bytes) -> SocketFrame:
    """A frame of AI SDK's own WebSocket transport, or a ping of our own client."""
    return _SOCKET_FRAMES.read(frame)


def decode_live_frame(frame: bytes) -> LiveFrame:
    """A frame of the held socket."""
    return _LIVE_FRAMES.read(frame)


def chat_of_send(frame: SendFrame) -> Chat:
    wait = frame.body.wait if frame.body is not None else None
    return chat_of(ChatRequest(frame.id, frame.messages, frame.trigger, frame.message_id, wait))


def chat_of_message(frame: MessageFrame) -> Chat:
    # every exchange of this socket ends by itself: its client cannot answer in any other way
    return chat_of(ChatRequest(frame.id, frame.messages, frame.trigger, frame.message_id, "turn"))


def brings_results(frame: MessageFrame | ToolResultFrame) -> bool:
    """Whether it answers calls, rather than saying something new."""
    return isinstance(frame, ToolResultFrame) or bool(
        frame.messages and frame.messages[-1].role == "assistant"
    )


def result_of(frame: ToolResultFrame) -> Result:
    if frame.status in ("success", "completed", "ok"):
        return Result(call_id=frame.tool_call_id, outcome=Success(frame.result))
    text = frame.result if isinstance(frame.result, str) else frame.status
    return Result(call_id=frame.tool_call_id, outcome=Failure(text))


def request_id_in(frame: bytes) -> str | None:
    """Whose request a frame was that could not be understood, if even that can be told."""
    try:
        addressed = read_as(frame, Addressed)
    except Malformed:
        return None
    return addressed.request_id or None
