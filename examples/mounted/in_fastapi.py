"""In FastAPI, where programs send a bearer token: the host and the hook look up its user in the same way."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import HTTPConnection

from examples.mounted.assistant import agent
from farhand import Principal, create_app

USERS = {"ada-0123456789abcdef": "ada", "bob-0123456789abcdef": "bob"}
"""A real host would look into its database."""

bearer = HTTPBearer(auto_error=False)


def user_of(token: str | None) -> str:
    user = USERS.get(token or "")
    if user is None:
        raise HTTPException(401)
    return user


def current_user(sent: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> str:
    """The host's own dependency."""
    return user_of(sent.credentials if sent else None)


async def authenticate(request: HTTPConnection) -> Principal | None:
    """The same for everything that farhand serves: HTTP, streams, WebSockets. A 401 that it raises is
    sent."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    user = user_of(token if scheme.lower() == "bearer" else None)
    return Principal(tenant="acme", subject=user)


hands = create_app(agent(), store="memory:", authenticate=authenticate)
# a mounted app does not get the host's start and stop events, so the host runs its lifespan
app = FastAPI(lifespan=hands.lifespan)


@app.get("/me")
def me(user: Annotated[str, Depends(current_user)]) -> dict[str, str]:
    return {"user": user}


app.mount("/assistant", hands)
