"""A body too large to be held at once: read in pieces of one size. Must not know what it is.

The time limit is for each piece and not for the whole: a large body on a slow line arrives, and a sender that
drips is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from starlette.types import Receive

from farhand.errors import Malformed, TooLarge, TooSlow
from farhand.wire.http import Header


def declared_length(headers: Iterable[Header]) -> int | None:
    """What Content-Length says; None for a body that is sent in chunks."""
    length = next((value for name, value in headers if name == b"content-length"), None)
    if length is None:
        return None
    if not length.isdigit():
        raise Malformed("Content-Length is not a number.")
    # nineteen digits pass every limit, and a longer number would only cost time
    return int(length[:19])


async def read_pieces(receive: Receive, *, piece: int, limit: int, within: float) -> AsyncIterator[bytes]:
    """The body, each piece full but the last; none for an empty one. `limit` is for all of it."""
    body = _Body(receive)
    size = 0
    while not body.ended:
        # one byte more than may be shows at once that there are too many
        read = await _next(body, min(piece, limit - size + 1), within)
        size += len(read)
        if size > limit:
            raise TooLarge(f"The body is larger than {limit} bytes.", hint="Send less; nothing was kept.")
        if read:
            yield read


class _Body:
    """What was received and not read yet."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._rest = bytearray()
        self._is_whole = False

    @property
    def ended(self) -> bool:
        return self._is_whole and not self._rest

    async def read(self, size: int) -> bytes:
        while len(self._rest) < size and not self._is_whole:
            message = await self._receive()
            if message["type"] != "http.request":
                raise Malformed("The connection was closed before the whole body had arrived.")
            self._rest += message.get("body", b"")
            self._is_whole = not message.get("more_body", False)
        read = bytes(self._rest[:size])
        del self._rest[:size]
        return read


async def _next(body: _Body, piece: int, within: float) -> bytes:
    try:
        async with asyncio.timeout(within):
            return await body.read(piece)
    except TimeoutError:
        raise TooSlow(
            f"Of the body, {piece} bytes did not arrive within {within:g} s.",
            hint="Send it again on a faster line; nothing was kept.",
        ) from None
