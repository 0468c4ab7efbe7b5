"""`Anthropic`: a model over Anthropic's official library; the only module that imports it.

The library does the retries and the timeouts. Every error becomes a `ModelFault` that names the next step.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager

from msgspec.structs import replace

from farhand.errors import BadSetting, ModelFault, not_installed
from farhand.models.anthropic.request import LONGEST_ID, LONGEST_NAME, former_tools_of, messages_of, tools_of
from farhand.models.anthropic.stream import MessageDecoder, MessageEvent, decode_event
from farhand.models.error_messages import AnswerFailed, ProviderError, model_fault, stream_cut
from farhand.models.http_client import client_options
from farhand.models.prompt_encoding import PromptEncoder, ToolNames
from farhand.models.provider_model import ModelRequest, ProviderModel, RawResponse
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
    import anthropic
    import anyio
    import httpx2
    from anthropic.resources.messages import AsyncMessages
except ModuleNotFoundError as error:
    raise not_installed("Models of Anthropic", "anthropic") from error

KEY = "ANTHROPIC_API_KEY"
ADDRESS = "ANTHROPIC_BASE_URL"
MAX_TOKENS = 16_000
_RESERVED = frozenset({"model", "messages", "system", "stream", "timeout"})
# the last two are TLS errors that the HTTP client does not wrap
_CONNECTION_LOST = (httpx2.HTTPError, httpx2.StreamError, ssl.SSLError, anyio.EndOfStream)


class Anthropic(ProviderModel[anthropic.AsyncAnthropic]):
    """Claude over Anthropic's Messages API; requires `pip install 'farhand[anthropic]'`.

    ```python
    from farhand import Agent
    from farhand.models import Anthropic

    agent = Agent(Anthropic("claude-sonnet-5", api_key="sk-ant-example", max_tokens=4_000))
    ```

    Args:
        model: For example `claude-sonnet-5`.
        api_key: Defaults to the environment variable `ANTHROPIC_API_KEY`.
        base_url: Another server with the Messages API; defaults to `ANTHROPIC_BASE_URL`, if set.
        max_tokens: The longest answer of one step.
        max_retries: How often the library retries after 429, 5xx or a lost connection.
        timeout_sec: How long the server may be silent, before the first event and between two events.
        options: More members of the request, including those that the library does not know: `thinking`,
            `output_config`, Anthropic's own `tools`.
    """

    longest_id = LONGEST_ID
    longest_name = LONGEST_NAME

    # each is an option that a user of the model sets by name
    def __init__(  # noqa: PLR0913
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_tokens: int = MAX_TOKENS,
        max_retries: int = anthropic.DEFAULT_MAX_RETRIES,
        timeout_sec: float = TIMEOUT_SEC,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self._model = check_model(model, "anthropic:claude-sonnet-5")
        self._max_tokens = max_tokens
        self._options = request_options(AsyncMessages.create, options, _RESERVED)

        if address := base_url or os.environ.get(ADDRESS):
            check_base_url(address, "base_url" if base_url else ADDRESS)
        timeout = httpx2.Timeout(check_timeout(timeout_sec), connect=min(timeout_sec, CONNECT_SEC))

        def client() -> anthropic.AsyncAnthropic:
            http_client = anthropic.DefaultAsyncHttpxClient(**client_options("Anthropic", max_retries))
            return anthropic.AsyncAnthropic(
                api_key=api_key,
                base_url=base_url,
                max_retries=max_retries,
                timeout=timeout,
                http_client=http_client,
            )

        super().__init__(f"anthropic:{model}", "Anthropic", _connected(client))

    def _decoder(self, names: ToolNames) -> MessageDecoder:
        return MessageDecoder(names)

    def _send(
        self, client: anthropic.AsyncAnthropic, request: ModelRequest
    ) -> AbstractAsyncContextManager[RawResponse]:
        return client.messages.with_streaming_response.create(**request, stream=True)

    async def _read_events(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[MessageEvent, None]:
        reader = SseReader()
        async for chunk in chunks:
            for sent in reader.feed(chunk):
                event = decode_event(sent)
                if event is not None:
                    yield event

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except anthropic.AnthropicError as error:
            raise self._fault(error) from error
        except AnswerFailed as failed:
            status = _STATUS_OF.get(failed.code, 500)
            raise model_fault(replace(self._provider_error(failed.words), status=status)) from failed
        except _CONNECTION_LOST as error:
            raise stream_cut("Anthropic", str(error)) from error

    def _request(self, encoder: PromptEncoder) -> ModelRequest:
        own, given = tools_of(encoder), self._options.get("tools")
        tools = [*own, *given] if isinstance(given, list | tuple) else own
        request = {
            "model": self._model,
            "max_tokens": self._max_tokens,
            # each step repeats the whole conversation
            "cache_control": {"type": "ephemeral"},
            **self._options,
            "messages": messages_of(encoder),
        }
        if encoder.prompt.instructions:
            request["system"] = encoder.prompt.instructions
        if tools:
            return {**request, "tools": tools}
        former = former_tools_of(encoder)
        return {**request, "tools": former, "tool_choice": {"type": "none"}} if former else request

    def _fault(self, error: anthropic.AnthropicError) -> ModelFault:
        seen = self._provider_error(str(error))
        if isinstance(error, anthropic.CredentialsError):
            seen = replace(seen, status=401)
        if isinstance(error, anthropic.APIStatusError):
            seen = replace(
                seen,
                # a redirect without a target is not a status of the API
                status=error.status_code if error.status_code >= 400 else 500,
                words=error.api_message or error.message,
                wait_sec=retry_after_sec(error.response.headers),
            )
        return model_fault(seen)

    def _provider_error(self, words: str) -> ProviderError:
        return ProviderError(provider="Anthropic", model=self._model, key_setting=KEY, words=words)


def _connected(
    client: Callable[[], anthropic.AsyncAnthropic],
) -> ProviderConnection[anthropic.AsyncAnthropic]:
    """The library finds keys, tokens and profiles by itself; it must have found one."""
    try:
        connection = ProviderConnection(client, anthropic.AsyncAnthropic.close)
    except (anthropic.AnthropicError, *SETUP_ERRORS) as error:
        raise BadSetting(f"Anthropic's library cannot be set up: {error}", hint=f"Set {KEY}.") from error
    first = connection.first
    if not first.api_key and not first.auth_token and first.credentials is None:
        raise BadSetting("Anthropic requires a key.", hint=f"Set {KEY}.")
    if first.api_key:
        check_key(first.api_key, KEY)
    return connection


_STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
