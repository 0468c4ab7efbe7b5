"""In Starlette, where browsers send the host's session cookie: the hook reads the host's session."""

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
    form = await request.json()
    if PASSWORDS.get(form.get("user")) != form.get("password"):
        return JSONResponse({"error": "wrong user or password"}, status_code=401)
    request.session["user"] = form["user"]
    return JSONResponse({"user": form["user"]})


async def logout(request: Request) -> JSONResponse:
    request.session.clear()
    return JSONResponse({})


def authenticate(request: HTTPConnection) -> Principal | None:
    """The host's middleware also runs for mounted apps, so its session is available here."""
    user = request.session.get("user")
    return Principal(tenant="acme", subject=user) if user else None


# the host name that browsers use; any other is refused
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
