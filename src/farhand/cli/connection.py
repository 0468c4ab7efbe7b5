"""One connection: how large the head of a request may be and how long it may take; what may follow an answer;
and whoever answers is told when the peer has left.

The server below reads heads of any size for as long as they take; a few thousand slow ones would be its end.
It also makes room for what most connections never need (`lean.py`). Must not know what is asked.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import service_unavailable
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from farhand.cli.lean import Pipeline, Signal
from farhand.cli.response import Response
from farhand.wire.line import EXTENSION, Left, Write

HEAD_BYTES = 64 * 1024
HEAD_WITHIN_SEC = 10.0
PIECE_BYTES = 256 * 1024
"""The most that event loops read at once."""
FULL_AGAIN_SEC = 60.0
"""A server that has refused nobody for so long has had room."""

_refused_at: WeakKeyDictionary[ServerState, float] = WeakKeyDictionary()
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Connection(HttpToolsProtocol):
    # beside the names of the server below: a dictionary of more than thirty shares them with no other
    __slots__ = ("_answering", "_extensions", "_in_head", "_is_lost", "_left", "_piece", "_seen", "_timer")

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        # the type is the server's own
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        # a double-ended queue by its type, of which this much is used
        self.pipeline = Pipeline()  # type: ignore[assignment]
        self._in_head = True
        self._piece = 0
        self._seen = 0
        self._timer: asyncio.TimerHandle | None = None
        self._answering: Response
        """What is being sent: requests that came too early have theirs already."""
        self._left: Left | None = None
        self._is_lost = False
        self._extensions: dict[str, object] = {EXTENSION: self._when_left}

    # the server below narrows the same argument
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # an event by its type; its only other user is the class that made it
        self.flow._is_writable_event = Signal(is_set=True)  # type: ignore[assignment]  # noqa: SLF001
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        if not self._is_idle():
            # the server below tells only the newest request, and the one that is answered may be another
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)
        self._is_lost = True
        # it leads back here, and would keep this from being freed at once
        self._extensions = {}
        if self._left is not None:
            self._left()

    def data_received(self, data: bytes) -> None:
        self._piece = len(data)
        if self._in_head:
            self._seen += len(data)
        super().data_received(data)
        # most heads come whole: no timer is made for them
        if not self._in_head:
            self._watch_leftovers()
            return
        if self._seen > HEAD_BYTES + PIECE_BYTES:
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        elif self._timer is None:
            self._await_head()

    def on_message_begin(self) -> None:
        self._in_head = True
        # the piece may begin with the end of another body, hence the room for a piece above
        self._seen = self._piece
        super().on_message_begin()
        # the type of the server's own does not list it
        self.scope["extensions"] = self._extensions  # type: ignore[typeddict-item]

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_waiting()
        if self._seen > HEAD_BYTES:
            self._check_size()
        self.scope["method"] = self.parser.get_method().decode("ascii")
        self.scope["http_version"] = version = self.parser.get_http_version()
        if self.parser.should_upgrade() and self._should_upgrade():
            return
        self._read_address()
        is_idle = self._is_idle()
        self.cycle = self._response(may_stay=version > "1.0" and self.parser.should_keep_alive())
        app = self.app if self._has_room() else self._refusal()
        if is_idle:
            self._start_asgi_task(self.cycle, app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, app))

    def on_response_complete(self) -> None:
        self._left = None
        super().on_response_complete()

    def _should_upgrade(self) -> bool:
        # the answer before it would have the handshake in its middle
        return self._is_idle() and super()._should_upgrade()

    # the type is the server's own
    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        assert isinstance(cycle, Response), "no other is made here"
        self._answering = cycle
        task = self.loop.create_task(cycle.run_asgi(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _when_left(self, left: Left) -> Write:
        """`left` is called if the peer leaves before it has its answer. Gives what writes more of that."""
        self._left = left
        if self._is_lost:
            left()
        return self._answering.write

    def _read_address(self) -> None:
        address = httptools.parse_url(self.url)
        path = address.path.decode("ascii")
        self.scope["path"] = self.root_path + (unquote(path) if "%" in path else path)
        self.scope["raw_path"] = self.root_path.encode("ascii") + address.path
        self.scope["query_string"] = address.query or b""

    def _response(self, *, may_stay: bool) -> Response:
        return Response(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=Signal(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=may_stay,
            on_response=self.on_response_complete,
        )

    def _has_room(self) -> bool:
        most = self.limit_concurrency
        return most is None or (len(self.connections) < most and len(self.tasks) < most)

    # the type is the server's own
    def _refusal(self) -> Any:
        now = self.loop.time()
        # once for each time of being full: a line for each refusal would fill the log as well
        if now - _refused_at.get(self.server_state, -inf) > FULL_AGAIN_SEC:
            most = self.limit_concurrency
            self.logger.warning("There are %d connections or requests, the most: others get 503.", most)
        _refused_at[self.server_state] = now
        return service_unavailable

    def _check_size(self) -> None:
        """What was seen may be a small head with a body before or behind it."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > HEAD_BYTES:
            raise ValueError("the head is too large")

    def _watch_leftovers(self) -> None:
        """What follows an answer without being a request: blank lines, the rest of a body that nobody reads.

        The server below takes any of it as a sign of life and waits no more for anything. Not prolonged by
        further data, or a byte now and then would keep the connection for ever.
        """
        if self._timer is None and self._is_idle() and self.transport.get_protocol() is self:
            self._await_head()

    def _is_idle(self) -> bool:
        under_way: RequestResponseCycle | None = self.cycle
        return under_way is None or under_way.response_complete

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(HEAD_WITHIN_SEC, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        # the answer to the request before this one may still be under way
        if self._is_idle():
            self.transport.close()
        else:
            self._await_head()
