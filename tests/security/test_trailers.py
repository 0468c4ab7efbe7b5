"""What a client sends after the last chunk of a body is not a header, with and without a proxy in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress

import pytest

from tests.process import farhand_process
from tests.requirement import requirement
from tests.security.proxied import haproxy, nginx

BODY = json.dumps(
    {"id": "t1", "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]}
).encode()
JSON = {"content-type": "application/json"}
ADA = {"x-test-login": "ada"}
"""How the proxies are told who signs in."""
SELF = {"x-forwarded-user": "ada"}
"""What they make of it: without one, the test says it itself."""

PROXIES: dict[str, Callable[[int], AbstractAsyncContextManager[int]]] = {
    "none": nullcontext,
    "haproxy": haproxy,
    "nginx": nginx,
}


class Entry:
    """The port where clients knock, and how somebody is signed in there."""

    def __init__(self, port: int, ada: dict[str, str]) -> None:
        self.port = port
        self.ada = ada

    async def post(
        self,
        path: str,
        headers: dict[str, str],
        trailers: dict[str, str],
        *,
        in_pieces: bool = False,
        body: bytes = BODY,
    ) -> bytes:
        """The status line of the answer. The body is sent in chunks, with trailers at its end."""
        head = {"host": f"127.0.0.1:{self.port}", "transfer-encoding": "chunked", "connection": "close"}
        pieces = [
            f"POST {path} HTTP/1.1\r\n{_lines({**head, **headers})}\r\n".encode(),
            b"%x\r\n%b\r\n" % (len(body), body),
            f"0\r\n{_lines(trailers)}\r\n".encode(),
        ]
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        answer = b""
        # a refusal may come, and close the connection, before the body was sent
        with suppress(ConnectionResetError, BrokenPipeError):
            for piece in pieces if in_pieces else [b"".join(pieces)]:
                writer.write(piece)
                await writer.drain()
                # the server may have read the head, and be waiting for the rest
                await asyncio.sleep(0.2 if in_pieces else 0)
        with suppress(ConnectionResetError, BrokenPipeError):
            answer = await asyncio.wait_for(reader.readline(), 30)
        writer.close()
        return answer

    async def chats_of(self, login: dict[str, str]) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = _lines({"host": f"127.0.0.1:{self.port}", "connection": "close", **login})
        writer.write(f"GET /api/chat HTTP/1.1\r\n{head}\r\n".encode())
        answer = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200"), answer
        return answer.count(b'"t1"')


def _lines(headers: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


@pytest.fixture(params=PROXIES)
async def entry(request: pytest.FixtureRequest) -> AsyncIterator[Entry]:
    async with farhand_process("tests.security.proxied:app") as server:
        behind = nullcontext(server.port) if request.param == "none" else PROXIES[request.param](server.port)
        async with behind as port:
            yield Entry(port, SELF if request.param == "none" else ADA)


@requirement("serve:trailers")
async def test_nobody_is_signed_in_by_a_trailer(entry: Entry) -> None:
    trailers, headers = {"X-Forwarded-User": "admin"}, {**JSON, **entry.ada}
    for in_pieces in (False, True):
        refused = await entry.post("/api/chat", JSON, trailers, in_pieces=in_pieces)
        assert refused.startswith(b"HTTP/1.1 401") or not refused, refused
        # who is named in the head stays who it is, also while the body is being read
        answered = await entry.post("/api/chat", headers, trailers, in_pieces=in_pieces)
        assert answered.startswith(b"HTTP/1.1 200"), answered
    assert await entry.chats_of(entry.ada) == 1
    assert await entry.chats_of(dict.fromkeys(entry.ada, "admin")) == 0


@requirement("serve:trailers")
async def test_a_trailer_is_no_origin_no_host_no_credential_and_no_flag(entry: Entry) -> None:
    others = {"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Authorization": "Bearer x"}
    for trailers in others:
        answered = await entry.post("/api/chat", {**JSON, **entry.ada}, trailers)
        assert answered.startswith(b"HTTP/1.1 200"), answered
    headers = {"content-type": "text/plain", **entry.ada}
    refused = await entry.post("/api/files", headers, {"X-Farhand": "1"}, body=b"text")
    assert refused.startswith(b"HTTP/1.1 403"), refused
    taken = await entry.post("/api/files", {**headers, "X-Farhand": "1"}, {}, body=b"text")
    assert taken.startswith(b"HTTP/1.1 201"), taken
