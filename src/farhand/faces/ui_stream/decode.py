"""Decodes requests of the chat page.

Taken from a client's messages: a new user message, results of calls and answers to approvals. Nothing else in
them is believed, and whether those are new and allowed is decided by `Turns`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from farhand.agent.attachments import AttachedFile, FileReference, MessageInput, from_base64
from farhand.agent.files import Label
from farhand.agent.turns import CallAnswers, ChatTurn, NewMessage, Regeneration
from farhand.calls.desk import Submission
from farhand.core.approval import Answer
from farhand.core.decide.calls import Reply
from farhand.core.file import UNNAMED, clean_name, media_type_of
from farhand.core.outcome import Failure, Outcome, Success
from farhand.core.position import Bookmark, parse_bookmark
from farhand.core.result import Result
from farhand.core.settings import Wait
from farhand.core.thread import Text
from farhand.errors import Malformed
from farhand.faces.base import check_id
from farhand.faces.ui_stream.shapes import (
    AbortFrame,
    ChatRequest,
    FrameHeader,
    InterruptFrame,
    MessageFrame,
    PingFrame,
    ResumeFrame,
    SendFrame,
    ToolResultFrame,
    UIMessage,
    UIPart,
)
from farhand.wire.json_reader import OneOf, read_as


class Chat(Struct, frozen=True):
    """`wait` is None if the request does not say. `claimed` are calls that the client shows as answered."""

    thread_id: str
    wait: Wait | None
    turn: ChatTurn
    claimed: tuple[str, ...] = ()


def decode_message(body: bytes) -> Chat:
    return chat_of(read_as(body, ChatRequest))


def chat_of(request: ChatRequest) -> Chat:
    check_id(request.id, "id")
    turn = _turn(request)
    claimed = _calls_of(request.messages[-1], _ANSWERED) if isinstance(turn, CallAnswers) else ()
    return Chat(request.id, request.wait, turn, claimed)


def decode_position(text: str | None) -> Bookmark | None:
    """The position of our own client; a stock client has none."""
    if text is None:
        return None
    bookmark = parse_bookmark(text)
    if bookmark is None:
        raise Malformed("after is not a position.", hint="Send the last id of the stream, such as 12.0.")
    return bookmark


def _turn(request: ChatRequest) -> ChatTurn:
    if request.trigger == "regenerate-message":
        return Regeneration(request.message_id)
    if not request.messages:
        raise Malformed("messages is empty.", hint="Send at least the last message.")
    last = request.messages[-1]
    if last.role == "user":
        check_id(last.id, "A message's id")
        edits = request.message_id is not None and request.message_id == last.id
        return NewMessage(last.id, _parts(last), request.message_id if edits else None)
    if last.role == "system":
        raise Malformed("The last message must be the user's or the assistant's.")
    calls = [part for part in last.parts if part.tool_call_id]
    return CallAnswers(
        tuple(item for part in calls for item in _submissions(part)),
        _calls_of(last),
        {part.tool_call_id: part.input for part in calls if part.input is not None},
    )


def _calls_of(message: UIMessage, states: Collection[str] | None = None) -> tuple[str, ...]:
    """The calls that the message shows, all of them or those in one of these states."""
    return tuple(
        part.tool_call_id
        for part in message.parts
        if part.tool_call_id and (states is None or part.state in states)
    )


def _parts(message: UIMessage) -> tuple[MessageInput, ...]:
    parts: list[MessageInput] = []
    for part in message.parts:
        if part.type == "text" and part.text.strip():
            parts.append(Text(part.text))
        elif part.type == "file":
            parts.append(_file(part))
    if not parts:
        raise Malformed("The user's message has no text.")
    return tuple(parts)


def _file(part: UIPart) -> AttachedFile | FileReference:
    """Bytes in a `data:` address, or a file that was uploaded before. Nothing is ever fetched."""
    if part.url.startswith("data:"):
        return _attached(part)
    found = _OWN_ADDRESS.fullmatch(part.url)
    if found is None:
        raise Malformed(
            "A file part needs a data: address, or the address of a file that was uploaded here.",
            hint="Upload it (POST /api/files) and send /api/files/ and its ref; nothing is fetched.",
        )
    return FileReference(found[1])


# also below the path of a host that mounts farhand, but never on another server
_OWN_ADDRESS = re.compile(r"(?:/(?!/)[^?#\\]*)?/api/files/(blob_[0-9a-f]{32})")


def _attached(part: UIPart) -> AttachedFile:
    head, comma, body = part.url.removeprefix("data:").partition(",")
    if not comma:
        raise Malformed("The data: address of a file has no comma.", hint="Nothing was applied.")
    media_type = media_type_of(part.media_type or head)
    if media_type is None:
        raise Malformed("A file part needs its mediaType.", hint="Nothing was applied.")
    raw = unquote_to_bytes(body)
    in_base64 = head.strip().lower().endswith(";base64")
    data = from_base64(raw, what="The data: address of a file") if in_base64 else raw
    name = clean_name(part.filename) if part.filename else UNNAMED
    return AttachedFile(Label(name, media_type, len(data)), data)


def _submissions(part: UIPart) -> list[Submission]:
    """The approval comes first: the output that comes with it may be valid only because of it."""
    if not (part.type.startswith("tool-") or part.type == "dynamic-tool"):
        return []
    items: list[Submission] = []
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
    # a response on this socket ends at a pause: its client cannot answer before that
    return chat_of(ChatRequest(frame.id, frame.messages, frame.trigger, frame.message_id, "turn"))


def brings_results(frame: MessageFrame | ToolResultFrame) -> bool:
    """Whether it answers calls, instead of sending a new message."""
    return isinstance(frame, ToolResultFrame) or bool(
        frame.messages and frame.messages[-1].role == "assistant"
    )


def result_of(frame: ToolResultFrame) -> Result:
    if frame.status in ("success", "completed", "ok"):
        return Result(call_id=frame.tool_call_id, outcome=Success(frame.result))
    text = frame.result if isinstance(frame.result, str) else frame.status
    return Result(call_id=frame.tool_call_id, outcome=Failure(text))


def request_id_in(frame: bytes) -> str | None:
    """The request id of a malformed frame, if that can be read."""
    try:
        addressed = read_as(frame, FrameHeader)
    except Malformed:
        return None
    return addressed.request_id or None
