"""A post of the chat page becomes our nouns.

Taken from a client's messages: a new user message, results of calls and answers to approvals. Nothing else in
them is believed, and whether those are new and allowed is the desk's to say.
"""

from __future__ import annotations

from msgspec import Struct

from farhand.calls.change import Reply
from farhand.calls.desk import Brought
from farhand.core.approval import Answer
from farhand.core.ids import is_chosen_id
from farhand.core.outcome import Failure, Outcome, Success
from farhand.core.result import Result
from farhand.core.thread import Text, UserMessage
from farhand.errors import Malformed
from farhand.faces.ui_stream.shapes import ChatRequest, UIMessage, UIPart
from farhand.wire.guard import read_as


class Chat(Struct, frozen=True):
    """What one post says: a user's message, or what far hands and people bring for open calls."""

    thread_id: str
    held: bool
    message: UserMessage | None
    brought: tuple[Brought, ...] = ()
    call_ids: tuple[str, ...] = ()
    """Every call that the last message shows, answered or not."""


def decode_chat(body: bytes) -> Chat:
    request = read_as(body, ChatRequest)
    if not is_chosen_id(request.id):
        raise Malformed("id must be 1 to 128 letters, digits or _ . : -")
    if not request.messages:
        raise Malformed("messages is empty.", hint="Send the last message at least.")
    last = request.messages[-1]
    held = request.wait == "hold"
    if last.role == "user":
        return Chat(request.id, held, _user_message(last))
    if last.role == "system":
        raise Malformed("The last message must be the user's or the assistant's.")
    brought = tuple(item for part in last.parts for item in _brought(part))
    calls = tuple(part.tool_call_id for part in last.parts if part.tool_call_id)
    return Chat(request.id, held, None, brought, calls)


def _user_message(message: UIMessage) -> UserMessage:
    if not is_chosen_id(message.id):
        raise Malformed("A message's id must be 1 to 128 letters, digits or _ . : -")
    parts = tuple(Text(part.text) for part in message.parts if part.type == "text" and part.text)
    if not parts:
        raise Malformed("The user's message has no text.")
    return UserMessage(message.id, parts)


def _brought(part: UIPart) -> list[Brought]:
    """An answer to an approval first: it may be what lets the output beside it count."""
    if not part.tool_call_id or not (part.type.startswith("tool-") or part.type == "dynamic-tool"):
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
