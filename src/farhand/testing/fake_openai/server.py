"""`FakeOpenAI`: give its `url` to `OpenAI` or `OpenAIChat` as `base_url`, or to OpenAI's own library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from farhand.models.scripted.model import Script
from farhand.models.scripted.step import Step
from farhand.testing.fake_openai.chat_read import prompt_of_chat
from farhand.testing.fake_openai.chat_rules import check_chat
from farhand.testing.fake_openai.chat_write import ChunkWriter
from farhand.testing.fake_openai.responses_read import prompt_of_response
from farhand.testing.fake_openai.responses_rules import check_response
from farhand.testing.fake_openai.responses_write import ResponseWriter
from farhand.testing.fake_provider import FakeProvider, FakeRequest, Json, Refusal

_TYPES = {429: "rate_limit_error", 500: "server_error", 503: "server_error"}


class FakeOpenAI(FakeProvider):
    """Answers as its script says, on both APIs. An `Ask` with the id `""` is sent without one in a chat."""

    prefix = "/v1"

    def __init__(self, script: Script | Sequence[Step | Script], *, key: str | None = None) -> None:
        super().__init__(script, key=key)
        self._reasons: dict[str, str] = {}

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
        return await self.stream(prompt_of_chat(seen.body), ChunkWriter(seen.body))
