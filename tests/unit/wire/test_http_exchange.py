"""A connection that is cut from inside looks to whoever writes to it as if the peer had left."""

from __future__ import annotations

import asyncio

from starlette.types import Message

from farhand.wire.http_exchange import HttpExchange
from tests.requirement import requirement
from tests.unit.wire.peer import Peer


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
