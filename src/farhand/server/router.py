"""Finds the endpoint of a request: the faces' routes, then the pages, then the response for unknown paths.

A path without parameters is looked up in a table: most requests name one, and matching a pattern for each
route before it would cost more than the endpoint. Must not know what is served.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from farhand.faces.base import Face
from farhand.server.app_state import AppState
from farhand.server.auth.authenticator import Authenticator
from farhand.server.endpoint import HttpEndpoint, WebSocketEndpoint
from farhand.server.pages import PageRoutes
from farhand.wire.http import trimmed


def build_router(faces: Sequence[Face], pages: PageRoutes, auth: Authenticator, state: AppState) -> ASGIApp:
    routes: list[BaseRoute] = [
        *_socket_routes(faces, auth, state),
        *_http_routes(faces, auth, state),
        *pages.routes,
        *pages.unknown_paths(faces),
    ]
    router = Router(routes, default=pages.unknown_path(), redirect_slashes=False)
    return _trim_headers(auth.wrap(_look_up_first(routes, router)))


def _socket_routes(faces: Sequence[Face], auth: Authenticator, state: AppState) -> list[BaseRoute]:
    return [
        WebSocketRoute(route.path, WebSocketEndpoint(face, route, auth, state))
        for face in faces
        for route in face.sockets
    ]


def _http_routes(faces: Sequence[Face], auth: Authenticator, state: AppState) -> list[BaseRoute]:
    """One route per path: a method that the path does not take is refused in the format of its face."""
    paths: dict[str, HttpEndpoint] = {}
    for face in faces:
        for route in face.routes:
            paths.setdefault(route.path, HttpEndpoint(face, auth, state)).add(route)
    return [Route(path, endpoint) for path, endpoint in paths.items()]


def _look_up_first(routes: Sequence[BaseRoute], router: ASGIApp) -> ASGIApp:
    # a router takes the first route of a path; one with a list of methods is left to judge for itself
    exact: dict[str, ASGIApp] = {}
    for route in routes:
        if isinstance(route, Route) and not route.param_convertors and route.methods is None:
            exact.setdefault(route.path, route.app)

    def find(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        # below a host's mount point a path is more than it seems
        is_plain = scope["type"] == "http" and not scope.get("root_path")
        endpoint = exact.get(scope["path"]) if is_plain else None
        return (endpoint or router)(scope, receive, send)

    return find


def _trim_headers(app: ASGIApp) -> ASGIApp:
    """Outermost, so that nothing reads a header before it."""

    def call(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        # in place, since a stream would keep a copy of its scope for as long as it is open
        scope["headers"] = trimmed(scope["headers"])
        return app(scope, receive, send)

    return call
