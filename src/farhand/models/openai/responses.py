"""`OpenAI`: a model over the Responses API. Nothing is kept at OpenAI: each request has the whole history."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from farhand.models.base import ModelEvent, Prompt
from farhand.models.faults import broke_off
from farhand.models.openai.client import MAX_RETRIES, Asking, Server
from farhand.models.openai.responses_answer import Answer
from farhand.models.openai.responses_input import input_of, tools_of
from farhand.models.telling import Telling


class OpenAI:
    """GPT and its relatives.

    Args:
        model: Such as `gpt-6-astra`.
        api_key: Without it the environment's, `OPENAI_API_KEY`.
        base_url: Another server that speaks the Responses API; without it `OPENAI_BASE_URL`, if set.
        max_retries: How often the library asks again after 429, 5xx or a lost connection.
        options: More members of the request, as the API spells them: `reasoning`, `max_output_tokens`,
            `tools` of OpenAI's own.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        max_retries: int = MAX_RETRIES,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self.name = f"openai:{model}"
        self._model = model
        self._options = dict(options or {})
        server = Server(api_key, base_url, max_retries)
        self._connection = server.connection()
        self._asking = Asking(server.who, model)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        telling = Telling(prompt)
        answer = Answer(telling.names)
        async with aclosing(self._asking.in_our_words(self._ask(telling, answer))) as events:
            async for event in events:
                yield event
        if answer.stop is None:
            raise broke_off(self._asking.who)
        yield answer.stop

    async def close(self) -> None:
        await self._connection.close()

    async def _ask(self, telling: Telling, answer: Answer) -> AsyncGenerator[ModelEvent, None]:
        client = self._connection.client()
        async with await client.responses.create(**self._request(telling), stream=True) as events:
            async for event in events:
                for said in answer.hear(event):
                    yield said

    # Any: the library has a TypedDict for each shape of the API; here a request is the JSON that is sent
    def _request(self, telling: Telling) -> dict[str, Any]:
        own, given = tools_of(telling), self._options.get("tools")
        tools = [*own, *given] if isinstance(given, list | tuple) else own
        request = {"model": self._model, "store": False, **self._options, "input": input_of(telling)}
        if telling.prompt.instructions:
            request["instructions"] = telling.prompt.instructions
        return {**request, "tools": tools} if tools else request
