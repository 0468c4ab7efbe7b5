"""What the models over both of OpenAI's APIs have in common: how they are made, asked and closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from farhand.models.base import ModelEvent, Prompt, Stop
from farhand.models.calling import Names
from farhand.models.faults import broke_off
from farhand.models.openai.client import MAX_RETRIES, Asking, Server
from farhand.models.options import options_for
from farhand.models.reading import heard
from farhand.models.seeing import Seeing
from farhand.models.settings import TIMEOUT_SEC, checked_model, checked_timeout
from farhand.models.telling import Telling

if TYPE_CHECKING:
    import openai

# Any: the library has a TypedDict for each shape of the API; here a request is the JSON that is sent
Request: TypeAlias = dict[str, Any]


class Stream(AbstractAsyncContextManager["Stream"], Protocol):
    """The library's stream of one answer."""

    # Any: each API has its own events, and its own `Hearing` of them
    def __aiter__(self) -> AsyncIterator[Any]: ...


class Hearing(Protocol):
    """One answer while it is heard. `stop` is there once it is complete."""

    @property
    def stop(self) -> Stop | None: ...

    # Any: as above
    def hear(self, event: Any, /) -> Iterable[ModelEvent]: ...


class OpenAIModel(ABC):
    """A model that `OpenAI` and `OpenAIChat` make complete, each for its API."""

    provider: ClassVar[str]
    example: ClassVar[str]
    longest_id: ClassVar[int] = 64
    _create: ClassVar[Callable[..., object]]
    """The library's function that sends a request."""
    _reserved: ClassVar[frozenset[str]]
    """Members of a request that are never the user's."""

    # the knobs of a model, each of them a word that its user writes
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
        self._model = checked_model(model, self.example)
        self._options = options_for(self._create, options, self._reserved)
        server = Server(api_key, base_url, max_retries, checked_timeout(timeout_sec))
        self._connection = server.connection()
        self._seeing = Seeing()
        self._asking = Asking(server.who, model, server.has_key)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(self._seeing.stream(prompt, self._stream)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        await self._connection.close()

    async def _stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        telling = Telling(prompt, longest_id=self.longest_id)
        answer = self._hearing(telling.names)
        async with aclosing(self._asking.in_our_words(self._ask(telling, answer))) as events:
            async for event in events:
                yield event
        if answer.stop is None:
            raise broke_off(self._asking.who)
        yield answer.stop

    @abstractmethod
    def _hearing(self, names: Names) -> Hearing: ...

    @abstractmethod
    def _request(self, telling: Telling) -> Request: ...

    @abstractmethod
    async def _send(self, client: openai.AsyncOpenAI, request: Request) -> Stream: ...

    async def _ask(self, telling: Telling, answer: Hearing) -> AsyncGenerator[ModelEvent, None]:
        client = self._connection.client()
        stream = await self._send(client, self._request(telling))
        with self._asking.answering():
            async with (
                stream as events,
                aclosing(heard(self._asking.who, events, answer.hear)) as said,
            ):
                async for event in said:
                    yield event
