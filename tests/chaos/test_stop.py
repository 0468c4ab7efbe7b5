"""A worker that is stopped while it is busy exits in time, and others finish the rest."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.chaos.recorded_server import Room
from tests.chaos.time_limit_check import say
from tests.chaos.workers import workers
from tests.faces.ui_stream.page import Live, Page, Turn
from tests.postgres import Cluster, running_cluster

# a hundred runs are begun and ended one after the other, beside a database: a busy machine takes its time
pytestmark = pytest.mark.timeout(180)
AT_WORK, HELD = 50, 50
GONE_WITHIN_SEC = 10.0
ENDED_WITHIN_SEC = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


@pytest.mark.sweep
@pytest.mark.parametrize("under_a_parent", [False, True], ids=["alone", "of --workers"])
async def test_a_worker_with_a_hundred_streams_and_fifty_running_tools_is_gone_in_time_and_nothing_is_lost(
    cluster: Cluster, tmp_path: Path, *, under_a_parent: bool
) -> None:
    charged, opened = [f"c{each}" for each in range(AT_WORK)], [f"o{each}" for each in range(HELD)]
    stores = [cluster.address("parent" if under_a_parent else "alone")] * 2
    arguments = ("--workers", "2") if under_a_parent else ()
    async with AsyncExitStack() as stack:
        one, other = await stack.enter_async_context(workers(tmp_path, stores, *arguments))
        streams = [await started(stack, one, "charge", chat) for chat in charged]
        streams += (held := [await started(stack, one, "open", chat) for chat in opened])
        await one.until_executed("charge", times=AT_WORK)
        began = time.monotonic()
        one.server.signal(signal.SIGTERM)
        bodies = await asyncio.gather(*(live.rest() for live in streams), return_exceptions=True)
        code = await one.server.wait()
        took = time.monotonic() - began
        say(f"gone {took:.2f} s after the signal, with {AT_WORK} tools at work and {HELD} held")
        assert (code, took < GONE_WITHIN_SEC) == (0, True), one.server.err
        assert [body for body in bodies if not isinstance(body, Turn)] == [], "each ended as a stream ends"

        calls = [live.turn.of("tool-input-available")[-1]["toolCallId"] for live in held]
        for call in calls:
            assert await other.ack(call, output={"viewKey": "v1"}) == {"ok": True}
        ends = await asyncio.gather(*(ended(other, chat) for chat in [*charged, *opened]))
        assert all("Whether it took effect is unknown" in turn.text for turn in ends[:AT_WORK])
        assert all('{"viewKey": "v1"}' in turn.text for turn in ends[AT_WORK:])
        assert set(Counter(one.executions).values()) == {1}, "no tool twice"


async def started(stack: AsyncExitStack, there: Room, play: str, chat: str) -> Live:
    """A stream that stays open: what can be answered at once is, and the other call is in progress."""
    page = Page(there.http, chat, wait="hold")
    live = await stack.enter_async_context(page.saying(f"{play} {chat}"))
    await live.until("tool-output-available")
    return live


async def ended(there: Room, chat: str) -> Turn:
    page = Page(there.http, chat)
    async with asyncio.timeout(ENDED_WITHIN_SEC):
        # another process continues with it: there is no event to wait for
        while (turn := await page.resume()).finish != "stop":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return turn
