"""Protocol classes for uvicorn with our connection limits, and a guard against peers that do not read."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Sequence

from farhand.wire.http import Header

log = logging.getLogger("farhand.server")

HEAD_BYTES = 64 * 1024
HEAD_WITHIN_SEC = 10.0
PIPELINED = 16
"""Pipelined requests that may wait."""
HANDSHAKE_LINE_BYTES = 8000
HANDSHAKE_HEADERS = 100
"""A little below the limits of WebSocket libraries, above which they neither answer nor close."""

_IDLE_CHECKS = 7
_DROP_UNSENT = struct.pack("ii", 1, 0)

EVENTS = (
    "data_received",
    "on_url",
    "on_header",
    "on_headers_complete",
    "on_body",
    "on_message_complete",
    "on_response_complete",
)
"""The methods that our HTTP protocol overrides: if one is missing, a limit would silently not apply."""


def http_protocol(stalled_after_sec: float) -> type[asyncio.Protocol]:
    """For uvicorn's `http` setting: our limits on its httptools protocol, or its h11 protocol instead.

    h11 limits the size of a head and separates trailers itself, but has no time limit for a head.
    """
    try:
        # httptools may not be installed
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol  # noqa: PLC0415

        missing = [name for name in EVENTS if not hasattr(HttpToolsProtocol, name)]
    except ImportError:
        missing = ["httptools_impl"]
    if not missing:
        # only if its base class exists
        from farhand.cli.http_protocol import HttpProtocol  # noqa: PLC0415

        return _add_guard(HttpProtocol, stalled_after_sec)
    # loaded only if needed
    from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: PLC0415

    log.warning(
        "this uvicorn has no %s: falling back to h11, with no time limit for request heads", missing[0]
    )
    return _add_guard(H11Protocol, stalled_after_sec)


def socket_protocol(stalled_after_sec: float) -> type[asyncio.Protocol] | None:
    """For uvicorn's `ws` setting; None if no WebSocket library is installed."""
    # loads a WebSocket library that other commands do not need
    from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol  # noqa: PLC0415

    found: object = AutoWebSocketsProtocol
    return _add_guard(found, stalled_after_sec) if isinstance(found, type) else None


def _add_guard(base: type, stalled_after_sec: float) -> type[asyncio.Protocol]:
    bases = (base,) if issubclass(base, StallGuard) else (StallGuard, base)
    return type(base.__name__, bases, {"stalled_after_sec": stalled_after_sec})


def asks_for_upgrade(url: bytes, headers: Sequence[Header]) -> bool:
    """Whether the parser stops after this head, since another protocol may follow."""
    # CONNECT, whose target is a host and a port
    if not url.startswith((b"/", b"*")) and b"://" not in url:
        return True
    return b"upgrade" in {name.lower() for name, _ in headers} and any(
        name.lower() == b"connection" and b"upgrade" in value.lower() for name, value in headers
    )


def may_upgrade(url: bytes, headers: Sequence[Header]) -> bool:
    """Whether such a request can be passed on: small, and without a body.

    The parser does not read the body of such a request, and would treat it as the next request.
    """
    has_body = any(
        name.lower() == b"transfer-encoding" or (name.lower() == b"content-length" and value.strip(b" \t0"))
        for name, value in headers
    )
    longest = max((len(name) + len(value) for name, value in headers), default=0)
    fits = max(len(url), longest) <= HANDSHAKE_LINE_BYTES and len(headers) <= HANDSHAKE_HEADERS
    return fits and not has_body


class StallGuard(asyncio.Protocol):
    """Aborts a connection whose peer reads nothing for a while; a close would wait for the peer.

    A slow peer that reads something now and then is not stalled.
    """

    # slots, since the dictionary of uvicorn's class is shared by its connections only while it is small
    __slots__ = ("_idle_checks", "_peer", "_stall_timer", "_unsent")

    stalled_after_sec = 30.0

    # narrowed as in uvicorn, which uses stream sockets only
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._peer = transport
        self._stall_timer: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._idle_checks = 0
        # the timer starts with the first byte that the socket does not accept
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)

    def pause_writing(self) -> None:
        self._unsent, self._idle_checks = self._peer.get_write_buffer_size(), 0
        self._check_later()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stop_checking()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_checking()
        super().connection_lost(exc)

    def _check_later(self) -> None:
        # one check more than needed: progress right after a check is noticed at the next one
        pause = self.stalled_after_sec / (_IDLE_CHECKS + 1)
        self._stall_timer = asyncio.get_running_loop().call_later(pause, self._check)

    def _check(self) -> None:
        unsent = self._peer.get_write_buffer_size()
        self._idle_checks = 0 if unsent < self._unsent else self._idle_checks + 1
        self._unsent = unsent
        if self._idle_checks < _IDLE_CHECKS:
            self._check_later()
        else:
            self._abort()

    def _abort(self) -> None:
        # otherwise the kernel would keep unsent data and wait for the peer
        self._peer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DROP_UNSENT)
        self._peer.abort()

    def _stop_checking(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
