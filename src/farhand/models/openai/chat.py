"""`OpenAIChat`: a model over Chat Completions: OpenAI's, or any compatible server's."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from farhand.models.base import ModelEvent, Prompt
from farhand.models.faults import broke_off
from farhand.models.openai.chat_answer import Answer
from farhand.models.openai.chat_messages import LONGEST_ID, messages_of, tools_of
from farhand.models.openai.client import MAX_RETRIES, Asking, Server
from farhand.models.telling import Telling


class OpenAIChat:
    """A model of Ollama, vLLM, llama.cpp, a gateway, or OpenAI itself.

    Args:
        model: As the server calls it, such as `llama3`.
        api_key: Without it the environment's, `OPENAI_API_KEY`; a server of one's own needs none.
        base_url: Where the server is, such as `http://127.0.0.1:11434/v1`; without it `OPENAI_BASE_URL`.
        max_retries: How often the library asks again after 429, 5xx or a lost connection.
        options: More members of the request, as the server spells them: `temperature`, `max_tokens`.
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
        self.name = f"openai-chat:{model}"
        self._model = model
        self._options = dict(options or {})
        server = Server(api_key, base_url, max_retries)
        self._connection = server.connection()
        self._asking = Asking(server.who, model)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        telling = Telling(prompt, longest_id=LONGEST_ID)
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
        async with await client.chat.completions.create(**self._request(telling), stream=True) as chunks:
            async for chunk in chunks:
                for said in answer.hear(chunk):
                    yield said

    # Any: the library has a TypedDict for each shape of the API; here a request is the JSON that is sent
    def _request(self, telling: Telling) -> dict[str, Any]:
        request = {
            "model": self._model,
            "stream_options": {"include_usage": True},
            **self._options,
            "messages": messages_of(telling),
        }
        tools = tools_of(telling)
        return {**request, "tools": tools} if tools else request
