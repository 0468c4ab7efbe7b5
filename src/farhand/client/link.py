"""HTTP to a farhand server: one request, one answer. The only module that knows the HTTP library.

What may get better by itself (no connection, a server that is busy or restarting) is `Away`; what will not is
`Rejected`. Must not know handlers, or how often something is tried.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import NoReturn, Self
from urllib.parse import quote, urlsplit

import msgspec

from farhand.errors import BadSetting, FarhandError, Rejected, TooLarge, not_installed
from farhand.wire.sse import Event, Parser

try:
    import httpx2
except ModuleNotFoundError as error:
    raise not_installed("Outside programs", "client") from error

ANSWER_WITHIN_SEC = 30.0
SILENCE_SEC = 90.0
"""A stream that says nothing for so long is dead: the server sends a ping every 30 s."""


class Away(FarhandError):
    """Not to be reached now; worth another try."""

    code = "away"


def check_address(url: str, token: str | None) -> None:
    """What no amount of trying would mend is said at once."""
    try:
        place = urlsplit(url)
        sound = place.scheme in {"http", "https"} and bool(place.hostname) and place.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise BadSetting(f"'{url}' is not the address of a server.", hint="Write http://127.0.0.1:8787.")
    if token is not None and not (token.isascii() and token.isprintable() and token == token.strip()):
        raise BadSetting("The token has characters that no token has.", hint="Is there a line break in it?")


class Link:
    """`holder` is the name of this very program: another one may have been the same client before it."""

    def __init__(self, url: str, client_id: str, holder: str, *, token: str | None) -> None:
        self._client_id = client_id
        self._holder = holder
        self._who: dict[str, object] = {"clientID": client_id, "holder": holder}
        self._http = httpx2.AsyncClient(
            base_url=url.rstrip("/"),
            headers={"authorization": f"Bearer {token}"} if token else {},
            timeout=httpx2.Timeout(ANSWER_WITHIN_SEC),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def register(self, tools: list[dict[str, object]], grace_sec: float | None) -> None:
        grace = {} if grace_sec is None else {"graceSec": grace_sec}
        await self._send("POST", "/client-tools/register", {**self._who, "tools": tools, **grace})

    async def unregister(self, tool_ids: list[str] | None = None) -> None:
        """Some tools, or all of them; none if another program is this client by now."""
        some = {} if tool_ids is None else {"toolIDs": tool_ids}
        await self._send("DELETE", "/client-tools/unregister", {**self._who, **some})

    async def registered(self) -> list[str]:
        """The full ids of what the server has of this client."""
        path = f"/client-tools/tools/{quote(self._client_id)}"
        listed = msgspec.json.decode(await self._send("GET", path), type=list[dict[str, object]])
        return [str(tool["id"]) for tool in listed]

    async def result(self, body: dict[str, object]) -> None:
        await self._send("POST", "/client-tools/result", body)

    async def progress(self, call_id: str, text: str) -> None:
        """Says that the call is still worked on, and how far it is; without a text its deadline stays."""
        said = {"requestID": call_id, "text": text, "keepAlive": not text}
        await self._send("POST", "/client-tools/progress", {**self._who, **said})

    async def upload(self, data: bytes, *, name: str, media_type: str) -> dict[str, object]:
        about = {"x-farhand": "1", "content-type": media_type, "x-file-name": quote(name, safe="")}
        answer = await self._ask("POST", "/api/files", data, about)
        return msgspec.json.decode(answer, type=dict[str, object])

    @asynccontextmanager
    async def requests(self) -> AsyncIterator[AsyncGenerator[Event, None]]:
        """The stream of this client, once the server has opened it."""
        path = f"/client-tools/pending/{quote(self._client_id)}"
        limit = httpx2.Timeout(ANSWER_WITHIN_SEC, read=SILENCE_SEC)
        try:
            async with self._http.stream(
                "GET", path, params={"holder": self._holder}, timeout=limit
            ) as response:
                if response.status_code != 200:
                    _refuse(response.status_code, await response.aread())
                yield _events(response)
        except httpx2.TransportError as error:
            raise Away(_why(error)) from error

    async def _send(self, method: str, path: str, body: dict[str, object] | None = None) -> bytes:
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if body is None else {"content-type": "application/json"}
        return await self._ask(method, path, content, headers)

    async def _ask(self, method: str, path: str, content: bytes | None, headers: dict[str, str]) -> bytes:
        try:
            response = await self._http.request(method, path, content=content, headers=headers)
        except httpx2.TransportError as error:
            raise Away(_why(error)) from error
        if response.status_code not in (200, 201):
            _refuse(response.status_code, response.content)
        return response.content


async def _events(response: httpx2.Response) -> AsyncGenerator[Event, None]:
    parser = Parser()
    try:
        async for chunk in response.aiter_bytes():
            for event in parser.feed(chunk):
                yield event
    except (httpx2.TransportError, TooLarge) as error:
        raise Away(_why(error)) from error


def _refuse(status: int, body: bytes) -> NoReturn:
    code, message = _said(body)
    if status >= 500 or status in {408, 429}:
        raise Away(f"The server answered {status}: {message}")
    raise Rejected(f"The server refused ({status}): {message}", status=status, answered=code)


def _said(body: bytes) -> tuple[str, str]:
    """Code and message of a refusal, whichever dialect it is in."""
    try:
        read: object = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return "", body[:200].decode(errors="replace")
    fault = read.get("error", read) if isinstance(read, dict) else read
    if not isinstance(fault, dict):
        return "", str(fault)[:200]
    code, message = fault.get("code", fault.get("reason", "")), fault.get("message", fault.get("detail", ""))
    return str(code), str(message)[:500]


def _why(error: Exception) -> str:
    return f"The server can not be reached: {str(error) or type(error).__name__}"
