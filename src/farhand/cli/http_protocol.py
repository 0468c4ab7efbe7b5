"""HTTP limits that uvicorn does not have: size and time of a request head, and the number of pipelined
requests. Trailers are not added to the headers.

Only event methods are overridden: asyncio's, those that httptools calls for each part of a request, and the
end of a response. No attribute of uvicorn's class is used. It must not know requests or responses.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from farhand.cli.protocols import (
    HEAD_BYTES,
    HEAD_WITHIN_SEC,
    PIPELINED,
    StallGuard,
    asks_for_upgrade,
    may_upgrade,
)

_END = b"\r\n\r\n"
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class HttpProtocol(StallGuard, HttpToolsProtocol):
    """Passes one request at a time to uvicorn. Pipelined requests are buffered as bytes until it is
    answered."""

    __slots__ = (
        "_head_size",
        "_head_tail",
        "_head_timer",
        "_headers",
        "_is_answering",
        "_is_in_head",
        "_trailer_size",
        "_unread",
        "_url",
    )

    # narrowed as in uvicorn, which uses stream sockets only
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._is_in_head = True
        """A request head is being read or expected."""
        self._is_answering = False
        self._head_size = 0
        self._head_tail = b""
        """The last bytes of an incomplete head, since its end may be split."""
        self._trailer_size = 0
        """Bytes after the body: trailers, for which the parser has no limit."""
        self._unread = b""
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_timer: asyncio.TimerHandle | None = None
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while self._unread and not self._peer.is_closing():
            if self._is_in_head and self._is_answering:
                if len(self._unread) > HEAD_BYTES or self._unread.count(_END) > PIPELINED:
                    self._peer.abort()
                return
            piece = self._next_piece()
            if self._is_in_head and not self._fits(piece):
                return
            if not self._is_in_head:
                self._trailer_size += len(piece)
            super().data_received(piece)
            if self._trailer_size > HEAD_BYTES:
                self._peer.abort()
        # until a head is complete: blank lines or the rest of an unread body do not count
        if not self._is_answering and self._head_timer is None:
            self._await_head()

    def on_url(self, url: bytes) -> None:
        self._url += url
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        # httptools reports trailers in the same way
        if self._is_in_head:
            self._headers.append((name, value))
            super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        self._stop_head_timer()
        if self._is_answering:
            self._peer.abort()
            raise ValueError("a pipelined request arrived in one piece with the body before it")
        if asks_for_upgrade(self._url, self._headers) and not may_upgrade(self._url, self._headers):
            raise ValueError("an upgrade request is too large or has a body")
        self._url, self._headers = b"", []
        self._is_in_head, self._is_answering, self._head_size, self._head_tail = False, True, 0, b""
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._trailer_size = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_head, self._trailer_size = True, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._is_answering = False
        super().on_response_complete()
        if self._unread:
            asyncio.get_running_loop().call_soon(self.data_received, b"")

    def _next_piece(self) -> bytes:
        """Only the head while one is being read, so that the rest can wait; otherwise everything."""
        end = (self._head_tail + self._unread).find(_END) if self._is_in_head else -1
        end = len(self._unread) if end < 0 else end + len(_END) - len(self._head_tail)
        piece, self._unread = self._unread[:end], self._unread[end:]
        return piece

    def _fits(self, piece: bytes) -> bool:
        self._head_size += len(piece)
        self._head_tail = (self._head_tail + piece)[1 - len(_END) :]
        if self._head_size > HEAD_BYTES:
            self._peer.write(_TOO_LARGE)
            self._peer.close()
        return self._head_size <= HEAD_BYTES

    def _await_head(self) -> None:
        self._head_timer = asyncio.get_running_loop().call_later(HEAD_WITHIN_SEC, self._peer.close)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
