"""The endpoint of the events wire."""

from __future__ import annotations

import math

from farhand.agent.service import AgentService
from farhand.core.position import News, Position
from farhand.core.principal import Owner
from farhand.eventlog.feed import FeedReader
from farhand.faces.base import LAST_EVENT_ID, THREAD, Face, Parameter, Request, Route, decode_thread
from farhand.faces.events.decode import decode_keep_alive, decode_position, read_position
from farhand.faces.events.encode import call_in, encode_gap, encode_news, encode_start
from farhand.wire.address import query

# any text: an unknown position is answered with a gap, and bad seconds are ignored
AFTER = Parameter("after", {"type": "string"})
KEEP_ALIVE = Parameter("keepAlive", {"type": "string"})


def events_face(service: AgentService) -> Face:
    endpoints = _Endpoints(service)
    return Face(
        name="events",
        routes=(
            Route(
                "GET",
                "/api/events",
                endpoints.events,
                scope="chat",
                streams=True,
                parameters=(AFTER, THREAD, KEEP_ALIVE, LAST_EVENT_ID),
            ),
        ),
    )


class _Endpoints:
    def __init__(self, service: AgentService) -> None:
        self._service = service

    async def events(self, request: Request) -> None:
        """Receive everything that happens to what is yours, as a stream."""
        parameters = query(request.scope)
        thread_id = decode_thread(parameters)
        sent = decode_position(request.header(b"last-event-id"), parameters)
        span = await self._service.log.feed_span(request.owner)
        position, first = _begin(sent, span)
        with self._service.feed(request.owner, position.seq) as reader:
            source = _News(self._service, request.owner, reader, position.offset, first)
            source.keep_alive = decode_keep_alive(parameters)
            source.thread_id = thread_id
            await request.stream(source)


def _begin(sent: str | None, span: tuple[int, int]) -> tuple[Position, bytes]:
    """Where to begin, and the first frame. Without a position, the stream has what happens from now on."""
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

    async def next(self, seconds: float) -> bytes | None:
        if self._first:
            first, self._first = self._first, b""
            return first
        page = await self._reader.next(min(seconds, self.keep_alive))
        if page is None:
            return None
        frames = [await self._encoded(news) for news in page if self._is_wanted(news)]
        if page and not self._is_wanted(page[-1]):
            # the position also advances with other threads, or a long silence here would end in a gap
            frames.append(encode_start(Position(page[-1].no)))
        return b"".join(frames)

    def leave(self) -> None:
        self._reader.leave()

    def _is_wanted(self, news: News) -> bool:
        return self.thread_id is None or news.thread_id == self.thread_id

    async def _encoded(self, news: News) -> bytes:
        skip, self._skip = self._skip, 0
        call_id = call_in(news)
        call = None if call_id is None else await self._service.log.get_call(self._owner, call_id)
        return encode_news(news, call, skip=skip)
