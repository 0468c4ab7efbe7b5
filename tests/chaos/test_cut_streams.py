"""A stream that is cut after every k-th byte and resumed each time equals the uncut one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tests.chaos.fault_proxy import FaultProxy
from tests.chaos.recorded_server import room
from tests.faces.ui_stream.page import Page
from tests.faces.ui_stream.test_positions import joined
from tests.stream_checker import SseFrame, read_sse

CUTS = (150, 333, 700, 1500)


async def until_cut(client: httpx2.AsyncClient, path: str, line: FaultProxy, size: int) -> list[SseFrame]:
    """The whole events of what arrived before the line was cut."""
    received = b""
    with suppress(httpx2.HTTPError):
        async with client.stream("GET", path) as response:
            # from here on: the head has passed
            assert line.drop_after(size) > 0
            async for piece in response.aiter_bytes():
                received += piece
    return read_sse(received[: received.rfind(b"\n\n") + 2]) if b"\n\n" in received else []


async def resumed_until_done(client: httpx2.AsyncClient, line: FaultProxy, size: int) -> list[SseFrame]:
    frames: list[SseFrame] = []
    position, lasts = "0.0", size
    while not frames or frames[-1].data != "[DONE]":
        heard = await until_cut(client, f"/api/chat/chat/stream?after={position}", line, lasts)
        ends = [index for index, frame in enumerate(heard) if frame.id is not None]
        # an event that is longer than the line lasts has one that lasts longer, and the next one none
        lasts = size if ends else 2 * lasts
        if not ends:
            continue
        # what came without its position comes again
        frames += heard[: ends[-1] + 1]
        position = str(heard[ends[-1]].id)
    return frames


@pytest.mark.parametrize("k", CUTS)
async def test_a_stream_cut_after_every_kth_byte_and_resumed_equals_the_uncut_one(
    tmp_path: Path, k: int
) -> None:
    async with room(tmp_path) as there, FaultProxy(("127.0.0.1", there.server.port)) as line:
        page = Page(there.http, "chat")
        turn = await page.say("open oslo")
        await there.ack(turn.of("tool-input-available")[-1]["toolCallId"], output={"text": "long " * 40})
        await page.resume()
        uncut = read_sse((await there.http.get("/api/chat/chat/stream?after=0.0")).content)
        headers = {"authorization": f"Bearer {there.server.token}"}
        limits = httpx2.Limits(max_keepalive_connections=0)
        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{line.port}",
            headers=headers,
            limits=limits,
            trust_env=False,
            verify=False,
        ) as client:
            cut = await resumed_until_done(client, line, k)
    assert joined(cut) == joined(uncut)
