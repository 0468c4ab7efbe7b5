"""`FakeAnthropic`: give its `url` to `Anthropic(..., base_url=fake.url)` or to Anthropic's own library."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.fakes.anthropic.read import prompt_of
from tests.fakes.anthropic.rules import check
from tests.fakes.anthropic.write import MessageWriter
from tests.fakes.provider import FakeProvider, FakeRequest, Json, Refusal

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class FakeAnthropic(FakeProvider):
    """Answers as its script says; `Stop("pause")` pauses the turn, and it wants that turn back as it was.

    `Think("", echo=block)` says a block of the API's own, such as a `server_tool_use`.
    """

    def routes(self) -> list[Route]:
        self._paused: list[list[Json]] = []
        return [self.route("/v1/messages", self._answer)]

    def key_of(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("x-api-key") or headers.get("authorization")

    def error_body(self, refusal: Refusal) -> Json:
        kind = _TYPES.get(refusal.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": refusal.message}}

    async def _answer(self, seen: FakeRequest, request: Request) -> Response:
        check(seen.body, self._paused)
        return await self.stream(prompt_of(seen.body), MessageWriter(seen.body, self._paused))
