"""A connection that is cut from inside looks to its endpoint as if the peer had left."""

from __future__ import annotations

import asyncio

from starlette.types import Message

from farhand.wire.cut import Cuttable
from tests.requirement import requirement

GONE = {"type": "http.disconnect"}


@requirement("door:asked-again")
async def test_whoever_waits_for_the_peer_is_told_that_it_left() -> None:
    cuttable = Cuttable(asyncio.Queue[Message]().get)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        waiting = group.create_task(cuttable())
        await asyncio.sleep(0)
        await cuttable.cut()
        assert await waiting == GONE
        assert await cuttable() == GONE


@requirement("door:asked-again")
async def test_until_then_everything_arrives_and_a_cut_before_it_is_asked_holds() -> None:
    queue = asyncio.Queue[Message]()
    cuttable = Cuttable(queue.get)
    queue.put_nowait({"type": "http.request"})
    assert await cuttable() == {"type": "http.request"}
    queue.put_nowait({"type": "http.request"})
    await cuttable.cut()
    assert await cuttable() == GONE
