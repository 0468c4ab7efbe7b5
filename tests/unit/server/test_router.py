"""How a request finds its endpoint, and what happens to its headers."""

from __future__ import annotations

from starlette.types import ASGIApp

from farhand.agent.branding import Branding
from farhand.core.principal import Principal
from farhand.core.settings import Settings
from farhand.errors import FarhandError
from farhand.faces.base import Face, Request, Route
from farhand.server.app_state import AppState
from farhand.server.auth.authenticator import Authenticator
from farhand.server.notices import Notices
from farhand.server.pages import PageRoutes
from farhand.server.router import build_router
from farhand.wire.http import Header
from tests.unit.server.asgi_requests import ask, visit


async def _echo(request: Request) -> None:
    await request.reply(200, request.header(b"x-name") or b"")


async def _name(request: Request) -> None:
    await request.reply(200, request.parameter("name").encode())


def _explain(error: FarhandError, status: int) -> bytes:
    return error.code.encode()


def router(face: Face) -> ASGIApp:
    auth = Authenticator(authenticate=lambda _: Principal("acme", "ann"))
    notices = Notices(Branding(), has_chat=True, is_local=False)
    return build_router([face], PageRoutes([], auth, notices), auth, AppState(Settings()))


ROUTES = (
    Route("GET", "/echo", _echo, scope="chat"),
    Route("GET", "/echo/{name}", _name, scope="chat"),
    Route("GET", "/secret", _echo, scope="admin"),
)


async def test_an_endpoint_sees_header_values_without_blanks_around_them() -> None:
    reply = await ask(router(Face("a", ROUTES, _explain)), visit({"x-name": " \tann b \t"}, path="/echo"))
    assert reply.text == "ann b"


async def test_paths_with_parameters_unknown_paths_and_other_methods_are_found_too() -> None:
    app = router(Face("a", ROUTES, _explain))
    assert (await ask(app, visit(path="/echo/ann"))).text == "ann"
    assert (await ask(app, visit(path="/echo/a/b"))).text == "unknown"
    refused = await ask(app, visit(path="/echo", method="PUT"))
    assert (refused.status, refused.headers["allow"]) == (405, "GET")


async def test_a_face_adds_headers_to_a_refusal_and_replaces_those_of_the_server() -> None:
    def headers(error: FarhandError, scope: object) -> tuple[Header, ...]:
        if error.code == "wrong_method":
            return ((b"allow", b"GET, HEAD"), (b"x-why", error.code.encode()))
        return ((b"x-why", error.code.encode()),)

    app = router(Face("a", ROUTES, _explain, refusal_headers=headers))
    refused = await ask(app, visit(path="/secret"))
    assert (refused.status, refused.headers["x-why"]) == (403, "forbidden")
    refused = await ask(app, visit(path="/echo", method="PUT"))
    assert [each for each in refused.messages[0]["headers"] if each[0] == b"allow"] == [
        (b"allow", b"GET, HEAD")
    ]
    assert refused.headers["x-why"] == "wrong_method"
