"""The limits of a connection, and the guard against peers that do not read, for any protocol."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence

HEAD_BYTES = 64 * 1024
HEAD_WITHIN_SEC = 10.0
PIPELINED = 16
"""Requests that may wait for the answer to the one before them."""
HANDSHAKE_LINE_BYTES = 8000
HANDSHAKE_HEADERS = 100
"""A little below what the WebSocket libraries read: past that they neither answer nor close."""

_IDLE_LOOKS = 7
_DROP_UNSENT = struct.pack("ii", 1, 0)


def may_upgrade(url: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether a request that asks for another protocol can be handed on: small, and without a body.

    The parser reads no body of such a request, and would take it for the next one.
    """
    has_body = any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
        for name, value in headers
    )
    longest = max((len(name) + len(value) for name, value in headers), default=0)
    fits = max(len(url), longest) <= HANDSHAKE_LINE_BYTES and len(headers) <= HANDSHAKE_HEADERS
    return fits and not has_body


class StallGuard(asyncio.Protocol):
    """Aborts a connection whose peer takes nothing for a while: a close would wait for the peer.

    However slow, a peer that takes something now and then is not stalled.
    """

    stalled_after_sec = 30.0

    # narrowed as uvicorn narrows it: it listens on stream sockets alone
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._peer = transport
        self._stall_timer: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._idle_looks = 0
        # the first byte that the socket does not take starts the timer, and nothing is buffered behind it
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)

    def pause_writing(self) -> None:
        self._unsent, self._idle_looks = self._peer.get_write_buffer_size(), 0
        self._look_later()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stop_looking()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_looking()
        super().connection_lost(exc)

    def _look_later(self) -> None:
        # one look more than is waited for: what moved right after a look is seen at the next one
        pause = self.stalled_after_sec / (_IDLE_LOOKS + 1)
        self._stall_timer = asyncio.get_running_loop().call_later(pause, self._look)

    def _look(self) -> None:
        unsent = self._peer.get_write_buffer_size()
        self._idle_looks = 0 if unsent < self._unsent else self._idle_looks + 1
        self._unsent = unsent
        if self._idle_looks < _IDLE_LOOKS:
            self._look_later()
        else:
            self._let_go()

    def _let_go(self) -> None:
        # without this the kernel would keep what it has taken, and wait for the peer in our place
        self._peer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DROP_UNSENT)
        self._peer.abort()

    def _stop_looking(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
