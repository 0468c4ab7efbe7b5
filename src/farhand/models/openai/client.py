"""OpenAI's official library; the only module that imports it.

Owns keys, addresses, what the library raises, and where an answer ends: at `[DONE]`, whatever follows, or
with the bytes. Must not know what is in the events of either of the two APIs.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

from farhand.errors import BadSetting, ModelFault, not_installed
from farhand.models.error_messages import AnswerFailed, ProviderError, model_fault, stream_cut
from farhand.models.http_client import client_options
from farhand.models.provider_model import ProviderModel
from farhand.models.retry_after import retry_after_sec
from farhand.models.settings import (
    CONNECT_SEC,
    SETUP_ERRORS,
    TIMEOUT_SEC,
    ProviderConnection,
    check_base_url,
    check_key,
    check_model,
    check_timeout,
    request_options,
)
from farhand.models.sse_reader import SseReader

try:
    import anyio
    import httpx2
    import openai
    from openai.resources.chat import AsyncCompletions
    from openai.resources.responses import AsyncResponses
except ModuleNotFoundError as error:
    raise not_installed("Models of OpenAI and compatible servers", "openai") from error


KEY = "OPENAI_API_KEY"
ADDRESS = "OPENAI_BASE_URL"
# self-hosted servers rarely need a key, but the library always requires one
_NO_KEY = "none"
MAX_RETRIES = openai.DEFAULT_MAX_RETRIES
create_chat = AsyncCompletions.create
create_response = AsyncResponses.create
CONNECTION_LOST = (httpx2.HTTPError, httpx2.StreamError, ssl.SSLError, anyio.EndOfStream)
"""Raised while an answer is read. The last two are TLS errors that the HTTP client does not wrap."""


class OpenAIModel(ProviderModel[openai.AsyncOpenAI]):
    """Base of `OpenAI` and `OpenAIChat`, which complete it for their API."""

    provider: ClassVar[str]
    example: ClassVar[str]
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
        self._model = check_model(model, self.example)
        self._options = request_options(self._create, options, self._reserved)
        timeout = openai.Timeout(check_timeout(timeout_sec), connect=min(timeout_sec, CONNECT_SEC))
        key, address = api_key or os.environ.get(KEY), base_url or os.environ.get(ADDRESS)
        if not key and not address:
            raise BadSetting(
                "OpenAI requires a key.",
                hint=f"Set {KEY}; for a server of your own, set {ADDRESS} or base_url.",
            )
        if address:
            check_base_url(address, "base_url" if base_url else ADDRESS)
        if key:
            check_key(key, "api_key" if api_key else KEY)
        self._has_key = bool(key)
        label = _label(address)

        def client() -> openai.AsyncOpenAI:
            return openai.AsyncOpenAI(
                api_key=key or _NO_KEY,
                base_url=address or None,
                max_retries=max_retries,
                timeout=timeout,
                http_client=openai.DefaultAsyncHttpxClient(**client_options(label, max_retries)),
            )

        try:
            connection = ProviderConnection(client, openai.AsyncOpenAI.close)
        except (openai.OpenAIError, *SETUP_ERRORS) as error:
            raise BadSetting(f"OpenAI's library cannot be set up: {error}") from error
        super().__init__(f"{self.provider}:{model}", label, connection)

    # Any: each API has its own events
    def _read_events(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[Any, None]:
        return read_events(chunks, self._decode)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except CONNECTION_LOST as error:
            # the library has its own error for a connection that is lost before the answer begins
            raise stream_cut(self._label, str(error)) from error
        except openai.APIConnectionError as error:
            raise self._fault("", str(error.__cause__ or error.message), None) from error
        except openai.APIError as error:
            raise self._fault_of(error) from error
        except openai.OpenAIError as error:
            # no response at all: the library found no credential
            raise self._fault("", str(error), 401) from error
        except AnswerFailed as error:
            raise self._fault(error.code, error.words, _STATUS_OF.get(error.code, 500)) from error

    def _fault_of(self, error: openai.APIError) -> ModelFault:
        code = error.code or error.type or ""
        if not isinstance(error, openai.APIStatusError):
            return self._fault(code, _words(error.body) or error.message, _STATUS_OF.get(code, 500))
        words = _words(error.body) or error.response.text
        return self._fault(code, words, error.status_code, retry_after_sec(error.response.headers))

    def _fault(self, code: str, words: str, status: int | None, wait_sec: float | None = None) -> ModelFault:
        return model_fault(
            ProviderError(
                provider=self._label,
                model=self._model,
                key_setting=KEY,
                status=status,
                words=words,
                code=str(code),
                wait_sec=wait_sec,
                has_key=self._has_key,
            )
        )


def _label(address: str | None) -> str:
    """The server's name in error messages."""
    place = urlsplit(address or "")
    if not place.hostname:
        return "OpenAI"
    # without the user and password that an address may contain
    return f"the model server at {place.netloc.rpartition('@')[2]}"


def answer_failed(error: object) -> AnswerFailed:
    """For an `error` in the stream in place of an event."""
    members = error if isinstance(error, dict) else {}
    code = members.get("code") or members.get("type") or ""
    return AnswerFailed(str(code), _words(error) or "An error occurred during streaming")


def _words(body: object) -> str:
    """The server's message, which compatible servers send in forms of their own."""
    if isinstance(body, dict):
        body = next((body[name] for name in ("message", "detail", "error") if body.get(name)), None)
    return body if isinstance(body, str) else ""


# in the middle of a stream there is a code and no status
_STATUS_OF = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
}


E = TypeVar("E")

DRAIN_SEC: Final = 0.1
"""How long to wait for the end of a response after `[DONE]`: some servers never send it."""


def is_done(data: bytes) -> bool:
    """True for the end of the stream."""
    return data.startswith(b"[DONE]")


async def read_events(
    chunks: AsyncIterator[bytes], decode: Callable[[bytes], E | None]
) -> AsyncGenerator[E, None]:
    """The decoded data of each event, `[DONE]` included, without those that decode to None."""
    reader = SseReader()
    async for chunk in chunks:
        for sent in reader.feed(chunk):
            # proxies keep a connection open with empty events
            event = decode(sent.data) if sent.data else None
            if event is not None:
                yield event
            if is_done(sent.data):
                await _drain(chunks)
                return
    # only `[DONE]` needs no blank line after it: any other event may be incomplete
    last = reader.end()
    event = decode(last.data) if last is not None and is_done(last.data) else None
    if event is not None:
        yield event


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Reads the response to its end: only then can its connection be reused."""
    with suppress(TimeoutError, *CONNECTION_LOST):
        async with asyncio.timeout(DRAIN_SEC):
            async for _ in chunks:
                pass
