"""One stream of everything that happens to an owner's runs, calls and clients.

Each entry of the owner's feed is sent as the event itself, then as what it means for a registered client.
Clients are spelled as on their own wire.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from farhand.agent.service import AgentService
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
from farhand.core.position import Happening, News, Position, parse_position
from farhand.core.principal import Owner
from farhand.core.tool import Executor
from farhand.errors import StoreDown, Unreadable
from farhand.eventlog.feed import FeedReader
from farhand.eventlog.pubsub import STORE_RETRY_SEC
from farhand.faces.base import LAST_EVENT_ID, THREAD, Face, Parameter, Request, Route, decode_thread
from farhand.faces.event_fields import event_type, public_fields
from farhand.wire.address import query
from farhand.wire.json_writer import encode
from farhand.wire.sse import frame

# any text: an unknown position is answered with a gap, and bad seconds are ignored
AFTER = Parameter("after", {"type": "string"})
KEEP_ALIVE = Parameter("keepAlive", {"type": "string"})


class FeedGap(Struct):
    """The position that was sent is unknown: everything that is kept follows."""

    type: str
    after: str


class ClientToolsEvent(Struct):
    """`client-tool.registered` and `client-tool.unregistered`."""

    type: str
    client_id: str = field(name="clientID")
    tool_ids: list[str] = field(name="toolIDs")


class CallMembers(Struct):
    """What a request and a status have in common."""

    type: str
    request_id: str = field(name="requestID")
    session_id: str = field(name="sessionID")
    message_id: str = field(name="messageID")
    call_id: str = field(name="callID")
    tool: str


class RequestShape(CallMembers):
    input: dict[str, object]


class ToolRequestEvent(Struct):
    """`client-tool.request`."""

    type: str
    client_id: str = field(name="clientID")
    request: RequestShape


class ToolStatusEvent(CallMembers, omit_defaults=True):
    """`client-tool.executing`, `client-tool.completed` and `client-tool.failed`."""

    client_id: str = field(name="clientID")
    error: str | UnsetType = UNSET
    success: bool | UnsetType = UNSET


EventBody: TypeAlias = dict[str, object] | ClientToolsEvent | ToolRequestEvent | ToolStatusEvent


def events_face(service: AgentService) -> Face:
    async def events(request: Request) -> None:
        """Receive everything that happens to what is yours, as a stream."""
        parameters = query(request.scope)
        thread_id = decode_thread(parameters)
        header = request.header(b"last-event-id")
        # a browser that reconnects sends its position in the header, and a stale one in its address
        sent = header.decode("latin-1") if header else parameters.get("after")
        position, first = _begin(sent, await service.log.feed_span(request.owner))
        with service.feed(request.owner, position.seq) as reader:
            source = _News(service, request.owner, reader, position.offset, first)
            source.keep_alive = decode_keep_alive(parameters)
            source.thread_id = thread_id
            await request.stream(source)

    known = (AFTER, THREAD, KEEP_ALIVE, LAST_EVENT_ID)
    route = Route("GET", "/api/events", events, scope="chat", streams=True, parameters=known)
    return Face(name="events", routes=(route,))


def _begin(sent: str | None, span: tuple[int, int]) -> tuple[Position, bytes]:
    """Where to begin, and the first frame. Without a position, the stream has what happens from now on; where
    the entries after it are no longer kept, it has all that are.

    `seq` of a position is the last entry of which all frames were sent; `offset` counts frames of the next.
    """
    first, last = span
    if sent is None:
        return Position(last), encode_start(Position(last))
    position = parse_position(sent)
    if position is not None and first - 1 <= position.seq <= last:
        return position, b""
    oldest = Position(first - 1)
    return oldest, encode_gap(sent, oldest)


class _News:
    """A feed as the body of a response."""

    ended = False
    keep_alive = math.inf
    """Shorter than the server's own, if the reader asks for it."""
    thread_id: str | None = None
    """The only thread of the stream; None for all threads."""

    def __init__(
        self, service: AgentService, owner: Owner, reader: FeedReader, skip: int, first: bytes
    ) -> None:
        self._service = service
        self._owner = owner
        self._reader = reader
        self._skip = skip
        self._first = first
        self._unsent: list[News] = []
        """Entries that were read, but whose calls could not be read yet."""

    async def next(self, seconds: float) -> bytes | None:
        if self._first:
            first, self._first = self._first, b""
            return first
        page = self._unsent or await self._reader.next(min(seconds, self.keep_alive))
        if page is None:
            return None
        try:
            calls = [await self._call_in(news) for news in page]
        except StoreDown:
            if self._service.log.broker.closed:
                return None
            # sent once the store is back: a reader could not begin another stream now
            self._unsent = page
            await asyncio.sleep(STORE_RETRY_SEC)
            return b""
        self._unsent = []
        entries = zip(page, calls, strict=True)
        frames = [self._encoded(news, call) for news, call in entries if self._is_wanted(news)]
        if page and not self._is_wanted(page[-1]):
            # the position also advances with other threads, or a long silence here would end in a gap
            frames.append(encode_start(Position(page[-1].no)))
        return b"".join(frames)

    def leave(self) -> None:
        self._reader.leave()

    def _is_wanted(self, news: News) -> bool:
        return self.thread_id is None or news.thread_id == self.thread_id

    async def _call_in(self, news: News) -> Call | None:
        call_id = call_in(news) if self._is_wanted(news) else None
        if call_id is None:
            return None
        try:
            return await self._service.log.get_call(self._owner, call_id)
        except Unreadable:
            # as for a call that was removed: a thread that cannot be read must not end the feed of all
            return None

    def _encoded(self, news: News, call: Call | None) -> bytes:
        skip, self._skip = self._skip, 0
        return encode_news(news, call, skip=skip)


def decode_keep_alive(query: Mapping[str, str]) -> float:
    """Seconds of silence before the reader wants a keep-alive; a bad value is ignored."""
    try:
        return max(1.0, float(query["keepAlive"]))
    except (KeyError, ValueError):
        return math.inf


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
    """A frame that only moves the reader's position: no browser shows an event for it."""
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
    about = _members(call, client_id)
    match event:
        case CallOpened(phase=Phase.READY) | ApprovalAnswered(approved=True):
            request = RequestShape("client-tool-request", *about, call.input)
            return ToolRequestEvent("client-tool.request", client_id, request)
        case CallTaken(holder=holder) if holder.partition(".")[0] == client_id:
            return ToolStatusEvent("client-tool.executing", *about, client_id)
        case CallSettled(outcome=Success()):
            return ToolStatusEvent("client-tool.completed", *about, client_id, success=True)
        case CallSettled(outcome=outcome):
            error = public_error(outcome)
            return ToolStatusEvent("client-tool.failed", *about, client_id, error, success=False)
        case _:
            return None


def _members(call: Call, client_id: str) -> tuple[str, str, str, str, str]:
    """Those of `CallMembers` after the type."""
    asked = call.request.message_id if call.request is not None else None
    message_id = asked or (f"{call.run_id}:{call.step}" if call.run_id is not None else "")
    return call.call_id, call.thread_id, message_id, call.model_call_id or "", tool_id(client_id, call.tool)


def _shown(event: Happening, thread_id: str | None) -> dict[str, object]:
    shown = public_fields(event, thread_id, omit_defaults=True)
    # only for the Inspector
    shown.pop("detail", None)
    if isinstance(event, RunResumed) and not event.taken_over:
        # only where it is true, which is rare
        del shown["takenOver"]
    return shown
