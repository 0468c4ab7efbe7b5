"""An active run is read over connections that are cut after every k-th byte: nothing is missed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.chaos.cut_reader import CutReader, Cuts
from tests.chaos.fault_proxy import FaultProxy
from tests.chaos.recorded_server import Room
from tests.chaos.time_limit_check import say
from tests.chaos.workers import workers
from tests.faces.ui_stream.page import Live, Page
from tests.faces.ui_stream.test_positions import joined
from tests.postgres import running_cluster
from tests.stream_checker import Chunk, SseFrame, read_sse

# from less than an event to a dozen of them
SIZES = (61, 97, 149, 211, 307, 499, 1009)
CUTS_IN_A_WAIT = 3
HANDED_OUT = "tool-input-available"
WAITS = '"toolName":"open_page","input"'
CUTS_AT_LEAST, IN_A_FRAME_AT_LEAST, IN_A_LETTER_AT_LEAST = 100, 30, 5


# seven runs one after the other: half a minute, and more on a busy machine
@pytest.mark.sweep
@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["one process", "two workers"])
async def test_a_live_stream_cut_after_every_kth_byte_and_resumed_equals_the_uncut_one(
    tmp_path: Path, kind: str
) -> None:
    async with serving(tmp_path, kind) as rooms, lines_to(rooms) as lines:
        total = Cuts()
        for size in SIZES:
            cuts = await cut_and_uncut(rooms, lines, size)
            for name, number in vars(cuts).items():
                setattr(total, name, getattr(total, name) + number)
    say(f"{kind}: {total}")
    assert total.all >= CUTS_AT_LEAST
    assert total.in_frame >= IN_A_FRAME_AT_LEAST
    assert total.in_letter >= IN_A_LETTER_AT_LEAST
    assert total.in_wait == CUTS_IN_A_WAIT * len(SIZES)


async def cut_and_uncut(rooms: list[Room], lines: list[FaultProxy], size: int) -> Cuts:
    """Both read from the beginning to the end, while the run continues."""
    chat = f"chat-{size}"
    async with (
        Page(rooms[0].http, chat, wait="hold").saying("recite oslo") as live,
        asyncio.TaskGroup() as group,
    ):
        await live.until("start")
        tokens = [room.server.token for room in rooms]
        reader = CutReader(list(zip(lines, tokens, strict=True)), chat, head_of(live), size)
        uncut = group.create_task(whole(rooms[-1], chat))
        cut = group.create_task(reader.read())
        await cut_in_the_wait(reader, lines)
        # the answer comes while the reader is away, or on its way back
        call = json.loads(await reader.until(WAITS))["toolCallId"]
        assert await rooms[-1].ack(call, output={"viewKey": "v1"}) == {"ok": True}
    assert told(cut.result()) == told(uncut.result())
    assert handed_out(cut.result(), "open_page") == handed_out(uncut.result(), "open_page") == [call]
    return reader.cuts


def told(frames: list[SseFrame]) -> list[Chunk]:
    """All but what hands out a call: that is left out for whoever comes back after its outcome, so that
    nobody runs it again."""
    return [chunk for chunk in joined(frames) if chunk["type"] != HANDED_OUT]


def handed_out(frames: list[SseFrame], tool: str) -> list[str]:
    chunks = [chunk for chunk in joined(frames) if chunk["type"] == HANDED_OUT]
    return [chunk["toolCallId"] for chunk in chunks if chunk["toolName"] == tool]


async def cut_in_the_wait(reader: CutReader, lines: list[FaultProxy]) -> None:
    await reader.until(WAITS)
    for _ in range(CUTS_IN_A_WAIT):
        before = reader.cuts.all
        # it is on its way back: there is no event to wait for
        while not sum(line.cut() for line in lines):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        while reader.cuts.all == before:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        reader.cuts.in_wait += 1


def head_of(live: Live) -> int:
    """How many bytes come before those of a stream; all streams begin alike."""
    lines = [f"{name}: {value}\r\n" for name, value in live.turn.headers.items()]
    return len("HTTP/1.1 200 OK\r\n" + "".join(lines) + "\r\n")


async def whole(there: Room, chat: str) -> list[SseFrame]:
    """Over a line that holds, at the other worker if there is one."""
    return read_sse((await there.http.get(f"/api/chat/{chat}/stream?after=0.0")).content)


@asynccontextmanager
async def serving(folder: Path, kind: str) -> AsyncIterator[list[Room]]:
    if kind == "one process":
        async with workers(folder, [f"sqlite:///{folder}/store.db"]) as rooms:
            yield rooms
        return
    with running_cluster() as cluster:
        async with workers(folder, [cluster.address("cut")] * 2) as rooms:
            yield rooms


@asynccontextmanager
async def lines_to(rooms: list[Room]) -> AsyncIterator[list[FaultProxy]]:
    async with AsyncExitStack() as stack:
        proxies = [FaultProxy(("127.0.0.1", room.server.port)) for room in rooms]
        yield [await stack.enter_async_context(proxy) for proxy in proxies]
