"""The limits of a connection, and the guard against peers that do not read, for any protocol."""

from __future__ import annotations

import asyncio
import socket
import struct

HEAD_BYTES = 64 * 1024
HEAD_WITHIN_SEC = 10.0
PIPELINED = 16
"""Requests that may wait for the answer to the one before them."""

_DROP_UNSENT = struct.pack("ii", 1, 0)


class StallGuard(asyncio.Protocol):
    """Aborts a connection whose socket has taken nothing for a while: a close would wait for the peer."""

    stalled_after_sec = 30.0

    # narrowed as uvicorn narrows it: it listens on stream sockets alone
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._peer = transport
        self._stall_timer: asyncio.TimerHandle | None = None
        # the first byte that the socket does not take starts the timer, and nothing is buffered behind it
        transport.set_write_buffer_limits(high=0)
        super().connection_made(transport)

    def pause_writing(self) -> None:
        self._stall_timer = asyncio.get_running_loop().call_later(self.stalled_after_sec, self._let_go)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stop_stall_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_stall_timer()
        super().connection_lost(exc)

    def _let_go(self) -> None:
        # without this the kernel would keep what it has taken, and wait for the peer in our place
        self._peer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DROP_UNSENT)
        self._peer.abort()

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
