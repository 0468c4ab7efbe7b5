"""Encodes entries of a feed: the event itself, then what it means for a registered client."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from farhand.core.call import Call, Phase
from farhand.core.client import tool_id
from farhand.core.event import (
    ApprovalAnswered,
    CallOpened,
    CallSettled,
    CallTaken,
    ClientRegistered,
    ClientUnregistered,
    RunResumed,
)
from farhand.core.outcome import Success, public, public_error
from farhand.core.position import Happening, News, Position
from farhand.core.tool import Executor
from farhand.faces.event_fields import event_type, public_fields
from farhand.faces.events.shapes import (
    ClientToolsEvent,
    FeedGap,
    RequestShape,
    ToolRequestEvent,
    ToolStatusEvent,
)
from farhand.wire.json_writer import encode
from farhand.wire.sse import frame

EventBody: TypeAlias = dict[str, object] | ClientToolsEvent | ToolRequestEvent | ToolStatusEvent


def call_in(news: News) -> str | None:
    """The call that is needed to encode this entry, if a registered client may run it."""
    event = news.event
    if isinstance(event, CallTaken):
        return event.call_id
    if isinstance(event, CallOpened | CallSettled | ApprovalAnswered) and event.executor is Executor.CLIENT:
        return event.call_id
    return None


def encode_news(news: News, call: Call | None, *, skip: int = 0) -> bytes:
    """The frames of the entry, without the first few. Each one carries the reader's position after it."""
    bodies = _bodies(news, call)
    frames = [_frame(each, _position(news, number, len(bodies))) for number, each in enumerate(bodies, 1)]
    if skip >= len(frames):
        # no reader can have had this position
        frames.insert(0, encode_gap(str(Position(news.no - 1, skip)), Position(news.no - 1)))
        skip = 0
    return b"".join(frames[skip:])


def encode_start(position: Position) -> bytes:
    """The reader's position before the first event; never sent."""
    return f"id: {position}\n\n".encode()


def encode_gap(after: str, position: Position) -> bytes:
    return frame(encode(FeedGap("gap", after[:64])), event="gap", id=str(position))


def _position(news: News, number: int, of: int) -> Position:
    """Only the last frame moves the position to this entry."""
    return Position(news.no) if number == of else Position(news.no - 1, number)


def _frame(body: EventBody, position: Position) -> bytes:
    kind = body["type"] if isinstance(body, dict) else body.type
    return frame(encode(body), event=str(kind), id=str(position))


def _bodies(news: News, call: Call | None) -> list[EventBody]:
    event = news.event
    if isinstance(event, ClientRegistered):
        return [ClientToolsEvent("client-tool.registered", event.client_id, list(event.tools))]
    if isinstance(event, ClientUnregistered):
        return [ClientToolsEvent("client-tool.unregistered", event.client_id, list(event.tools))]
    own: dict[str, object] = {
        "type": event_type(event),
        "at": news.at,
        "threadId": news.thread_id,
        "runId": news.run_id,
        **_shown(_public(event), news.thread_id),
    }
    meant = None if call is None or call.client_id is None else _for_client(event, call, call.client_id)
    return [own] if meant is None else [own, meant]


def _public(event: Happening) -> Happening:
    if isinstance(event, CallSettled):
        return msgspec.structs.replace(event, outcome=public(event.outcome))
    return event


def _for_client(event: Happening, call: Call, client_id: str) -> EventBody | None:
    match event:
        case CallOpened(phase=Phase.READY) | ApprovalAnswered(approved=True):
            return ToolRequestEvent("client-tool.request", client_id, _request(call, client_id))
        case CallTaken(holder=holder) if holder.partition(".")[0] == client_id:
            return _status("client-tool.executing", call, client_id)
        case CallSettled(outcome=Success()):
            completed = _status("client-tool.completed", call, client_id)
            return msgspec.structs.replace(completed, success=True)
        case CallSettled(outcome=outcome):
            failed = _status("client-tool.failed", call, client_id)
            return msgspec.structs.replace(failed, error=public_error(outcome), success=False)
        case _:
            return None


def _request(call: Call, client_id: str) -> RequestShape:
    return RequestShape(
        type="client-tool-request",
        request_id=call.call_id,
        session_id=call.thread_id,
        message_id=_message_id(call),
        call_id=call.model_call_id or "",
        tool=tool_id(client_id, call.tool),
        input=call.input,
    )


def _status(kind: str, call: Call, client_id: str) -> ToolStatusEvent:
    return ToolStatusEvent(
        type=kind,
        request_id=call.call_id,
        session_id=call.thread_id,
        message_id=_message_id(call),
        call_id=call.model_call_id or "",
        tool=tool_id(client_id, call.tool),
        client_id=client_id,
    )


def _message_id(call: Call) -> str:
    asked = call.request.message_id if call.request is not None else None
    return asked or (f"{call.run_id}:{call.step}" if call.run_id is not None else "")


def _shown(event: Happening, thread_id: str | None) -> dict[str, object]:
    shown = public_fields(event, thread_id, omit_defaults=True)
    # only for the Inspector
    shown.pop("detail", None)
    if isinstance(event, RunResumed) and not event.taken_over:
        # only where it is true, which is rare
        del shown["takenOver"]
    return shown
