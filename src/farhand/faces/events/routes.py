"""The endpoint of the events wire."""

from __future__ import annotations

import math

from farhand.agent.farhand import Farhand
from farhand.agent.feed import FeedReader
from farhand.core.event import News, Position
from farhand.core.principal import Owner
from farhand.faces.base import Face, Request, Route
from farhand.faces.events.decode import decode_keep_alive, decode_position, read_position
from farhand.faces.events.encode import call_in, encode_error, encode_gap, encode_news, encode_start
from farhand.wire.address import query

HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


def events_face(farhand: Farhand) -> Face:
    endpoints = _Endpoints(farhand)
    return Face(
        name="events",
        explain=encode_error,
        routes=(Route("GET", "/api/events", endpoints.events, scope="chat", streams=True),),
    )


class _Endpoints:
    def __init__(self, farhand: Farhand) -> None:
        self._farhand = farhand

    async def events(self, request: Request) -> None:
        said = query(request.scope)
        sent = decode_position(request.header(b"last-event-id"), said)
        span = await self._farhand.feed_span(request.owner)
        position, first = _begin(sent, span)
        with self._farhand.feed(request.owner, position.seq) as reader:
            source = _News(self._farhand, request.owner, reader, position.offset, first)
            source.keep_alive = decode_keep_alive(said)
            await request.stream(source, headers=HEADERS)


def _begin(sent: str | None, span: tuple[int, int]) -> tuple[Position, bytes]:
    """Where to begin, and what is said first. Without a position: with what happens from now on."""
    first, last = span
    if sent is None:
        return Position(last), encode_start(Position(last))
    position = read_position(sent, span)
    if position is not None:
        return position, b""
    oldest = Position(first - 1)
    return oldest, encode_gap(sent, oldest)


class _News:
    """A feed as the body of a response."""

    ended = False
    keep_alive = math.inf
    """Sooner than the server's own, for a reader that wishes so."""

    def __init__(self, farhand: Farhand, owner: Owner, reader: FeedReader, skip: int, first: bytes) -> None:
        self._farhand = farhand
        self._owner = owner
        self._reader = reader
        self._skip = skip
        self._first = first

    async def next(self, seconds: float) -> bytes | None:
        if self._first:
            first, self._first = self._first, b""
            return first
        page = await self._reader.next(min(seconds, self.keep_alive))
        return None if page is None else b"".join([await self._encoded(news) for news in page])

    def leave(self) -> None:
        self._reader.leave()

    async def _encoded(self, news: News) -> bytes:
        skip, self._skip = self._skip, 0
        call_id = call_in(news)
        call = None if call_id is None else await self._farhand.call_of(self._owner, call_id)
        return encode_news(news, call, skip=skip)
