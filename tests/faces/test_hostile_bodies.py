"""Every hostile body on every route: a 4xx in the format of its face, never a 5xx, and waiting calls
complete.

The routes are those of the app itself, so a new one can't escape. Where a valid body is known for a route,
the hostile value stands inside it, in a field that nobody reads: what refuses it is the guard, not a field
that is missing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from farhand.core.settings import Limits
from farhand.errors import Malformed
from farhand.faces.base import Face, Route, SocketRoute
from farhand.models.scripted import Ask
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.page import Live, Page
from tests.faces.ui_stream.websocket_client import closed_with, read, wire
from tests.postgres import Cluster
from tests.requirement import requirement

# Any: bodies of any wire
Json = Any
JSON = {"content-type": "application/json"}
NOWHERE = "nowhere"

pytestmark = pytest.mark.slow


@dataclass
class Waiting:
    """A held run whose call is open all the while, and one whose question is."""

    served: Served
    scene: Scene
    live: Live
    call: str
    approval: str


# ---------------------------------------------------------------------------------------------- the bodies


VALID: dict[str, Callable[[Waiting], Json]] = {
    "/api/tools/ack": lambda to: {"toolCallId": to.call, "status": "success", "output": "forged"},
    "/ai/tools/ack": lambda to: {"toolCallId": to.call, "status": "success", "output": "forged"},
    "/api/tools/take": lambda to: {"toolCallId": to.call, "clientId": "tab"},
    "/api/tools/approve": lambda to: {"approvalId": to.approval, "approved": True},
    "/api/chat": lambda to: {
        "id": "other",
        "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}],
    },
    "/api/chat/{thread_id}": lambda to: {"title": "x"},
    "/agent/run": lambda to: {"user_prompt": "hi"},
    "/ag-ui": lambda to: {
        "threadId": "other",
        "runId": "r",
        "messages": [{"id": "m", "role": "user", "content": "hi"}],
    },
    "/copilotkit": lambda to: {"method": "info"},
    "/agent/tool_results": lambda to: {
        "agent_uuid": "held",
        "tool_results": [{"tool_use_id": to.call, "content": "forged"}],
    },
    "/client-tools/register": lambda to: {"clientID": "c", "tools": []},
    "/client-tools/unregister": lambda to: {"clientID": "c"},
    "/client-tools/execute": lambda to: {"toolID": "client_c_t", "input": {}},
    "/client-tools/result": lambda to: {"requestID": to.call, "status": "success", "output": "forged"},
}
"""For every route that takes a body, one that it would take; a route without one gets `{}` for it."""

VALUES = {
    "65 levels of arrays": b"[" * 65 + b"]" * 65,
    "65 levels of objects": b'{"a":' * 65 + b"1" + b"}" * 65,
    "100 000 levels": b"[" * 100_000 + b"]" * 100_000,
    "100 001 values": b"[" + b"0," * 100_000 + b"0]",
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "a number too large": b"1e999",
    "an integer of 65 digits": b"1" * 65,
    "an integer of a million digits": b"-" + b"9" * 1_000_000,
    "a key twice": b'{"a":1,"a":2}',
    "a key twice, once escaped": rb'{"a":1,"\u0061":2}',
    "a lone high surrogate": rb'"\ud800"',
    "a lone low surrogate": rb'"x\udc00"',
    "surrogates in the wrong order": rb'"\udc00\ud800"',
    "bytes that are no UTF-8": b'"\xff"',
    "an overlong encoding": b'"\xc0\xaf"',
    "a surrogate as bytes": b'"\xed\xa0\x80"',
    "a control character": b'"\x00"',
    "a single quote": b"'x'",
    "a comment": b"1 /* x */",
    "a hexadecimal number": b"0x10",
    "a leading zero": b"01",
    "a trailing comma": b"[1,]",
}

FRAMES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda valid: b"",
    "blanks": lambda valid: b" \r\n\t",
    "a byte order mark": lambda valid: b"\xef\xbb\xbf" + valid,
    "garbage after the end": lambda valid: valid + b"x",
    "two values": lambda valid: valid + valid,
    "cut in the middle": lambda valid: valid[: len(valid) // 2],
    "cut before its last byte": lambda valid: valid[:-1],
    "UTF-16": lambda valid: valid.decode().encode("utf-16"),
    "an array": lambda valid: b"[" + valid + b"]",
    "null": lambda valid: b"null",
    "a string": lambda valid: b'"text"',
    "a number": lambda valid: b"1",
    "true": lambda valid: b"true",
    "an empty array": lambda valid: b"[]",
    "a form": lambda valid: b"toolCallId=x&status=success",
}


def with_value(valid: bytes, value: bytes) -> bytes:
    """The valid object with one field more."""
    rest = valid[1:] if valid == b"{}" else b"," + valid[1:]
    return b'{"extra":' + value + rest


# ------------------------------------------------------------------------------------------------ the tests


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
async def test_a_hostile_value_in_a_valid_body_is_refused(waiting: Waiting, value: bytes) -> None:
    for face, route in body_routes(waiting):
        await refused(waiting, face, route, with_value(valid_for(waiting, route), value))
    await completes(waiting)


@pytest.mark.parametrize("made", FRAMES.values(), ids=FRAMES.keys())
async def test_what_is_not_one_json_object_is_refused(
    waiting: Waiting, made: Callable[[bytes], bytes]
) -> None:
    for face, route in body_routes(waiting):
        await refused(waiting, face, route, made(valid_for(waiting, route)))
    await completes(waiting)


@pytest.mark.parametrize("wrong", [None, 1, 1.5, True, "x", [], {}, [[]], {"a": {}}], ids=repr)
async def test_every_field_of_a_wrong_type_is_refused_or_taken_and_never_breaks(
    waiting: Waiting, wrong: object
) -> None:
    for face, route in body_routes(waiting):
        valid = json.loads(valid_for(waiting, route))
        for field in valid:
            # what names the open call is left out: a proper answer to it would not be hostile
            body = {**valid, **dict.fromkeys(IDS & valid.keys(), NOWHERE), field: wrong}
            status, told = await post(waiting, route, json.dumps(body).encode())
            assert status < 500, f"{route.path}: {field} = {wrong!r}: {status} {told!r}"
            if status >= 400:
                speaks(face, status, told)
    await completes(waiting)


@requirement("attack:exhaustion")
async def test_a_body_over_its_limit_is_refused_with_and_without_its_length(waiting: Waiting) -> None:
    for face, route in body_routes(waiting):
        large = with_value(valid_for(waiting, route), b'"' + b"x" * route.limit + b'"')
        for body in (large, pieces(large)):
            status, told = await post(waiting, route, body)
            assert status == 413, f"{route.path}: {status} {told!r}"
            speaks(face, status, told)
    await completes(waiting)


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/jsonx",
        "text/json",
        "",
    ],
)
async def test_another_content_type_is_refused(waiting: Waiting, content_type: str) -> None:
    headers = {"content-type": content_type} if content_type else {}
    for face, route in body_routes(waiting):
        status, told = await post(waiting, route, valid_for(waiting, route), headers)
        assert status == 415, f"{route.path}: {status} {told!r}"
        speaks(face, status, told)
    await completes(waiting)


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip", "x"])
async def test_a_compressed_body_is_refused(waiting: Waiting, encoding: str) -> None:
    headers = {**JSON, "content-encoding": encoding}
    for face, route in body_routes(waiting):
        status, told = await post(waiting, route, valid_for(waiting, route), headers)
        assert status == 415, f"{route.path}: {status} {told!r}"
        assert b"compressed" in told
        speaks(face, status, told)
    upload = {"x-farhand": "1", "content-type": "text/plain", "content-encoding": encoding}
    response = await waiting.served.http.post("/api/files", content=b"x", headers=upload)
    assert (response.status_code, response.json()["error"]["code"]) == (415, "wrong_type")
    await completes(waiting)


async def test_a_body_that_says_that_it_is_not_encoded_is_taken(waiting: Waiting) -> None:
    headers = {"content-encoding": "Identity", "x-farhand": "1", "content-type": "text/plain"}
    assert (await waiting.served.http.post("/api/files", content=b"x", headers=headers)).status_code == 201


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b"\xff", b"x" * 2_000_000], ids=["deep", "no UTF-8", "large"]
)
async def test_a_route_that_takes_no_body_reads_none(waiting: Waiting, body: bytes) -> None:
    for _, route in routes(waiting):
        if not route.limit:
            plain, _ = await post(waiting, route, b"", {})
            status, _ = await post(waiting, route, body)
            assert status == plain, f"{route.method} {route.path}"
            assert status < 500
    await completes(waiting)


@pytest.mark.parametrize(
    "part",
    ["%00", "%ff", "%2e%2e%2f", "%", "%zz", "x" * 8000, "%F0%9F%98%80", "a%20b", "%0d%0aset-cookie:x", "'--"],
    ids=lambda part: part[:20],
)
async def test_a_hostile_address_is_refused_or_not_found(waiting: Waiting, part: str) -> None:
    for face, route in routes(waiting):
        for address in (path_of(route, part), f"{path_of(route)}?after={part}&limit={part}"):
            status, told = await post(waiting, route, b"{}", JSON, address)
            assert status < 500, f"{route.method} {address[:80]}: {status} {told!r}"
            if status >= 400 and status != 404:
                speaks(face, status, told)
    await completes(waiting)


@requirement("attack:hostile-json")
@pytest.mark.parametrize("waiting", ["memory", "sqlite", "postgres"], indirect=True)
async def test_an_id_with_a_letter_that_not_every_store_can_hold_finds_nothing(waiting: Waiting) -> None:
    for face, route in routes(waiting):
        queries = (f"{path_of(route)}?after={each}&limit={each}" for each in ("%00", "9" * 20))
        for address in (path_of(route, "x%00"), *queries):
            status, told = await post(waiting, route, b"{}", JSON, address)
            assert status < 500, f"{route.method} {address}: {status} {told!r}"
        for body in spoiled(json.loads(for_nobody(waiting, route))) if route.limit else ():
            status, told = await post(waiting, route, json.dumps(body).encode())
            assert status < 500, f"{route.path}: {body}: {status} {told!r}"
            if status >= 400:
                speaks(face, status, told)
    nothing = {"toolCallId": "call_\0", "status": "success", "output": 1}
    assert (await waiting.served.http.post("/api/tools/ack", json=nothing)).status_code == 404
    assert (await waiting.served.http.get("/api/chat/%00")).status_code == 404
    assert (await waiting.served.http.get("/api/chat/%00/stream")).status_code == 204
    await completes(waiting)


@requirement("attack:hostile-json")
@pytest.mark.parametrize("waiting", ["memory", "sqlite", "postgres"], indirect=True)
async def test_such_an_id_in_a_frame_finds_nothing_and_the_socket_continues(waiting: Waiting) -> None:
    async with wire(waiting.served, "/api/chat/ws") as socket:
        await socket.send(json.dumps({"type": "resume", "requestId": "r", "id": "\0"}))
        assert json.loads(await read(socket)) == {"type": "no-active", "requestId": "r"}
    async with wire(waiting.served, "/api/chat/live") as socket:
        told = []
        for call in ("call_0", "\0"):
            await socket.send(json.dumps({"type": "tool_result", "toolCallId": call, "result": 1}))
            told.append([await read(socket), await read(socket)])
        assert "no such call" in told[0][0]
        assert told[0] == told[1]
    await completes(waiting)


@pytest.mark.parametrize(
    "method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "QUERY"]
)
async def test_a_method_that_a_path_does_not_take_is_refused(waiting: Waiting, method: str) -> None:
    taken: dict[str, set[str]] = {}
    for _, route in routes(waiting):
        taken.setdefault(route.path, set()).add(route.method)
    for path, methods in taken.items():
        if method not in methods:
            response = await waiting.served.http.request(method, path.format_map(Anything(NOWHERE)))
            assert response.status_code == 405, f"{method} {path}: {response.status_code}"
            assert set(response.headers["allow"].split(", ")) == methods
    await completes(waiting)


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/nothing/at/all"])
async def test_a_page_around_the_faces_takes_no_body_either(waiting: Waiting, path: str) -> None:
    http = waiting.served.http
    plain = (await http.get(path)).status_code
    assert (await http.request("GET", path, content=b"[" * 100_000, headers=JSON)).status_code == plain
    assert (await http.post(path, content=b"\xff", headers=JSON)).status_code in (404, 405)
    await completes(waiting)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
async def test_a_hostile_frame_gets_an_error_or_closes_the_socket_for_its_size(
    waiting: Waiting, value: bytes
) -> None:
    for _, route in sockets(waiting):
        async with wire(waiting.served, route.path) as socket:
            await socket.send(b'{"type":"ping","extra":' + value + b"}")
            told = await read(socket)
            assert '"type":"error"' in told, f"{route.path}: {told[:200]}"
            await socket.send(b"\xff")
            assert '"type":"error"' in await read(socket)
            await socket.send(b"x" * (Limits().socket_frame + 1))
            assert await closed_with(socket) == 1009
    await completes(waiting)


async def test_every_valid_body_belongs_to_a_route_that_is_there(waiting: Waiting) -> None:
    assert VALID.keys() <= {route.path for _, route in body_routes(waiting)}


# -------------------------------------------------------------------------------------------------- the scene


IDS = {"toolCallId", "approvalId", "agent_uuid", "requestID", "tool_results"}


class Anything(dict[str, str]):
    """Fills every gap of a path with the same text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def __missing__(self, key: str) -> str:
        return self._text


@pytest.fixture
async def waiting(serve: Serve, request: pytest.FixtureRequest) -> AsyncIterator[Waiting]:
    """On the store that the test names, if it does."""
    scene = Scene(once(Ask("open_url", {"url": "u"}), Ask("take_photo", {"camera": "front"})))
    served = await serve(scene.agent, store=store_named(getattr(request, "param", "memory"), request))
    async with Page(served.http, "held", wait="hold").saying("open") as live:
        approval = (await live.until("tool-approval-request"))["approvalId"]
        call = next(
            chunk["toolCallId"] for chunk in live.turn.chunks if chunk["type"] == "tool-input-available"
        )
        yield Waiting(served, scene, live, call, approval)


def store_named(kind: str, request: pytest.FixtureRequest) -> str:
    if kind == "postgres":
        cluster: Cluster = request.getfixturevalue("cluster")
        return cluster.address()
    return "memory:" if kind == "memory" else request.getfixturevalue("file_store")


async def completes(waiting: Waiting) -> None:
    """What waited all the while is answered with its own result, and the same response continues."""
    http = waiting.served.http
    ack = {"toolCallId": waiting.call, "status": "success", "output": {"its": "own"}}
    assert (await http.post("/api/tools/ack", json=ack)).json() == {"ok": True}
    no = {"approvalId": waiting.approval, "approved": False}
    assert (await http.post("/api/tools/approve", json=no)).json() == {"ok": True}
    turn = await waiting.live.rest()
    assert turn.one("tool-output-available")["output"] == {"its": "own"}
    assert turn.finish == "stop"


def routes(waiting: Waiting) -> list[tuple[Face, Route]]:
    return [(face, route) for face in waiting.served.app.faces for route in face.routes]


def body_routes(waiting: Waiting) -> list[tuple[Face, Route]]:
    return [(face, route) for face, route in routes(waiting) if route.limit]


def sockets(waiting: Waiting) -> list[tuple[Face, SocketRoute]]:
    return [(face, route) for face in waiting.served.app.faces for route in face.sockets]


def valid_for(waiting: Waiting, route: Route) -> bytes:
    make = VALID.get(route.path)
    return b"{}" if make is None else json.dumps(make(waiting), separators=(",", ":")).encode()


def for_nobody(waiting: Waiting, route: Route) -> bytes:
    """Without what names the open call: a proper answer to it would not be hostile."""
    valid = valid_for(waiting, route)
    return valid.replace(waiting.call.encode(), b"nowhere").replace(waiting.approval.encode(), b"nowhere")


def spoiled(value: Json) -> Iterator[Json]:
    """The same body again and again, each time with another of its texts spoiled."""
    if isinstance(value, str):
        yield f"{value}\0"
        return
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for place, part in inside:
        for other in spoiled(part):
            copy = value.copy()
            copy[place] = other
            yield copy


def path_of(route: Route, part: str = NOWHERE) -> str:
    return route.path.format_map(Anything(part))


async def refused(waiting: Waiting, face: Face, route: Route, body: bytes) -> None:
    status, told = await post(waiting, route, body)
    assert 400 <= status < 500, f"{route.path}: {status} {told!r}"
    speaks(face, status, told)


def speaks(face: Face, status: int, told: bytes) -> None:
    """The answer has the shape that this face gives to errors."""
    shape = json.loads(face.explain(Malformed("x"), status))
    body = json.loads(told)
    assert body.keys() >= {name for name in shape if name != "detail"}, f"{face.name}: {body}"
    assert "Traceback" not in told.decode()


async def post(
    waiting: Waiting,
    route: Route,
    body: bytes | AsyncIterator[bytes],
    headers: dict[str, str] | None = None,
    address: str | None = None,
) -> tuple[int, bytes]:
    """The status and the first kilobytes: a stream is left as soon as it has begun."""
    http = waiting.served.http
    sent = JSON if headers is None else headers
    async with http.stream(route.method, address or path_of(route), content=body, headers=sent) as response:
        return response.status_code, b"" if _streams(response) else await response.aread()


def _streams(response: httpx2.Response) -> bool:
    return bool(response.headers.get("content-type", "").startswith("text/event-stream"))


async def pieces(body: bytes) -> AsyncIterator[bytes]:
    """Without a length that is told beforehand."""
    for start in range(0, len(body), 65_536):
        yield body[start : start + 65_536]
