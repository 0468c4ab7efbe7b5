"""A server with its own sign-in: the name in a header is accepted as the user."""

from __future__ import annotations

import httpx2
from starlette.requests import HTTPConnection

from farhand.core.principal import SCOPES, Principal
from tests.faces.served import Served


def check(request: HTTPConnection) -> Principal | None:
    """`x-name` says who, `x-may` what, if it is not everything."""
    name, may = request.headers.get("x-name"), request.headers.get("x-may")
    return Principal("house", name, SCOPES if may is None else frozenset(may.split())) if name else None


def person(served: Served, name: str, may: str | None = None) -> httpx2.AsyncClient:
    headers = {"x-name": name} if may is None else {"x-name": name, "x-may": may}
    return httpx2.AsyncClient(base_url=served.url, headers=headers, timeout=None, verify=False)
