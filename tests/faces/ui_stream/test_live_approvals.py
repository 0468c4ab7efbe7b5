"""`/api/chat/live` after the approval of a frontend tool: the response stays open for a moment, for a client
that sends the output meanwhile; then it ends as on HTTP, for a client that sends nothing before `[DONE]`."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from farhand.core.call import Phase
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL
from farhand.faces.ui_stream.sockets import OUTPUT_GRACE_SEC
from farhand.models.scripted import Ask
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.page import Page
from tests.faces.ui_stream.websocket_client import Held, read, wire
from tests.requirement import requirement

PATH = "/api/chat/live"
PHOTO = Ask("take_photo", {"camera": "front"})
TEXT = ["start-step", "text-start", "text-delta", "text-end", "finish-step"]
DONE = "data: [DONE]\n\n"


@asynccontextmanager
async def live(served: Served) -> AsyncIterator[Held]:
    async with wire(served, PATH) as socket:
        yield Held(socket, Page(served.http))


async def approved(held: Held) -> str:
    """A frontend tool was asked for, and the approval to it was sent alone."""
    await held.message("photo")
    [call] = (await held.turn()).calls
    held.page.approve(call)
    await held.message()
    return call


@requirement("live:frontend-approval")
async def test_a_client_that_sends_nothing_before_done_gets_the_call_again_and_brings_its_output(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(PHOTO))
    async with live(await serve(scene.agent, store=store)) as held:
        since = time.monotonic()
        call = await approved(held)
        assert (await held.turn()).kinds == ["start", "finish"]
        assert time.monotonic() - since >= OUTPUT_GRACE_SEC
        await held.message()
        again = await held.turn()
        assert again.kinds == ["start", "tool-input-available", "finish"]
        assert (again.calls, again.finish) == ([call], "tool-calls")
        held.page.output(call, {"name": "p"})
        await held.message()
        assert (await held.turn()).kinds[-len(TEXT) - 1 :] == [*TEXT, "finish"]
    assert scene.seen[0].outcome == Success({"name": "p"})
    assert len(scene.model.prompts) == 2


@requirement("live:frontend-approval")
async def test_the_untouched_answer_is_given_once_for_an_approval_whatever_happens_to_the_socket(
    serve: Serve,
) -> None:
    served = await serve(Scene(once(PHOTO)).agent)
    async with live(served) as held:
        await approved(held)
        assert (await held.turn()).kinds == ["start", "finish"]
        page, messages = held.page, copy.deepcopy(held.page.messages)
    for _ in range(2):
        async with wire(served, PATH) as socket:
            again = Held(socket, page)
            page.messages = copy.deepcopy(messages)
            await again.message()
            assert (await again.turn()).kinds == ["start", "tool-input-available", "finish"]


@requirement("live:frontend-approval")
@pytest.mark.parametrize("way", ["message", "tool_result"])
async def test_an_output_after_the_untouched_answer_has_an_exchange_of_its_own(
    serve: Serve, way: str
) -> None:
    scene = Scene(once(PHOTO))
    async with live(await serve(scene.agent)) as held:
        call = await approved(held)
        assert (await held.turn()).kinds == ["start", "finish"]
        if way == "message":
            held.page.output(call, {"name": "p"})
            await held.message()
        else:
            await held.tell(type="tool_result", toolCallId=call, result={"name": "p"})
        assert (await held.turn()).finish == "stop"
    assert scene.seen[0].outcome == Success({"name": "p"})


@requirement("live:frontend-approval")
@pytest.mark.parametrize("after_ms", [0, 150, 280, 290, 295, 300, 305, 310, 320, 400])
async def test_an_output_that_comes_around_the_end_of_the_moment_is_answered(
    serve: Serve, after_ms: int
) -> None:
    scene = Scene(once(PHOTO))
    async with live(await serve(scene.agent)) as held:
        call = await approved(held)
        await asyncio.sleep(after_ms / 1000)
        await held.tell(type="tool_result", toolCallId=call, result={"name": "p"})
        frames: list[str] = []
        while '"text-delta"' not in "".join(frames) or frames[-1] != DONE:
            frames.append(await read(held.socket))
        assert not any('"error"' in frame for frame in frames), frames
        assert frames.count(DONE) == sum('"type":"finish"' in frame for frame in frames)
    assert scene.seen[0].outcome == Success({"name": "p"})


async def _has_its_yes(served: Served, call_id: str) -> None:
    """What was sent on the socket has arrived, whatever comes by another connection."""
    async with asyncio.timeout(20):
        while True:
            call = await served.service.log.get_call(LOCAL, call_id)
            if call is not None and call.phase is Phase.READY:
                return
            await asyncio.sleep(0.005)


@requirement("live:frontend-approval")
@pytest.mark.slow
@pytest.mark.usefixtures("time_for_outputs")
async def test_an_output_that_came_another_way_in_that_moment_is_shown_in_the_open_exchange(
    serve: Serve,
) -> None:
    served = await serve(Scene(once(PHOTO)).agent)
    async with live(served) as held:
        call = await approved(held)
        await _has_its_yes(served, call)
        body = {"toolCallId": call, "status": "success", "output": {"name": "p"}}
        assert (await served.http.post("/api/tools/ack", json=body)).json()["ok"] is True
        turn = await held.turn()
    assert turn.kinds == ["start", "tool-output-available", *TEXT, "finish"]


@requirement("live:frontend-approval")
@pytest.mark.slow
@pytest.mark.usefixtures("time_for_outputs")
async def test_a_bad_output_in_that_moment_is_an_error_and_the_exchange_ends_by_itself(serve: Serve) -> None:
    async with live(await serve(Scene(once(PHOTO)).agent)) as held:
        await approved(held)
        await held.tell(type="tool_result", toolCallId="call_" + "0" * 32, result=1)
        assert (await held.chunk())["type"] == "error"
        assert (await held.turn()).kinds == ["start", "finish"]
        await held.message()
        assert (await held.turn()).kinds == ["start", "tool-input-available", "finish"]
