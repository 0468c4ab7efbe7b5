"""A face: one wire protocol, as the server mounts it.

A route declares its method, scope and body limit; a face, how it encodes an error. What is checked before an
endpoint runs is checked in one place, for all routes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Meta, Struct
from starlette.types import Scope

from farhand.agent.service import AgentService
from farhand.core.call import Call
from farhand.core.ids import is_chosen_id
from farhand.core.position import Entry
from farhand.core.principal import Owner, Principal
from farhand.errors import FarhandError, Malformed, StoreDown, Unreadable
from farhand.eventlog.reader import LogReader
from farhand.wire.http import (
    Header,
    HttpExchange,
    header,
    read_body,
    refuse_foreign,
    require_json,
    respond_json,
)
from farhand.wire.json_writer import encode
from farhand.wire.streaming_response import FrameSource, StreamEnd, send_frames
from farhand.wire.time_limit import TimeLimit
from farhand.wire.websocket import Socket

log = logging.getLogger("farhand.faces")

T = TypeVar("T")

STREAM_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    # else nginx would hold events back
    (b"x-accel-buffering", b"no"),
)


class TimeLimits(Struct, frozen=True):
    """Of all requests of an app together."""

    body: TimeLimit
    """For a whole body to arrive."""
    stall: TimeLimit
    """For a reader to take a piece of a stream."""
    keep_alive: float
    """Seconds of silence on a stream."""


class Request(Struct, eq=False):
    """One HTTP request that was authenticated."""

    scope: Scope
    exchange: HttpExchange
    principal: Principal
    owner: Owner
    _limit: int
    _times: TimeLimits

    def parameter(self, name: str) -> str:
        """A part of the path."""
        value: str = self.scope["path_params"][name]
        return value

    def header(self, name: bytes) -> bytes | None:
        return header(self.scope, name)

    def json(self) -> Coroutine[None, None, bytes]:
        """The body: declared as JSON, within the route's limit, not yet read."""
        headers = self.scope["headers"]
        require_json(headers)
        return read_body(self.exchange.receive, headers, self._limit, self._times.body)

    async def unless_left(self, work: Coroutine[None, None, T]) -> T | None:
        """The result of the work; None if the peer closes the connection first, which cancels the work."""
        try:
            async with asyncio.TaskGroup() as group:
                working = group.create_task(work)
                listening = group.create_task(self.exchange.listen())
                await asyncio.wait([working, listening], return_when=asyncio.FIRST_COMPLETED)
                working.cancel()
                listening.cancel()
        except ExceptionGroup as faults:
            # the caller does not know that there are two tasks
            raise faults.exceptions[0] from None
        return None if working.cancelled() else working.result()

    def bodiless(self) -> None:
        """Reads no body. One may be there, but only of a kind that an HTML form cannot send."""
        refuse_foreign(self.scope["headers"])

    def stream(
        self,
        source: FrameSource,
        *,
        headers: Sequence[Header] = STREAM_HEADERS,
        keep_alive: float | None = None,
    ) -> Coroutine[None, None, StreamEnd]:
        """Streams what the source yields, until it ends or the reader leaves."""
        return send_frames(
            self.exchange,
            source,
            headers=headers,
            stall=self._times.stall,
            keep_alive=self._times.keep_alive if keep_alive is None else keep_alive,
        )

    def reply(
        self, status: int, body: bytes, headers: tuple[Header, ...] = ()
    ) -> Coroutine[None, None, None]:
        return respond_json(self.exchange.send, status, body, headers)


class SocketRequest:
    """One WebSocket that was authenticated and accepted."""

    __slots__ = ("principal", "scope", "socket")

    def __init__(self, scope: Scope, socket: Socket, principal: Principal) -> None:
        self.scope = scope
        self.socket = socket
        self.principal = principal

    @property
    def owner(self) -> Owner:
        return self.principal.owner


SocketEndpoint = Callable[[SocketRequest], Awaitable[None]]
Endpoint = Callable[[Request], Awaitable[None]]
ErrorEncoder = Callable[[FarhandError, int], bytes]
"""Encodes an error for this face; the server has chosen the status."""
RefusalHeaders = Callable[[FarhandError, Scope], Sequence[Header]]

RateLimit: TypeAlias = Literal["results", "registrations"]


class ErrorBody(Struct):
    code: str
    message: str


class ErrorReply(Struct):
    """The error body of a face that has no format of its own for errors."""

    error: ErrorBody


def explain_error(error: FarhandError, status: int) -> bytes:
    return encode(ErrorReply(ErrorBody(error.code, str(error))))


class Ok(Struct, omit_defaults=True):
    """`ignored`: there was nothing to do."""

    ok: bool
    ignored: bool = False


class Media(NamedTuple):
    """A body that is not JSON: its media type and its schema."""

    type: str
    schema: Mapping[str, object] = {}


STREAM = Media("text/event-stream")


class Parameter(NamedTuple):
    """A parameter of the query, or a header, as the OpenAPI document describes it."""

    name: str
    schema: Mapping[str, object]
    where: Literal["query", "header"] = "query"
    required: bool = False


_PATTERN = "^[A-Za-z0-9_.:-]{1,128}$"
ChosenId: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": _PATTERN})]
"""An id that a client may choose, such as that of a thread."""
CHOSEN_ID = {"type": "string", "pattern": _PATTERN}
THREAD = Parameter("thread", CHOSEN_ID)
PAGE_SIZE = Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 100})
# any text: an unknown position is answered with a gap, and with everything
LAST_EVENT_ID = Parameter("Last-Event-ID", {"type": "string"}, "header")


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    endpoint: Endpoint
    scope: str
    """The scope that the principal needs; `a|b`: one of them, `a&b`: both."""
    limit: int = 0
    """The largest body in bytes; 0 for none."""
    rate: RateLimit | None = None
    """Which rate limit counts for one principal; None for no limit."""
    streams: bool = False
    """The response may stay open: it counts as one of the principal's streams and is re-authenticated."""
    takes: object = None
    """The shape of its body; this and what follows is for the OpenAPI document alone."""
    gives: object = None
    """The shape of the answer, or a mapping from status to shape, or to a list of several; not needed for one
    that only streams."""
    parameters: tuple[Parameter, ...] = ()
    name: str = ""
    """The name of the operation; by default, that of the endpoint."""
    deprecated: bool = False


@dataclass(frozen=True)
class SocketRoute:
    path: str
    endpoint: SocketEndpoint
    scope: str


@dataclass(frozen=True)
class Face:
    name: str
    routes: tuple[Route, ...]
    explain: ErrorEncoder = explain_error
    refusal: object = ErrorReply
    """The shape of what `explain` writes, for the OpenAPI document."""
    sockets: tuple[SocketRoute, ...] = ()
    refusal_headers: RefusalHeaders | None = None
    """Headers of a refusal; they replace the server's headers of the same name."""


class RunEncoder(Protocol):
    """Turns the entries of one run into the frames of one response."""

    @property
    def ended(self) -> bool:
        """True after the last frame."""
        ...

    def encode_events(self, entries: Sequence[Entry]) -> bytes: ...

    def close(self, *, cut: bool) -> bytes:
        """Ends a response that no event ended. `cut`: the server stops, and the rest can be resumed."""
        ...


class _Following(Struct, eq=False):
    """A run's journal as the source of a response."""

    _reader: LogReader
    _encoder: RunEncoder
    _until: int | None

    @property
    def ended(self) -> bool:
        return self._encoder.ended

    async def next(self, seconds: float) -> bytes | None:
        try:
            while self._until is None or self._reader.at.seq < self._until:
                entries = await self._reader.next(seconds)
                if entries is None:
                    break
                frames = self._encoder.encode_events(entries)
                # the entries may have no frames on this wire: read on instead of waiting
                if frames or not entries:
                    return frames
        except (StoreDown, Unreadable):
            # the response still ends properly, and the rest can be resumed
            return self._encoder.close(cut=True)
        return self._encoder.close(cut=self._reader.cut)

    def leave(self) -> None:
        self._reader.leave()


def follow(
    request: Request,
    reader: LogReader,
    encoder: RunEncoder,
    *,
    headers: Sequence[Header] = STREAM_HEADERS,
    until: int | None = None,
) -> Coroutine[None, None, StreamEnd]:
    """Streams the run's events as they come, until the encoder has ended.

    With `until`, the response ends after that event, without waiting for more.
    """
    return request.stream(_Following(reader, encoder, until), headers=headers)


STATUS: Mapping[str, int] = {
    "invalid": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "unknown": 404,
    "wrong_method": 405,
    "too_slow": 408,
    "busy": 409,
    "interrupts": 409,
    "no_agent": 404,
    "conflict": 409,
    "mismatch": 409,
    "refused": 409,
    "too_large": 413,
    "wrong_type": 415,
    "too_many": 429,
    "broken": 500,
    "unreadable": 500,
    "shutting_down": 503,
    "sign_in_down": 503,
    "store_down": 503,
}
"""The HTTP status of each error code."""


def check_id(text: str, name: str) -> str:
    """Returns an id that a client has chosen."""
    if not is_chosen_id(text):
        raise Malformed(f"{name} must be 1 to 128 letters, digits or _ . : -")
    return text


def decode_number(query: Mapping[str, str], name: str, *, default: int, least: int, most: int) -> int:
    text = query.get(name, str(default))
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not is_number or not least <= int(text) <= most:
        raise Malformed(f"{name} must be a number from {least} to {most}.")
    return int(text)


def decode_thread(query: Mapping[str, str]) -> str | None:
    """The thread that `?thread=` names; None for all threads."""
    thread_id = query.get("thread")
    if thread_id is not None and not is_chosen_id(thread_id):
        raise Malformed(
            "`thread` is not the id of a thread.", hint="Use 1 to 128 letters, digits, `_`, `.`, `:` or `-`."
        )
    return thread_id


def format_time(seconds: float) -> str:
    """ISO 8601, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def status_of(error: FarhandError) -> int:
    return STATUS.get(error.code, 500)


async def waiting_calls(
    service: AgentService, owner: Owner, thread_id: str | None = None
) -> list[tuple[Call, str]]:
    """The calls that wait for somebody, each with the title of its thread."""
    calls = [call for call in await service.log.open_calls(owner, thread_id) if call.blocks]
    titles = {name: await _title(service, owner, name) for name in {call.thread_id for call in calls}}
    return [(call, titles[call.thread_id]) for call in calls]


async def _title(service: AgentService, owner: Owner, thread_id: str) -> str:
    """Empty for a thread that this version cannot read, so that the others are listed."""
    try:
        thread = await service.log.get_thread(owner, thread_id)
    except Unreadable:
        log.error("this version of farhand cannot read a record of thread %s", thread_id)
        return ""
    return "" if thread is None else thread.title
