"""A chat's stream with its last word: the library reads `[DONE]` and keeps it to itself.

Some servers give no other sign that an answer is complete, and a stream that was cut has none at all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeAlias

if TYPE_CHECKING:
    from openai import AsyncStream
    from openai.types.chat import ChatCompletionChunk


class Done:
    """The server said that this was all."""


DONE: Final = Done()
Heard: TypeAlias = "ChatCompletionChunk | Done"

_LAST_LINES = (b"data: [DONE]", b"data:[DONE]")
_KEPT = 64


class ChatStream:
    def __init__(self, stream: AsyncStream[ChatCompletionChunk]) -> None:
        self._stream = stream
        self._tail = b""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stream.close()

    async def __aiter__(self) -> AsyncIterator[Heard]:
        # where the library takes its bytes from, decompressed
        bytes_of = self._stream.response.aiter_bytes

        async def noticed() -> AsyncIterator[bytes]:
            async for piece in bytes_of():
                self._tail = (self._tail + piece)[-_KEPT:]
                yield piece

        # method-assign: of this one response, not of its class
        self._stream.response.aiter_bytes = noticed  # type: ignore[method-assign, assignment]
        async for chunk in self._stream:
            yield chunk
        if any(line.strip() in _LAST_LINES for line in self._tail.splitlines()):
            yield DONE
