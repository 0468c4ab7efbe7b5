"""The headers for pages of other origins."""

from __future__ import annotations

import json

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from farhand.errors import BadSetting
from farhand.server.auth.authenticator import Authenticator
from tests.requirement import requirement
from tests.unit.server.asgi_requests import Reply, ask, visit

pytestmark = requirement("auth:origin")
LISTED = "http://localhost:5173"
DEFAULT = {
    "authorization",
    "content-type",
    "last-event-id",
    "x-api-key",
    "x-farhand",
    "x-file-name",
    "x-requested-with",
}
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.fixture
def app() -> ASGIApp:
    return Authenticator(allow_origins=[LISTED]).wrap(hello)


async def test_an_allowed_origin_may_send_and_read(app: ASGIApp) -> None:
    reply = await ask(app, visit({"origin": LISTED}, method="POST"))
    assert reply.headers["access-control-allow-origin"] == LISTED
    assert reply.headers["access-control-allow-credentials"] == "true"
    assert "retry-after" in reply.headers["access-control-expose-headers"]
    assert (reply.headers["vary"], reply.headers["x-own"], reply.text) == ("origin", "1", "hello")


@pytest.mark.parametrize(
    "headers", [{}, {"origin": "https://evil.example"}, {"origin": "http://127.0.0.1:8787"}]
)
async def test_other_origins_get_no_cors_headers(headers: dict[str, str], app: ASGIApp) -> None:
    reply = await ask(app, visit(headers, method="POST"))
    assert reply.headers == {"x-own": "1"}


async def test_a_preflight_of_an_allowed_origin_is_answered(app: ASGIApp) -> None:
    reply = await ask(app, visit({"origin": LISTED, **PREFLIGHT}, method="OPTIONS"))
    assert (reply.status, reply.text) == (204, "")
    assert "POST" in reply.headers["access-control-allow-methods"]
    assert headers_of(reply) == DEFAULT
    assert reply.headers["access-control-allow-origin"] == LISTED


async def test_allowed_headers_are_added_to_the_default_ones() -> None:
    auth = Authenticator(allow_origins=[LISTED], allow_headers=["X-Tenant"])
    app = auth.wrap(hello)
    auth.allow(headers=[" x-trace_id ", "X-API-Key"])
    reply = await ask(app, visit({"origin": LISTED, **PREFLIGHT}, method="OPTIONS"))
    assert headers_of(reply) == DEFAULT | {"x-tenant", "x-trace_id"}


@pytest.mark.parametrize("name", ["*", "", "x tenant", "x-tenant:", "x-tenant\r\nset-cookie", "ä", "x" * 129])
def test_an_invalid_header_name_is_an_error_at_start(name: str) -> None:
    with pytest.raises(BadSetting, match=r"is not a header name\. Name each one exactly"):
        Authenticator(allow_headers=[name])


def headers_of(reply: Reply) -> set[str]:
    return set(reply.headers["access-control-allow-headers"].split(", "))


@pytest.mark.parametrize("listed", [[], [LISTED]])
async def test_the_preflight_of_another_origin_is_refused_and_names_the_flag(listed: list[str]) -> None:
    app = Authenticator(allow_origins=listed).wrap(hello)
    reply = await ask(app, visit({"origin": "https://evil.example", **PREFLIGHT}, method="OPTIONS"))
    assert reply.status == 403
    assert "--allow-origin https://evil.example" in json.loads(reply.text)["error"]["message"]
    assert "access-control-allow-origin" not in reply.headers


async def test_an_allowed_origin_on_a_foreign_host_is_refused(app: ASGIApp) -> None:
    scope = visit({"origin": LISTED, **PREFLIGHT}, method="OPTIONS", host="evil.example")
    assert (await ask(app, scope)).status == 403


async def test_other_requests_pass_through(app: ASGIApp) -> None:
    for scope in (
        visit({"origin": LISTED}, method="OPTIONS"),
        visit(PREFLIGHT, method="OPTIONS"),
        visit(kind="websocket"),
    ):
        assert (await ask(app, scope)).text == "hello"
