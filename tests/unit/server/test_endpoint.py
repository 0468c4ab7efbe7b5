"""The response to a request whose server is stopping."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from starlette.types import Message

from farhand import Agent, Principal, ScriptedModel, create_app
from farhand.store.base import Append, AppendResult
from farhand.store.memory import MemoryStore

CHAT = {
    "id": "t1",
    "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}],
}


class Stuck(MemoryStore):
    """Takes its time."""

    def __init__(self) -> None:
        super().__init__()
        self.was_asked, self.goes_on = asyncio.Event(), asyncio.Event()

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        self.was_asked.set()
        await self.goes_on.wait()
        return await super().append(appends)


@pytest.mark.parametrize("is_gone", [False, True], ids=["still there", "gone"])
async def test_a_request_cancelled_by_a_shutdown_is_told_to_retry(is_gone: bool) -> None:
    store, sent = Stuck(), list[Message]()
    app = create_app(
        Agent(model=ScriptedModel(["never"])), store=store, authenticate=lambda _: Principal("acme", "ann")
    )

    async def hear(message: Message) -> None:
        if is_gone:
            raise OSError("nobody is there")
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": json.dumps(CHAT).encode(), "more_body": False}

    async with app.lifespan(), asyncio.timeout(20):
        request = asyncio.create_task(app(_scope(), receive, hear))
        await store.was_asked.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        store.goes_on.set()
        assert [each["type"] for each in sent] == (
            [] if is_gone else ["http.response.start", "http.response.body"]
        )
        if sent:
            assert (sent[0]["status"], dict(sent[0]["headers"])[b"retry-after"]) == (503, b"1")
            assert b"shutting_down" in sent[1]["body"]


def _scope() -> dict[str, object]:
    return {
        "type": "http",
        "method": "POST",
        "path": "/api/chat",
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
