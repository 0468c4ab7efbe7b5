"""Sends HTTP requests to a farhand server and retries them. The only module that imports httpx and stamina.

A temporary problem (no connection, a busy or restarting server) is `Unreachable`; a permanent refusal is
`Rejected`. It must not know handlers.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import NoReturn, Self, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from farhand.errors import BadSetting, FarhandError, Rejected, TooLarge, not_installed
from farhand.wire.sse import Event, Parser

try:
    import httpx2
    import stamina
except ModuleNotFoundError as error:
    raise not_installed("Outside programs", "client") from error

# its line for each retry says nothing of the server, and would appear in programs without logging; ours does
logging.getLogger("stamina").addHandler(logging.NullHandler())

ANSWER_WITHIN_SEC = 30.0
STREAM_SILENCE_SEC = 90.0
"""A stream without data for this long is dead: the server sends a ping every 30 s."""


class Unreachable(FarhandError):
    """The server cannot be reached at the moment; retrying may help."""

    code = "unreachable"


# `object`: not every caller checks types
def check_server_address(url: object, token: object) -> None:
    """Raises `BadSetting` for a mistake that no retry would fix."""
    sound = isinstance(url, str) and _is_server_address(url)
    if not sound:
        raise BadSetting(
            f"{url!r} is not the address of a server.", hint="Use one such as http://127.0.0.1:8787."
        )
    if token is None:
        return
    if not isinstance(token, str):
        raise BadSetting(f"token must be a string, not {type(token).__name__}.")
    if not (token.isascii() and token.isprintable() and token == token.strip()):
        raise BadSetting(
            "The token contains characters that are not allowed in a header.",
            hint="Check for a line break or a space at its end.",
        )


def _is_server_address(url: str) -> bool:
    try:
        place = urlsplit(url)
        return place.scheme in {"http", "https"} and bool(place.hostname) and place.port != 0
    except ValueError:
        return False


class ServerConnection:
    """`holder` names this process: another one may have been the same client before."""

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
        """Some tools, or all of them; none if another program has become this client."""
        some = {} if tool_ids is None else {"toolIDs": tool_ids}
        await self._send("DELETE", "/client-tools/unregister", {**self._who, **some})

    async def registered(self) -> list[str]:
        """The full ids of the tools that the server has for this client."""
        path = f"/client-tools/tools/{quote(self._client_id)}"
        listed = msgspec.json.decode(await self._send("GET", path), type=list[dict[str, object]])
        return [str(tool["id"]) for tool in listed]

    async def result(self, body: dict[str, object]) -> None:
        await self._send("POST", "/client-tools/result", body)

    async def progress(self, call_id: str, text: str) -> None:
        """Reports that the client is working on the call. A text restarts the call's timeout."""
        progress = {"requestID": call_id, "text": text, "keepAlive": not text}
        await self._send("POST", "/client-tools/progress", {**self._who, **progress})

    async def upload(self, data: bytes, *, name: str, media_type: str) -> dict[str, object]:
        about = {"x-farhand": "1", "content-type": media_type, "x-file-name": quote(name, safe="")}
        answer = await self._ask("POST", "/api/files", data, about)
        return msgspec.json.decode(answer, type=dict[str, object])

    @asynccontextmanager
    async def requests(self) -> AsyncIterator[AsyncGenerator[Event, None]]:
        """The stream of requests for this client, once the server has opened it."""
        path = f"/client-tools/pending/{quote(self._client_id)}"
        limit = httpx2.Timeout(ANSWER_WITHIN_SEC, read=STREAM_SILENCE_SEC)
        try:
            async with self._http.stream(
                "GET", path, params={"holder": self._holder}, timeout=limit
            ) as response:
                if response.status_code != 200:
                    _refuse(response.status_code, await response.aread())
                yield _events(response)
        except httpx2.TransportError as error:
            raise Unreachable(_why(error)) from error

    async def _send(self, method: str, path: str, body: dict[str, object] | None = None) -> bytes:
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if body is None else {"content-type": "application/json"}
        return await self._ask(method, path, content, headers)

    async def _ask(self, method: str, path: str, content: bytes | None, headers: dict[str, str]) -> bytes:
        try:
            response = await self._http.request(method, path, content=content, headers=headers)
        except httpx2.TransportError as error:
            raise Unreachable(_why(error)) from error
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
        raise Unreachable(_why(error)) from error


def _refuse(status: int, body: bytes) -> NoReturn:
    code, message = _error_in(body)
    if status >= 500 or status in {408, 429}:
        raise Unreachable(f"The server answered {status}: {message}")
    raise Rejected(f"The server refused ({status}): {message}", status=status, answered=code)


def _error_in(body: bytes) -> tuple[str, str]:
    """Code and message of a refusal, from any face of the server."""
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
    return f"The server cannot be reached: {str(error) or type(error).__name__}"


T = TypeVar("T")

FIRST_WAIT_SEC = 0.1
LONGEST_WAIT_SEC = 3.0
"""Shorter than the grace period of a client, 5 s: after an outage it must be back before that is over."""
JITTER_SEC = 0.2


async def retry_until_reached(work: Callable[[], Awaitable[T]], *, within: float | None = None) -> T:
    """The result of `work`, retried while the server is unreachable; `Unreachable` after `within` seconds."""
    async for attempt in stamina.retry_context(
        on=Unreachable,
        attempts=None,
        timeout=within,
        wait_initial=FIRST_WAIT_SEC,
        wait_max=LONGEST_WAIT_SEC,
        wait_jitter=JITTER_SEC,
    ):
        with attempt:
            return await work()
    raise AssertionError("the last attempt returns or raises")
