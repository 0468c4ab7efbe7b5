"""Bodies read within their limits, and responses in ASGI's form."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest
from starlette.types import Message

from farhand.errors import Malformed, TooLarge, TooSlow, WrongType
from farhand.wire.http import (
    SECURITY,
    HttpExchange,
    header,
    read_body,
    require_json,
    respond_body,
    respond_empty,
    respond_json,
)
from farhand.wire.time_limit import TimeLimit
from tests.requirement import requirement
from tests.unit.wire.peer import Peer

WITHIN = TimeLimit(10)


def part(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


class Trickle:
    """A client whose parts arrive one by one, each after a turn of the loop."""

    def __init__(self, *parts: Message) -> None:
        self._parts = list(parts)

    async def receive(self) -> Message:
        await asyncio.sleep(0)
        if not self._parts:
            await asyncio.Event().wait()
        return self._parts.pop(0)


async def test_a_body_that_is_here_is_read_without_waiting() -> None:
    assert await read_body(Peer(part(b"{}")).receive, [(b"content-length", b"2")], 10, WITHIN) == b"{}"
    assert await read_body(Peer({"type": "http.request"}).receive, [], 10, WITHIN) == b""


@pytest.mark.parametrize("client", [Peer, Trickle])
async def test_a_body_in_parts_is_joined(client: type[Peer | Trickle]) -> None:
    parts = [part(b"a", more=True), part(b"", more=True), part(b"b", more=True), part(b"c")]
    assert await read_body(client(*parts).receive, [], 3, WITHIN) == b"abc"


async def test_an_announced_length_over_the_limit_is_refused_before_anything_is_read() -> None:
    peer = Peer(part(b"x" * 11))
    with pytest.raises(TooLarge, match="larger than 10 bytes"):
        await read_body(peer.receive, [(b"content-length", b"11")], 10, WITHIN)
    assert (await peer.receive())["body"] == b"x" * 11


@pytest.mark.parametrize("client", [Peer, Trickle])
@pytest.mark.parametrize("sizes", [[11], [10, 1], [4, 4, 4]])
async def test_a_body_is_refused_as_soon_as_it_passes_the_limit(
    client: type[Peer | Trickle], sizes: list[int]
) -> None:
    parts = [part(b"x" * size, more=True) for size in sizes]
    with pytest.raises(TooLarge):
        await read_body(client(*parts).receive, [], 10, WITHIN)


async def test_a_length_of_very_many_digits_is_refused_as_too_large() -> None:
    with pytest.raises(TooLarge):
        await read_body(Peer().receive, [(b"content-length", b"9" * 5000)], 10, WITHIN)


@pytest.mark.parametrize("length", [b"-1", b"", b"ten", b"1e3", b"+5", "٣".encode(), b"5, 5"])
async def test_a_length_that_is_no_number_is_refused(length: bytes) -> None:
    with pytest.raises(Malformed, match="Content-Length"):
        await read_body(Peer(part(b"x")).receive, [(b"content-length", length)], 10, WITHIN)


@pytest.mark.parametrize("parts", [[], [part(b"x", more=True)], [part(b"x", more=True)] * 3])
@pytest.mark.parametrize("client", [Peer, Trickle])
async def test_a_body_that_never_ends_is_refused_in_time(
    client: type[Peer | Trickle], parts: list[Message]
) -> None:
    with pytest.raises(TooSlow, match=r"within 0\.02 s"):
        await read_body(client(*parts).receive, [], 10, TimeLimit(0.02))


@pytest.mark.parametrize("parts", [[], [part(b"x", more=True)]])
async def test_a_client_that_leaves_before_the_end_is_told_apart(parts: list[Message]) -> None:
    peer = Peer(*parts)
    peer.leave()
    with pytest.raises(Malformed, match="closed before"):
        await read_body(peer.receive, [], 10, WITHIN)


async def test_a_cancel_reaches_the_receive_that_waits() -> None:
    cleaned = []

    async def receive() -> Message:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)
        raise AssertionError("nothing ever arrives")

    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read_body(receive, [], 10, WITHIN))
        await asyncio.sleep(0)
        reading.cancel()
    assert reading.cancelled()
    assert cleaned == [True]


async def test_an_error_of_the_receive_is_not_swallowed() -> None:
    async def receive() -> Message:
        await asyncio.sleep(0)
        raise RuntimeError("the server broke")

    with pytest.raises(RuntimeError, match="the server broke"):
        await read_body(receive, [], 10, WITHIN)


async def test_any_awaitable_may_stand_for_a_receive() -> None:
    class Late:
        def __await__(self) -> Generator[object, None, Message]:
            yield from asyncio.sleep(0).__await__()
            return part(b"late")

    async def receive() -> Message:
        return await Late()

    assert await read_body(receive, [], 10, WITHIN) == b"late"


@pytest.mark.parametrize(
    "content_type",
    [
        b"application/json",
        b"Application/JSON",
        b"application/json; charset=utf-8",
        b'application/json;charset="UTF-8"',
        b"application/json ;",
    ],
)
def test_json_in_utf_8_is_taken(content_type: bytes) -> None:
    require_json([(b"host", b"x"), (b"content-type", content_type)])


@pytest.mark.parametrize(
    "content_type",
    [
        b"",
        b"text/plain",
        b"text/json",
        b"application/jsonp",
        b"application/vnd.api+json",
        b"application/json; charset=latin-1",
        b"text/plain; application/json",
        b"application/x-www-form-urlencoded",
        b"application/json, text/plain",
    ],
)
def test_another_type_is_refused(content_type: bytes) -> None:
    with pytest.raises(WrongType):
        require_json([(b"content-type", content_type)])


def test_a_body_without_a_type_is_refused() -> None:
    with pytest.raises(WrongType, match="application/json"):
        require_json([])


def test_a_header_is_found_by_its_name() -> None:
    scope = {"headers": [(b"host", b"x"), (b"origin", b"a"), (b"origin", b"b")]}
    assert header(scope, b"origin") == b"a"
    assert header(scope, b"cookie") is None


async def test_an_answer_says_its_type_and_length() -> None:
    peer = Peer()
    await respond_body(peer.send, 404, b"text/plain; charset=utf-8", b"none", [(b"retry-after", b"1")])
    assert peer.sent == [
        {
            "type": "http.response.start",
            "status": 404,
            "headers": [
                (b"content-type", b"text/plain; charset=utf-8"),
                (b"content-length", b"4"),
                (b"x-content-type-options", b"nosniff"),
                (b"retry-after", b"1"),
            ],
        },
        {"type": "http.response.body", "body": b"none", "more_body": False},
    ]


async def test_an_answer_in_json_is_not_kept_by_caches() -> None:
    peer = Peer()
    await respond_json(peer.send, 200, b'{"ok":true}', [(b"x-a", b"b")])
    headers = peer.sent[0]["headers"]
    assert (b"content-type", b"application/json") in headers
    assert {(b"cache-control", b"no-store"), (b"x-a", b"b"), *SECURITY} <= set(headers)
    assert peer.bodies == [b'{"ok":true}']


async def test_an_empty_answer_has_neither_type_nor_length() -> None:
    peer = Peer()
    await respond_empty(peer.send)
    assert peer.sent == [
        {"type": "http.response.start", "status": 204, "headers": [*SECURITY]},
        {"type": "http.response.body", "body": b"", "more_body": False},
    ]


def exchange(peer: Peer) -> HttpExchange:
    return HttpExchange(peer.receive, peer.send)


@requirement("auth:asked-again")
async def test_whoever_writes_is_told_of_a_cut_also_of_one_before() -> None:
    told: list[str] = []
    cut = exchange(Peer())
    cut.when_over(lambda: told.append("while writing"))
    assert told == []
    await cut.cut()
    assert told == ["while writing"]
    cut.when_over(lambda: told.append("too late"))
    assert told == ["while writing", "too late"]
    assert cut.is_over


async def test_whoever_listens_hears_that_the_peer_left_and_nothing_before() -> None:
    left = asyncio.Event()
    peer = Peer({"type": "http.request", "body": b"", "more_body": False})
    heard = exchange(peer)
    heard.when_over(left.set)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(heard.listen())
        await asyncio.sleep(0)
        assert not left.is_set()
        peer.leave()
        await left.wait()


async def test_an_answer_has_begun_with_its_first_message() -> None:
    peer = Peer()
    answering = exchange(peer)
    start: Message = {"type": "http.response.start", "status": 200, "headers": []}
    begun = [answering.has_answered]
    await answering.send(start)
    begun.append(answering.has_answered)
    assert begun == [False, True]
    assert peer.sent == [start]
