"""`Anthropic`: a model over Anthropic's official library, the only module that imports it.

Retries and time limits are the library's. What goes wrong becomes a `ModelFault` with the next step.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from farhand.errors import BadSetting, ModelFault, not_installed
from farhand.models.anthropic.answer import Answer
from farhand.models.anthropic.request import LONGEST_ID, LONGEST_NAME, gone_tools_of, messages_of, tools_of
from farhand.models.base import ModelEvent, Prompt
from farhand.models.connection import Connection
from farhand.models.delays import wait_asked_for, watching
from farhand.models.faults import Trouble, broke_off, fault_of, no_answer_of_its_api
from farhand.models.options import options_for
from farhand.models.reading import heard
from farhand.models.seeing import Seeing
from farhand.models.settings import (
    CONNECT_SEC,
    TIMEOUT_SEC,
    UNUSABLE,
    checked_address,
    checked_key,
    checked_model,
    checked_timeout,
)
from farhand.models.telling import Telling

try:
    import anthropic
    import httpx2
    from anthropic.resources.messages import AsyncMessages
except ModuleNotFoundError as error:
    raise not_installed("Models of Anthropic", "anthropic") from error

KEY = "ANTHROPIC_API_KEY"
ADDRESS = "ANTHROPIC_BASE_URL"
MAX_TOKENS = 16_000
_RESERVED = frozenset({"model", "messages", "system", "stream", "timeout"})


class Anthropic:
    """Claude.

    Args:
        model: Such as `claude-sonnet-5`.
        api_key: Without it the environment's, `ANTHROPIC_API_KEY`.
        base_url: Another server that speaks the Messages API; without it `ANTHROPIC_BASE_URL`, if set.
        max_tokens: The longest answer of one step.
        max_retries: How often the library asks again after 429, 5xx or a lost connection.
        timeout_sec: How long it may be silent, before its first word and between two of them.
        options: More members of the request, as the server spells them, also those that the library does not
            know: `thinking`, `output_config`, `tools` of Anthropic's own.
    """

    # the knobs of a model, each of them a word that its user writes
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
        self.name = f"anthropic:{model}"
        self._model = checked_model(model, "anthropic:claude-sonnet-5")
        self._max_tokens = max_tokens
        self._options = options_for(AsyncMessages.create, options, _RESERVED)

        if address := base_url or os.environ.get(ADDRESS):
            checked_address(address, "base_url" if base_url else ADDRESS)
        timeout = httpx2.Timeout(checked_timeout(timeout_sec), connect=min(timeout_sec, CONNECT_SEC))

        def client() -> anthropic.AsyncAnthropic:
            hooks = watching("Anthropic", max_retries)
            return anthropic.AsyncAnthropic(
                api_key=api_key,
                base_url=base_url,
                max_retries=max_retries,
                timeout=timeout,
                http_client=anthropic.DefaultAsyncHttpxClient(event_hooks=hooks),
            )

        self._connection = _connected(client)
        self._seeing = Seeing()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(self._seeing.stream(prompt, self._stream)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        await self._connection.close()

    async def _stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        telling = Telling(prompt, longest_id=LONGEST_ID, longest_name=LONGEST_NAME)
        answer = Answer(telling.names)
        try:
            async with aclosing(self._ask(telling, answer)) as events:
                async for event in events:
                    yield event
        except anthropic.AnthropicError as error:
            raise self._fault(error) from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise broke_off("Anthropic", str(error)) from error
        if answer.stop is None:
            raise broke_off("Anthropic")
        yield answer.stop

    async def _ask(self, telling: Telling, answer: Answer) -> AsyncGenerator[ModelEvent, None]:
        client = self._connection.client()
        async with (
            await client.messages.create(**self._request(telling), stream=True) as events,
            aclosing(heard("Anthropic", events, answer.hear)) as said,
        ):
            async for event in said:
                yield event

    # Any: the library has a TypedDict for each shape of the API; here a request is the JSON that is sent
    def _request(self, telling: Telling) -> dict[str, Any]:
        own, given = tools_of(telling), self._options.get("tools")
        tools = [*own, *given] if isinstance(given, list | tuple) else own
        request = {
            "model": self._model,
            "max_tokens": self._max_tokens,
            # each step repeats all of the conversation so far
            "cache_control": {"type": "ephemeral"},
            **self._options,
            "messages": messages_of(telling),
        }
        if telling.prompt.instructions:
            request["system"] = telling.prompt.instructions
        if tools:
            return {**request, "tools": tools}
        gone = gone_tools_of(telling)
        return {**request, "tools": gone, "tool_choice": {"type": "none"}} if gone else request

    def _fault(self, error: anthropic.AnthropicError) -> ModelFault:
        if isinstance(error, anthropic.APIResponseValidationError):
            return no_answer_of_its_api("Anthropic")
        trouble = Trouble(provider="Anthropic", model=self._model, key_setting=KEY, words=str(error))
        if isinstance(error, anthropic.CredentialsError):
            trouble = replace(trouble, status=401)
        if isinstance(error, anthropic.APIStatusError):
            trouble = replace(
                trouble,
                status=_status(error),
                words=error.api_message or error.message,
                wait_sec=wait_asked_for(error.response.headers),
            )
        return fault_of(trouble)


def _connected(client: Callable[[], anthropic.AsyncAnthropic]) -> Connection[anthropic.AsyncAnthropic]:
    """The library finds keys, tokens and profiles by itself; it must have found one."""
    try:
        connection = Connection(client, anthropic.AsyncAnthropic.close)
    except (anthropic.AnthropicError, *UNUSABLE) as error:
        raise BadSetting(f"Anthropic's library has no way in: {error}", hint=f"Or set {KEY}.") from error
    first = connection.first
    if not first.api_key and not first.auth_token and first.credentials is None:
        raise BadSetting("Anthropic needs a key.", hint=f"Set {KEY}.")
    if first.api_key:
        checked_key(first.api_key, KEY)
    return connection


def _status(error: anthropic.APIStatusError) -> int:
    """Trouble in the middle of a stream comes under a 200 that was sent long before."""
    if error.status_code >= 400:
        return error.status_code
    return _STATUS_OF.get(str(error.type), 500)


_STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
