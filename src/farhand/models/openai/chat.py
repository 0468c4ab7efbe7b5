"""`OpenAIChat`: a model over Chat Completions: OpenAI's, or any compatible server's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farhand.models.calling import Names
from farhand.models.openai.chat_answer import Answer
from farhand.models.openai.chat_messages import LONGEST_ID, messages_of, tools_of
from farhand.models.openai.chat_stream import ChatStream
from farhand.models.openai.client import create_chat
from farhand.models.openai.model import OpenAIModel, Request, Stream
from farhand.models.telling import Telling

if TYPE_CHECKING:
    import openai


class OpenAIChat(OpenAIModel):
    """A model of Ollama, vLLM, llama.cpp, a gateway, or OpenAI itself.

    Args:
        model: As the server calls it, such as `llama3`.
        api_key: Without it the environment's, `OPENAI_API_KEY`; a server of one's own needs none.
        base_url: Where the server is, such as `http://127.0.0.1:11434/v1`; without it `OPENAI_BASE_URL`.
        max_retries: How often the library asks again after 429, 5xx or a lost connection.
        timeout_sec: How long it may be silent, before its first word and between two of them.
        options: More members of the request, as the server spells them, also those that the library does not
            know: `temperature`, `max_tokens`, `top_k`, `chat_template_kwargs`.
    """

    provider = "openai-chat"
    example = "openai-chat:llama3"
    longest_id = LONGEST_ID
    _create = staticmethod(create_chat)
    _reserved = frozenset({"model", "messages", "tools", "functions", "function_call", "stream", "timeout"})

    def _hearing(self, names: Names) -> Answer:
        return Answer(names, self._model)

    def _request(self, telling: Telling) -> Request:
        request = {
            "model": self._model,
            "stream_options": {"include_usage": True},
            **self._options,
            "messages": messages_of(telling, self._model),
        }
        tools = tools_of(telling)
        return {**request, "tools": tools} if tools else request

    async def _send(self, client: openai.AsyncOpenAI, request: Request) -> Stream:
        return ChatStream(await client.chat.completions.create(**request, stream=True))
