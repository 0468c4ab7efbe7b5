"""The official library of OpenAI, and the only module that imports it.

Owns keys, addresses and what the library raises. Which API is spoken is the business of its neighbours.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from urllib.parse import urlsplit

from msgspec import Struct

from farhand.errors import BadSetting, ModelFault, not_installed
from farhand.models.base import ModelEvent
from farhand.models.connection import Connection
from farhand.models.delays import wait_asked_for, watching
from farhand.models.faults import Trouble, broke_off, fault_of, no_answer_of_its_api
from farhand.models.settings import CONNECT_SEC, TIMEOUT_SEC, UNUSABLE, checked_address, checked_key

try:
    import openai
    from openai.resources.chat import AsyncCompletions
    from openai.resources.responses import AsyncResponses
except ModuleNotFoundError as error:
    raise not_installed("Models of OpenAI and compatible servers", "openai") from error

KEY = "OPENAI_API_KEY"
ADDRESS = "OPENAI_BASE_URL"
# servers of one's own rarely ask for a key, and the library always wants one
_NO_KEY = "none"
MAX_RETRIES = openai.DEFAULT_MAX_RETRIES
create_chat = AsyncCompletions.create
create_response = AsyncResponses.create


class Server(Struct, frozen=True):
    """Where the model is, and with which key; what is None comes from the environment."""

    api_key: str | None = None
    base_url: str | None = None
    max_retries: int = MAX_RETRIES
    timeout_sec: float = TIMEOUT_SEC

    def connection(self) -> Connection[openai.AsyncOpenAI]:
        key, elsewhere = self._key, self._elsewhere
        if not key and not elsewhere:
            raise BadSetting(
                "OpenAI needs a key.", hint=f"Set {KEY}; for a server of your own, set {ADDRESS} or base_url."
            )
        if elsewhere:
            checked_address(elsewhere, "base_url" if self.base_url else ADDRESS)
        if key:
            checked_key(key, "api_key" if self.api_key else KEY)

        def make() -> openai.AsyncOpenAI:
            hooks = watching(self.who, self.max_retries)
            return openai.AsyncOpenAI(
                api_key=key or _NO_KEY,
                base_url=elsewhere or None,
                max_retries=self.max_retries,
                timeout=openai.Timeout(self.timeout_sec, connect=min(self.timeout_sec, CONNECT_SEC)),
                http_client=openai.DefaultAsyncHttpxClient(event_hooks=hooks),
            )

        try:
            return Connection(make, openai.AsyncOpenAI.close)
        except (openai.OpenAIError, *UNUSABLE) as error:
            raise BadSetting(f"OpenAI's library cannot be set up: {error}") from error

    @property
    def has_key(self) -> bool:
        return bool(self._key)

    @property
    def who(self) -> str:
        """How a fault calls it."""
        elsewhere = urlsplit(self._elsewhere or "")
        if not elsewhere.hostname:
            return "OpenAI"
        # without the user and password that an address may carry
        return f"the model server at {elsewhere.netloc.rpartition('@')[2]}"

    @property
    def _key(self) -> str | None:
        return self.api_key or os.environ.get(KEY)

    @property
    def _elsewhere(self) -> str | None:
        return self.base_url or os.environ.get(ADDRESS)


class AnswerFailed(Exception):
    """The stream itself says that there will be no answer."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.words = words


class Asking(Struct, frozen=True):
    """Who is asked for which model: the facts of every fault."""

    who: str
    model: str
    has_key: bool = True

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Within this an answer has begun, with or without a word: a connection that is lost cuts it."""
        try:
            yield
        except openai.APIConnectionError as error:
            raise broke_off(self.who, _cause(error)) from error

    async def in_our_words(
        self, events: AsyncGenerator[ModelEvent, None]
    ) -> AsyncGenerator[ModelEvent, None]:
        """The same events; what the library raises in between becomes a `ModelFault`."""
        try:
            async with aclosing(events):
                async for event in events:
                    yield event
        except openai.APIConnectionError as error:
            raise self._fault("", _cause(error), None) from error
        except openai.APIResponseValidationError as error:
            # a 200 with something else in it than a stream
            raise no_answer_of_its_api(self.who) from error
        except openai.APIError as error:
            raise self._fault_of(error) from error
        except openai.OpenAIError as error:
            # no answer at all: the library could not make up a credential
            raise self._fault("", str(error), 401) from error
        except AnswerFailed as error:
            raise self._fault(error.code, error.words, _STATUS_OF.get(error.code, 500)) from error

    def _fault_of(self, error: openai.APIError) -> ModelFault:
        code = error.code or error.type or ""
        if not isinstance(error, openai.APIStatusError):
            return self._fault(code, _words(error) or error.message, _STATUS_OF.get(code, 500))
        words = _words(error) or error.response.text
        return self._fault(code, words, error.status_code, wait_asked_for(error.response.headers))

    def _fault(self, code: str, words: str, status: int | None, wait_sec: float | None = None) -> ModelFault:
        return fault_of(
            Trouble(
                provider=self.who,
                model=self.model,
                key_setting=KEY,
                status=status,
                words=words,
                code=str(code),
                wait_sec=wait_sec,
                has_key=self.has_key,
            )
        )


def _cause(error: openai.APIConnectionError) -> str:
    return str(error.__cause__ or error.message)


def _words(error: openai.APIError) -> str:
    """What the server says of it: compatible ones say it in a form of their own."""
    body = error.body
    if isinstance(body, dict):
        body = next((body[name] for name in ("message", "detail", "error") if body.get(name)), None)
    return body if isinstance(body, str) else ""


# in the middle of a stream there is a code and no status any more
_STATUS_OF = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
}
