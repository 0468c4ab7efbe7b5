"""The official library of OpenAI, and the only module that imports it.

Owns keys, addresses and what the library raises. Which API is spoken is the business of its neighbours.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from urllib.parse import urlsplit

from msgspec import Struct

from farhand.errors import BadSetting, ModelFault
from farhand.models.base import ModelEvent
from farhand.models.connection import Connection
from farhand.models.delays import watch
from farhand.models.faults import Trouble, broke_off, fault_of

try:
    import openai
except ModuleNotFoundError as error:
    raise BadSetting(
        "Models of OpenAI and compatible servers need a library that is not installed.",
        hint="Install it: pip install 'farhand[openai]'.",
    ) from error

KEY = "OPENAI_API_KEY"
ADDRESS = "OPENAI_BASE_URL"
# servers of one's own rarely ask for a key, and the library always wants one
_NO_KEY = "none"
MAX_RETRIES = openai.DEFAULT_MAX_RETRIES


class Server(Struct, frozen=True):
    """Where the model is, and with which key; what is None comes from the environment."""

    api_key: str | None = None
    base_url: str | None = None
    max_retries: int = MAX_RETRIES

    def connection(self) -> Connection[openai.AsyncOpenAI]:
        key = self.api_key or os.environ.get(KEY)
        elsewhere = self.base_url or os.environ.get(ADDRESS)
        if not key and not elsewhere:
            raise BadSetting(
                "OpenAI needs a key.", hint=f"Set {KEY}; for a server of your own, set {ADDRESS} or base_url."
            )

        def make() -> openai.AsyncOpenAI:
            hooks = {"response": [watch(self.who, self.max_retries)]}
            return openai.AsyncOpenAI(
                api_key=key or _NO_KEY,
                base_url=elsewhere or None,
                max_retries=self.max_retries,
                http_client=openai.DefaultAsyncHttpxClient(event_hooks=hooks),
            )

        return Connection(make, openai.AsyncOpenAI.close)

    @property
    def who(self) -> str:
        """How a fault calls it."""
        elsewhere = urlsplit(self.base_url or os.environ.get(ADDRESS) or "")
        if not elsewhere.hostname:
            return "OpenAI"
        # without the user and password that an address may carry
        return f"The model server at {elsewhere.netloc.rpartition('@')[2]}"


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

    async def in_our_words(
        self, events: AsyncGenerator[ModelEvent, None]
    ) -> AsyncGenerator[ModelEvent, None]:
        """The same events; what the library raises in between becomes a `ModelFault`."""
        begun = False
        try:
            async with aclosing(events):
                async for event in events:
                    begun = True
                    yield event
        except openai.APIConnectionError as error:
            why = str(error.__cause__ or error.message)
            raise broke_off(self.who, why) if begun else self._fault("", why, None) from error
        except openai.APIError as error:
            raise self._fault_of(error) from error
        except openai.OpenAIError as error:
            # no answer at all: the library could not make up a credential
            raise self._fault("", str(error), 401) from error
        except AnswerFailed as error:
            raise self._fault(error.code, error.words, _STATUS_OF.get(error.code, 500)) from error

    def _fault_of(self, error: openai.APIError) -> ModelFault:
        words = error.body.get("message") if isinstance(error.body, dict) else None
        code = error.code or error.type or ""
        status = error.status_code if isinstance(error, openai.APIStatusError) else _STATUS_OF.get(code, 500)
        return self._fault(code, str(words or error.message), status)

    def _fault(self, code: str, words: str, status: int | None) -> ModelFault:
        return fault_of(
            Trouble(
                provider=self.who, model=self.model, key_setting=KEY, status=status, words=words, code=code
            )
        )


# in the middle of a stream there is a code and no status any more
_STATUS_OF = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
}
