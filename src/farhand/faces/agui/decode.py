"""Decodes requests of AG-UI clients and of CopilotKit.

Taken from a client's messages: what stands behind its last answer, that is results of calls and a new message
of the user. The rest only says what the client has. Whether any of it counts is decided by `Posts`.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.attachments import AttachedFile, MessageInput, from_base64
from farhand.agent.files import Label
from farhand.agent.offered_tools import ToolDescription
from farhand.agent.post_content import Post, PostedMessage, QuestionAnswer
from farhand.core.approval import Answer
from farhand.core.file import UNNAMED, clean_name, media_type_of
from farhand.core.outcome import Failure, Outcome, Success
from farhand.core.result import Result
from farhand.core.thread import Note, Text
from farhand.errors import Malformed, NotFound, TooLarge
from farhand.faces.agui.shapes import (
    AGENT_ID,
    AguiMessage,
    ContentPart,
    ContextItem,
    ResumeEntry,
    RunAgentInput,
    RuntimeRequest,
    StopRequest,
)
from farhand.faces.base import check_id
from farhand.wire.json_reader import read_as

NOTES_AT_MOST = 64 * 1024
"""Bytes of context that come with one message."""
RUN_ID_AT_MOST = 200
CANCELLED = "cancelled by the user"

T = TypeVar("T")

_MEDIA = ("image", "audio", "video", "document")


class AguiRequest(Struct, frozen=True):
    """One decoded request, with tools that are not admitted yet; `is_versioned` if its client sends its
    protocol version."""

    post: Post
    tools: tuple[ToolDescription, ...]
    is_versioned: bool


def decode_run(value: object) -> AguiRequest:
    return _request(_as(value, RunAgentInput))


def decode_connect(value: object) -> AguiRequest:
    """Only the thread, the tools and the version are used."""
    return _head(_as(value, RunAgentInput))


def decode_stop(value: object) -> str | None:
    """The client's name of the run to stop; None for the active run, whatever its name."""
    return None if value is None else _as(value, StopRequest).run_id


def decode_runtime_request(body: bytes) -> RuntimeRequest:
    return read_as(body, RuntimeRequest)


def _as(value: object, shape: type[T]) -> T:
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as fault:
        raise Malformed(f"{fault}.", hint="Nothing was applied.") from None


def check_agent(agent_id: str) -> None:
    if agent_id != AGENT_ID:
        raise NotFound("There is no such agent.", hint=f"The only one here is `{AGENT_ID}`.")


def _head(posted: RunAgentInput) -> AguiRequest:
    check_id(posted.thread_id, "threadId")
    if not 1 <= len(posted.run_id) <= RUN_ID_AT_MOST:
        raise Malformed(f"runId must have 1 to {RUN_ID_AT_MOST} characters.")
    tools = [
        ToolDescription(each.name, each.description, _parameters(each.parameters))
        for each in posted.tools or ()
    ]
    post = Post(thread_id=posted.thread_id, alias=posted.run_id)
    return AguiRequest(post, tuple(tools), posted.protocol_version is not None)


def _request(posted: RunAgentInput) -> AguiRequest:
    tail = _tail(posted.messages)
    messages = [_message(each) for each in tail if each.role == "user"]
    notes = _notes(posted.context or ())
    if messages and notes:
        messages[-1] = PostedMessage(messages[-1].message_id, (*messages[-1].parts, *notes))
    calls = [call.id for each in posted.messages for call in each.tool_calls or ()]
    results = [each.tool_call_id for each in posted.messages if each.role == "tool" and each.tool_call_id]
    head = _head(posted)
    post = replace(
        head.post,
        messages=tuple(messages),
        results=tuple(
            Result(call_id=each.tool_call_id or "", outcome=_outcome(each))
            for each in tail
            if _is_own_result(each)
        ),
        answers=tuple(map(_answer, posted.resume or ())),
        shown_calls=frozenset(calls),
        shown_results=frozenset(results),
    )
    return replace(head, post=post)


def _tail(messages: list[AguiMessage]) -> list[AguiMessage]:
    answers = [place for place, each in enumerate(messages) if each.role == "assistant"]
    return messages[answers[-1] + 1 :] if answers else messages


def _parameters(schema: object) -> object:
    """A tool without parameters may come without a schema."""
    return {"type": "object", "properties": {}} if schema is None else schema


def _notes(context: list[ContextItem] | tuple[()]) -> tuple[Note, ...]:
    size = sum(len(each.description.encode()) + len(each.value.encode()) for each in context)
    if size > NOTES_AT_MOST:
        raise TooLarge(f"The context is larger than {NOTES_AT_MOST} bytes.", hint="Nothing was applied.")
    return tuple(Note(each.description, each.value) for each in context)


# ------------------------------------------------------------------------------------------- messages


def _message(posted: AguiMessage) -> PostedMessage:
    check_id(posted.id, "A message's id")
    if isinstance(posted.content, str):
        parts: list[MessageInput] = [Text(posted.content)] if posted.content.strip() else []
    else:
        parts = [part for each in _as(posted.content, list[ContentPart]) if (part := _part(each)) is not None]
    if not parts:
        raise Malformed("The user's message has no content.")
    return PostedMessage(posted.id, tuple(parts))


def _part(part: ContentPart) -> MessageInput | None:
    if part.type == "text":
        return Text(part.text) if part.text.strip() else None
    if part.type in _MEDIA and part.source is not None and part.source.type == "data":
        return _attached(part.source.value, part.source.mime_type, part.filename)
    if part.type == "binary" and part.data:
        return _attached(part.data, part.mime_type, part.filename)
    raise Malformed(
        f"A part of type `{part.type}` needs a source of type `data`.",
        hint="The server fetches nothing and has no access to files of other providers. Nothing was applied.",
    )


def _attached(value: str, mime_type: str, filename: str | None) -> AttachedFile:
    media_type = media_type_of(mime_type)
    if media_type is None:
        raise Malformed("A source of type `data` needs a mimeType.", hint="Nothing was applied.")
    data = from_base64(value, what="The value of a source")
    name = clean_name(filename) if filename else UNNAMED
    return AttachedFile(Label(name, media_type, len(data)), data)


# ----------------------------------------------------------------------------------- results and answers


def result_message_id(call_id: str) -> str:
    """The id of the message that shows the outcome of a call."""
    return f"{call_id}:result"


def _is_own_result(posted: AguiMessage) -> bool:
    """Not the message that this server made from an outcome, which the client only repeats."""
    call_id = posted.tool_call_id
    return posted.role == "tool" and bool(call_id) and posted.id != result_message_id(call_id or "")


def _outcome(posted: AguiMessage) -> Outcome:
    if posted.error:
        return Failure(posted.error)
    if not isinstance(posted.content, list):
        return Success(posted.content)
    texts = [part.get("text") for part in posted.content if isinstance(part, dict)]
    words = [text for text in texts if isinstance(text, str)]
    return Success("".join(words) if len(words) == len(posted.content) else posted.content)


def _answer(entry: ResumeEntry) -> QuestionAnswer:
    if entry.status == "cancelled":
        refused = Answer(approved=False, reason=CANCELLED)
        return QuestionAnswer(entry.interrupt_id, refused, Failure(CANCELLED))
    decision = _decision(entry.payload)
    if isinstance(decision, str):
        return QuestionAnswer(entry.interrupt_id, None, Success(entry.payload), decision)
    return QuestionAnswer(entry.interrupt_id, decision, Success(entry.payload))


def _decision(payload: object) -> Answer | str:
    """An approval or a denial, or why it is neither: the text "true" is not one either. Whether it has to be
    one depends on the question, since a tool may ask for anything."""
    if not isinstance(payload, dict) or not isinstance(payload.get("approved"), bool):
        return "must have `approved`: true or false"
    reason, edited = payload.get("reason", ""), payload.get("editedArgs")
    if not isinstance(reason, str | None):
        return "has a `reason` that is not a string"
    if not isinstance(edited, dict | None):
        return "has `editedArgs` that are not an object"
    return Answer(approved=payload["approved"], reason=reason or "", input=edited)
