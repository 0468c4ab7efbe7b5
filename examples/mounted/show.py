"""Signs in at both hosts, chats with the mounted assistant, and checks the results.

Run it with `python -m examples.mounted.show`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from starlette.applications import Starlette

from examples.mounted import in_fastapi, in_starlette

ADA, BOB = ({"authorization": f"Bearer {token}"} for token in in_fastapi.USERS)
HOST = "http://assistant.example"
PAGE = {"origin": HOST}
"""A request with a cookie must name its origin, as browsers do automatically."""


async def main() -> None:
    async with _host(in_fastapi.app, "http://localhost") as http:
        await _show_fastapi(http)
    async with _host(in_starlette.app, HOST) as http:
        await _show_starlette(http)


async def _show_fastapi(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/me")).status_code == 401
    stranger = await http.post("/assistant/api/chat", json=_chat("hello"))
    _print("FastAPI, a stranger", stranger.status_code)
    assert stranger.status_code == 401

    answer = await http.post("/assistant/api/chat", json=_chat("hello"), headers=ADA)
    _print("FastAPI, ada", _text(answer))
    assert _text(answer) == "You said: hello"

    assert (await http.get("/assistant/api/chat/first", headers=ADA)).status_code == 200
    theirs = await http.get("/assistant/api/chat/first", headers=BOB)
    _print("FastAPI, bob looks for ada's chat", theirs.status_code)
    assert theirs.status_code == 404

    # this host grants nobody the scope to register tools
    refused = await http.post(
        "/assistant/client-tools/register", json={"clientID": "c", "tools": []}, headers=ADA
    )
    _print("FastAPI, ada without the scope", refused.status_code)
    assert refused.status_code == 403


async def _show_starlette(http: httpx2.AsyncClient) -> None:
    assert (await http.post("/ai/api/chat", json=_chat("hello"), headers=PAGE)).status_code == 401
    assert (await http.post("/login", json={"user": "ada", "password": "enchantress"})).status_code == 200

    answer = await http.post("/ai/api/chat", json=_chat("hello"), headers=PAGE)
    _print("Starlette, ada", _text(answer))
    assert _text(answer) == "You said: hello"

    foreign = await http.post("/ai/api/chat", json=_chat("hello"), headers={"origin": "https://evil.example"})
    _print("Starlette, a page from elsewhere with ada's cookie", foreign.status_code)
    assert foreign.status_code == 403

    await http.post("/logout")
    gone = await http.get("/ai/api/chat", headers=PAGE)
    _print("Starlette, after the logout", gone.status_code)
    assert gone.status_code == 401


@asynccontextmanager
async def _host(app: Starlette, url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """The host, started like its server would start it."""
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url=url) as http,
    ):
        yield http


def _chat(text: str) -> dict[str, object]:
    return {
        "id": "first",
        "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}],
    }


def _text(answer: httpx2.Response) -> str:
    pieces = [each.partition('"delta":"')[2].partition('"}')[0] for each in answer.text.split("\n\n")]
    return "".join(pieces)


def _print(what: str, found: object) -> None:
    sys.stdout.write(f"{what}: {found}\n")


if __name__ == "__main__":
    asyncio.run(main())
