"""A face: one wire protocol, as the server mounts it.

A route says what it takes (method, scope, how much of a body) and how its dialect words an error. What is
checked before an endpoint runs is checked in one place, for all of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct
from starlette.types import Scope

from farhand.agent.reader import Reader
from farhand.calls.change import Reply
from farhand.calls.desk import Brought
from farhand.core.event import Entry
from farhand.core.outcome import Failure
from farhand.core.principal import Owner, Principal
from farhand.core.settings import Limits, Settings
from farhand.errors import FarhandError, StoreDown, TooLarge, Unreadable
from farhand.wire.http import Header, header, read_body, refuse_foreign, require_json, respond_json
from farhand.wire.line import Line
from farhand.wire.pull import End, Source, send_frames
from farhand.wire.websocket import Socket

log = logging.getLogger("farhand.faces")

T = TypeVar("T")


class Request(Struct, eq=False):
    """One HTTP request that passed the door."""

    scope: Scope
    line: Line
    principal: Principal
    owner: Owner
    _limit: int
    _settings: Settings

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
        return read_body(self.line.receive, headers, self._limit, self._settings.limits.body_within_sec)

    async def unless_left(self, work: Coroutine[None, None, T]) -> T | None:
        """What the work brings. When the peer closes the connection before that, the work is cancelled and
        there is nobody to answer: None."""
        try:
            async with asyncio.TaskGroup() as group:
                working = group.create_task(work)
                listening = group.create_task(self.line.listen())
                await asyncio.wait([working, listening], return_when=asyncio.FIRST_COMPLETED)
                working.cancel()
                listening.cancel()
        except ExceptionGroup as faults:
            # the caller knows nothing of two tasks
            raise faults.exceptions[0] from None
        return None if working.cancelled() else working.result()

    def bodiless(self) -> None:
        """Nothing is read: a body may be there all the same, but only what a form can't send."""
        refuse_foreign(self.scope["headers"])

    def stream(
        self, source: Source, *, headers: Sequence[Header], keep_alive: float | None = None
    ) -> Coroutine[None, None, End]:
        """Answers with what the source gives, until it ends or the reader does."""
        return send_frames(
            self.line,
            source,
            headers=headers,
            keep_alive=self._settings.patience.keep_alive if keep_alive is None else keep_alive,
            stall_after=self._settings.limits.stalled_after_sec,
        )

    def reply(
        self, status: int, body: bytes, headers: tuple[Header, ...] = ()
    ) -> Coroutine[None, None, None]:
        return respond_json(self.line.send, status, body, headers)


class SocketRequest:
    """One WebSocket that passed the door and was accepted."""

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
Explain = Callable[[FarhandError, int], bytes]
"""An error in a face's dialect: its body, for the status the server chose."""


Rate: TypeAlias = Literal["results", "registrations"]


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    endpoint: Endpoint
    scope: str
    """What the principal must be allowed to do; `a|b`: one of them, `a&b`: both."""
    limit: int = 0
    """Bytes of body it takes; 0 for none."""
    rate: Rate | None = None
    """How often one principal may ask; None for as often as it likes."""
    streams: bool = False
    """The answer may stay open: it takes one of the principal's places, and the sign-in is asked again."""


@dataclass(frozen=True)
class SocketRoute:
    path: str
    endpoint: SocketEndpoint
    scope: str


@dataclass(frozen=True)
class Face:
    name: str
    routes: tuple[Route, ...]
    explain: Explain
    sockets: tuple[SocketRoute, ...] = ()


class Encoder(Protocol):
    """Turns the entries of one run into the frames of one response."""

    @property
    def ended(self) -> bool:
        """After the last frame."""
        ...

    def encode_events(self, entries: Sequence[Entry]) -> bytes: ...

    def close(self, *, cut: bool) -> bytes:
        """The end of a response that no event ended. `cut`: the server stops, the rest can be resumed."""
        ...


class _Following(Struct, eq=False):
    """A run's journal as the source of a response."""

    _reader: Reader
    _encoder: Encoder
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
                # entries that this wire does not show are no reason to wait for more
                if frames or not entries:
                    return frames
        except (StoreDown, Unreadable):
            # also then a response has its own last word, and the rest can be resumed
            return self._encoder.close(cut=True)
        return self._encoder.close(cut=self._reader.cut)

    def leave(self) -> None:
        self._reader.leave()


def follow(
    request: Request,
    reader: Reader,
    encoder: Encoder,
    *,
    headers: Sequence[Header],
    until: int | None = None,
) -> Coroutine[None, None, End]:
    """Answers with the run's events as they come, until the encoder says that it was the last one.

    With `until`, what is stored up to there is all: the response ends without waiting for more.
    """
    return request.stream(_Following(reader, encoder, until), headers=headers)


def check_words(item: Brought, limits: Limits) -> None:
    """`TooLarge` for a reason or an error with more to say than anybody reads."""
    if isinstance(item, Reply):
        name, said = "reason", item.answer.reason
    elif isinstance(item.outcome, Failure):
        name, said = "error", item.outcome.error
    else:
        return
    # most are far shorter: a character has four bytes at the most
    if 4 * len(said) > limits.error_text and len(said.encode()) > limits.error_text:
        raise TooLarge(f"The {name} is larger than {limits.error_text} bytes.", hint="Nothing was applied.")


STATUS: Mapping[str, int] = {
    "invalid": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "unknown": 404,
    "wrong_method": 405,
    "too_slow": 408,
    "busy": 409,
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
"""The one table from a code to a status."""


def status_of(error: FarhandError) -> int:
    return STATUS.get(error.code, 500)


async def if_readable(reading: Awaitable[T | None], thread_id: str) -> T | None:
    """For one row of a list: what this version cannot read is missing in it, and the rest is told."""
    try:
        return await reading
    except Unreadable:
        log.error("a record of thread %s cannot be read by this version of farhand", thread_id)
        return None
