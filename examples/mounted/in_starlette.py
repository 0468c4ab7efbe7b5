"""In Starlette, where browsers carry the host's session cookie: the hook reads the host's session."""

from __future__ import annotations

import secrets

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from examples.mounted.assistant import agent
from farhand import Principal, create_app

PASSWORDS = {"ada": "enchantress", "bob": "builder"}


async def login(request: Request) -> JSONResponse:
    said = await request.json()
    if PASSWORDS.get(said.get("user")) != said.get("password"):
        return JSONResponse({"error": "wrong"}, status_code=401)
    request.session["user"] = said["user"]
    return JSONResponse({"user": said["user"]})


async def logout(request: Request) -> JSONResponse:
    request.session.clear()
    return JSONResponse({})


def authenticate(request: HTTPConnection) -> Principal | None:
    """The host's middleware stands before everything that is mounted, so its session is here, too."""
    user = request.session.get("user")
    return Principal(tenant="acme", subject=user) if user else None


# the name that browsers reach the host by; any other is refused
hands = create_app(agent(), store="memory:", authenticate=authenticate, allow_hosts=["assistant.example"])
app = Starlette(
    routes=[
        Route("/login", login, methods=["POST"]),
        Route("/logout", logout, methods=["POST"]),
        Mount("/ai", hands),
    ],
    middleware=[Middleware(SessionMiddleware, secret_key=secrets.token_urlsafe(32), same_site="strict")],
    lifespan=hands.lifespan,
)
