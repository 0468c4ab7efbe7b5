"""A model over a provider's official library: how it is asked, how its answer is read, and how it is closed.

A subclass knows the library and the API: it encodes a request, decodes events and translates errors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from farhand.models.base import ModelEvent, Prompt, Stop
from farhand.models.error_messages import stream_cut
from farhand.models.image_fallback import ImageFallback
from farhand.models.prompt_encoding import PromptEncoder, ToolNames
from farhand.models.settings import ProviderConnection
from farhand.models.stream_guard import guard_stream

C = TypeVar("C")

# Any: the libraries have a TypedDict for each shape; here a request is the JSON that is sent
ModelRequest: TypeAlias = dict[str, Any]


class RawResponse(Protocol):
    """A response before the library decodes it."""

    def iter_bytes(self) -> AsyncIterator[bytes]: ...


class AnswerDecoder(Protocol):
    """Decodes one answer. `stop` is set once it is complete."""

    @property
    def stop(self) -> Stop | None: ...

    # Any: an event of the API
    def decode(self, event: Any, /) -> Iterable[ModelEvent]: ...


class ProviderModel(ABC, Generic[C]):
    """`C` is the client of the library."""

    longest_id: ClassVar[int] = 64
    longest_name: ClassVar[int] = 64

    def __init__(self, name: str, label: str, connection: ProviderConnection[C]) -> None:
        """`label` is the provider's name in error messages."""
        self.name = name
        self._label = label
        self._connection = connection
        self._image_fallback = ImageFallback()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(self._image_fallback.stream(prompt, self._stream)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        await self._connection.close()

    @abstractmethod
    def _decoder(self, names: ToolNames) -> AnswerDecoder: ...

    @abstractmethod
    def _request(self, encoder: PromptEncoder) -> ModelRequest: ...

    @abstractmethod
    def _send(self, client: C, request: ModelRequest) -> AbstractAsyncContextManager[RawResponse]:
        """Sends the request on entry and closes the response on exit."""

    # Any: each API has its own events
    @abstractmethod
    def _read_events(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[Any, None]: ...

    @abstractmethod
    def _translate_errors(self) -> AbstractContextManager[None]:
        """Translates errors of the library and lost connections to `ModelFault`."""

    async def _stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        encoder = PromptEncoder(prompt, longest_id=self.longest_id, longest_name=self.longest_name)
        answer = self._decoder(encoder.names)
        with self._translate_errors():
            async with aclosing(self._ask(encoder, answer)) as events:
                async for event in events:
                    yield event
        if answer.stop is None:
            raise stream_cut(self._label)
        yield answer.stop

    async def _ask(self, encoder: PromptEncoder, answer: AnswerDecoder) -> AsyncGenerator[ModelEvent, None]:
        client = await self._connection.client()
        async with self._send(client, self._request(encoder)) as response:
            events = self._read_events(response.iter_bytes())
            async with (
                aclosing(events),
                aclosing(guard_stream(self._label, events, answer.decode)) as decoded,
            ):
                async for event in decoded:
                    yield event
