"""Sends the requests of the providers' libraries through aiohttp, whose parser is written in C.

Owns connections, timeouts and the translation of errors: the libraries know only those of their own HTTP
client, and retry after them. Must not know any provider. The only module that imports aiohttp.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
import httpx2
from aiohttp.http import HttpProcessingError

IDLE_SEC = 5.0
"""How long an unused connection is kept."""
WATCH_SEC = 1.0
"""How often the connection of a response is checked."""
_LONGEST_HEADER = 64 * 1024
_MOST_HEADERS = 1_000
# after a minute of silence a lost peer is noticed within five more
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 60, "TCP_KEEPCNT": 5}


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """For one event loop. Certificates are verified as by the client of the libraries."""

    def __init__(self) -> None:
        self._tls = httpx2.create_ssl_context()
        self._tls.set_alpn_protocols(["http/1.1"])
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._session is None:
            self._session = self._open_session()
        has_body = request.headers.get("content-length", "0") != "0"
        timeout: dict[str, float] = request.extensions["timeout"]
        with _translate_errors():
            # aiohttp has no timeout for a server that stops reading
            async with asyncio.timeout(timeout["connect"] + timeout["write"] + timeout["read"]):
                response = await self._session.request(
                    request.method,
                    # credentials in the address are a header by now, and aiohttp refuses both together
                    str(request.url.copy_with(userinfo=b"")),
                    headers=request.headers.multi_items(),
                    data=request.stream if has_body else None,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(connect=timeout["connect"], sock_read=timeout["read"]),
                )
        return httpx2.Response(response.status, headers=response.raw_headers, stream=_Body(response))

    async def aclose(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            # no limit: how many runs there are is limited elsewhere
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=IDLE_SEC, ssl=self._tls, socket_factory=_open_socket
            ),
            # cookies, compression and these headers are the client's business
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
            max_headers=_MOST_HEADERS,
        )


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._timer = asyncio.get_running_loop().call_later(WATCH_SEC, self._watch)

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        with _translate_errors():
            async for chunk in self._response.content.iter_any():
                yield chunk

    async def aclose(self) -> None:
        self._timer.cancel()
        # also closes the connection, unless the response was read to its end
        self._response.release()

    def _watch(self) -> None:
        """Wakes a reader whose connection is gone: after a garbled chunk, aiohttp lets it wait forever."""
        connection = self._response.connection
        if connection is None:
            # the response is complete
            return
        if connection.transport is None or connection.transport.is_closing():
            self._response.close()
            return
        self._timer = asyncio.get_running_loop().call_later(WATCH_SEC, self._watch)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except aiohttp.SocketTimeoutError as error:
        raise httpx2.ReadTimeout(str(error)) from error
    except aiohttp.ServerTimeoutError as error:
        raise httpx2.ConnectTimeout(str(error)) from error
    except TimeoutError as error:
        raise httpx2.WriteTimeout("The server stopped reading the request.") from error
    except aiohttp.ClientConnectorError as error:
        raise httpx2.ConnectError(str(error)) from error
    except (aiohttp.ClientError, HttpProcessingError) as error:
        raise httpx2.RemoteProtocolError(str(error)) from error


# Any: an address has another shape in each family
def _open_socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, *_ = address
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        # which of them exist depends on the system
        if hasattr(socket, name):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return opened
