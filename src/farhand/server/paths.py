"""Finds the endpoint of a request. Owns the short way for paths that are known letter by letter.

Most requests name one of those, and matching a pattern for each route before it would cost more than the
endpoint. Must not know what is served.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send


def by_path(routes: Sequence[BaseRoute], router: ASGIApp) -> ASGIApp:
    """The router with a look at its plain paths first. What it would not find there is left to it."""
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
