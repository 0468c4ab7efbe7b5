"""A socket that leaves or aborts immediately: its request still takes effect and completes."""

from __future__ import annotations

import asyncio
import json

import pytest

from farhand.core.principal import LOCAL
from farhand.core.run import RunState
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.agents import Scene
from tests.faces.ui_stream.page import WITHIN_SEC, Page, user_message
from tests.faces.ui_stream.websocket_client import wire

HOW_MANY = 12


def sent(number: int) -> tuple[str, str]:
    page = f"hasty-{number}"
    frame = {"type": "send", "requestId": f"r{number}", "id": page, "trigger": "submit-message"}
    return page, json.dumps(frame | {"messages": [user_message("hi")], "headers": {}, "body": {}})


async def ended(served: Served, thread_id: str) -> None:
    """Until the run of this thread is done: its events are stored, whoever reads them."""
    async with asyncio.timeout(WITHIN_SEC):
        # looked at again and again: who left is told of nothing
        while (run := await served.service.log.last_run(LOCAL, thread_id)) is None or run.active:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert run.state is RunState.DONE


@pytest.mark.parametrize("leaves", ["abort", "close"])
async def test_a_message_is_answered_though_its_sender_leaves_at_once(
    serve: Serve, store: str, leaves: str
) -> None:
    served = await serve(Scene(["Hello."] * HOW_MANY).agent, store=store)
    threads = []
    for number in range(HOW_MANY):
        thread_id, frame = sent(number)
        threads.append(thread_id)
        async with wire(served, "/api/chat/ws") as socket:
            await socket.send(frame)
            if leaves == "abort":
                await socket.send(json.dumps({"type": "abort", "requestId": f"r{number}"}))
            else:
                socket.transport.abort()
    for thread_id in threads:
        await ended(served, thread_id)
    assert (await Page(served.http).http.get("/api/chat?limit=50")).json()["threads"]


async def test_a_request_id_that_is_in_progress_is_not_taken_twice(serve: Serve) -> None:
    scene = Scene(["Hello."])
    served = await serve(scene.agent)
    _, frame = sent(0)
    async with wire(served, "/api/chat/ws") as socket:
        await socket.send(frame)
        await socket.send(frame)
        kinds = []
        while "end" not in kinds:
            kinds.append(json.loads(await socket.recv())["type"])
    assert kinds.count("error") == 1
    assert len(scene.model.prompts) == 1
