"""What the models over both of OpenAI's APIs have in common: how they are created, asked and closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from farhand.models.base import ModelEvent, Prompt, Stop
from farhand.models.error_messages import stream_cut
from farhand.models.image_fallback import ImageFallback
from farhand.models.openai.client import MAX_RETRIES, RequestContext, Server, read_events
from farhand.models.prompt_encoding import PromptEncoder
from farhand.models.provider_ids import ToolNames
from farhand.models.settings import TIMEOUT_SEC, check_model, check_timeout, request_options
from farhand.models.stream_guard import guard_stream

if TYPE_CHECKING:
    import openai

# Any: the library has a TypedDict for each shape; here a request is the JSON that is sent
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


class OpenAIModel(ABC):
    """Base of `OpenAI` and `OpenAIChat`, which complete it for their API."""

    provider: ClassVar[str]
    example: ClassVar[str]
    longest_id: ClassVar[int] = 64
    _create: ClassVar[Callable[..., object]]
    """The library's function that sends a request."""
    # Any: each API has its own events
    _decode: ClassVar[Callable[..., Any]]
    """Decodes the data of an event; None for one to skip."""
    _reserved: ClassVar[frozenset[str]]
    """Members of a request that a user cannot set."""

    # each is an option that a user of the model sets by name
    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_retries: int = MAX_RETRIES,
        timeout_sec: float = TIMEOUT_SEC,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self.name = f"{self.provider}:{model}"
        self._model = check_model(model, self.example)
        self._options = request_options(self._create, options, self._reserved)
        server = Server(api_key, base_url, max_retries, check_timeout(timeout_sec))
        self._connection = server.connection()
        self._image_fallback = ImageFallback()
        self._context = RequestContext(server.label, model, server.has_key)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(self._image_fallback.stream(prompt, self._stream)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        await self._connection.close()

    async def _stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        encoder = PromptEncoder(prompt, longest_id=self.longest_id)
        answer = self._decoder(encoder.names)
        with self._context.translate_errors():
            async with aclosing(self._ask(encoder, answer)) as events:
                async for event in events:
                    yield event
        if answer.stop is None:
            raise stream_cut(self._context.label)
        yield answer.stop

    @abstractmethod
    def _decoder(self, names: ToolNames) -> AnswerDecoder: ...

    @abstractmethod
    def _request(self, encoder: PromptEncoder) -> ModelRequest: ...

    @abstractmethod
    def _send(
        self, client: openai.AsyncOpenAI, request: ModelRequest
    ) -> AbstractAsyncContextManager[RawResponse]:
        """Sends the request on entry and closes the response on exit."""

    async def _ask(self, encoder: PromptEncoder, answer: AnswerDecoder) -> AsyncGenerator[ModelEvent, None]:
        client = await self._connection.client()
        async with self._send(client, self._request(encoder)) as response:
            events = read_events(response.iter_bytes(), self._decode)
            async with (
                aclosing(events),
                aclosing(guard_stream(self._context.label, events, answer.decode)) as decoded,
            ):
                async for event in decoded:
                    yield event
