"""`OpenAI`: a model over the Responses API. Nothing is kept at OpenAI: each request has the whole history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farhand.models.calling import Names
from farhand.models.openai.client import create_response
from farhand.models.openai.model import OpenAIModel, Request, Stream
from farhand.models.openai.responses_answer import Answer
from farhand.models.openai.responses_input import input_of, tools_of
from farhand.models.telling import Telling

if TYPE_CHECKING:
    import openai


class OpenAI(OpenAIModel):
    """GPT and its relatives.

    Args:
        model: Such as `gpt-6-astra`.
        api_key: Without it the environment's, `OPENAI_API_KEY`.
        base_url: Another server that speaks the Responses API; without it `OPENAI_BASE_URL`, if set.
        max_retries: How often the library asks again after 429, 5xx or a lost connection.
        timeout_sec: How long it may be silent, before its first word and between two of them.
        options: More members of the request, as the server spells them, also those that the library does not
            know: `reasoning`, `max_output_tokens`, `tools` of OpenAI's own.
    """

    provider = "openai"
    example = "openai:gpt-6-astra"
    _create = staticmethod(create_response)
    _reserved = frozenset(
        {
            "model",
            "input",
            "instructions",
            "stream",
            "timeout",
            "background",
            "conversation",
            "previous_response_id",
        }
    )

    def _hearing(self, names: Names) -> Answer:
        return Answer(names)

    def _request(self, telling: Telling) -> Request:
        own, given = tools_of(telling), self._options.get("tools")
        tools = [*own, *given] if isinstance(given, list | tuple) else own
        request = {"model": self._model, "store": False, **self._options, "input": input_of(telling)}
        if telling.prompt.instructions:
            request["instructions"] = telling.prompt.instructions
        return {**request, "tools": tools} if tools else request

    async def _send(self, client: openai.AsyncOpenAI, request: Request) -> Stream:
        return await client.responses.create(**request, stream=True)
