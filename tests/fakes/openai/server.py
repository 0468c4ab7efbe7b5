"""`FakeOpenAI`: give its `url` to `OpenAI` or `OpenAIChat` as `base_url`, or to OpenAI's own library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from farhand.models.scripted.model import Script, Step
from tests.fakes.openai.chat_read import prompt_of_chat
from tests.fakes.openai.chat_rules import check_chat, check_thoughts
from tests.fakes.openai.chat_write import ChunkWriter
from tests.fakes.openai.responses_read import prompt_of_response
from tests.fakes.openai.responses_rules import check_response
from tests.fakes.openai.responses_write import ResponseWriter
from tests.fakes.provider import FakeProvider, FakeRequest, Json, Refusal

_TYPES = {429: "rate_limit_error", 500: "server_error", 503: "server_error"}


class FakeOpenAI(FakeProvider):
    """Answers as its script says, on both APIs. An `Ask` with the id `""` is sent without one in a chat.

    Args:
        script: As for `ScriptedModel`.
        key: The only key that is good; without it any is.
        reasoning: The member of a chat's message that holds what the model thought; it is wanted back with
            calls, unchanged, as servers of models that think want it. Without it nobody asks for it.
    """

    prefix = "/v1"

    def __init__(
        self,
        script: Script | Sequence[Step | Script],
        *,
        key: str | None = None,
        reasoning: Literal["reasoning_content", "reasoning"] | None = None,
    ) -> None:
        super().__init__(script, key=key)
        self._reasons: dict[str, str] = {}
        self._reasoning = reasoning
        self._thoughts: set[str] = set()

    def routes(self) -> list[Route]:
        return [
            self.route("/responses", self._answer_response),
            self.route("/chat/completions", self._answer_chat),
        ]

    def key_of(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("authorization", "").removeprefix("Bearer ").strip() or None

    def error_body(self, refusal: Refusal) -> Json:
        return {
            "error": {
                "message": refusal.message,
                "type": _TYPES.get(refusal.status, "invalid_request_error"),
                "param": refusal.param,
                "code": refusal.code,
            }
        }

    async def _answer_response(self, seen: FakeRequest, request: Request) -> Response:
        check_response(seen.body, self._reasons)
        return await self.stream(prompt_of_response(seen.body), ResponseWriter(seen.body, self._reasons))

    async def _answer_chat(self, seen: FakeRequest, request: Request) -> Response:
        check_chat(seen.body)
        if self._reasoning is not None:
            check_thoughts(seen.body, self._reasoning, self._thoughts)
        writer = ChunkWriter(seen.body, self._reasoning or "reasoning_content", self._thoughts)
        return await self.stream(prompt_of_chat(seen.body), writer)
