"""Calls without a run, made, approved and asked for again over HTTP, for tests that kill the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx2

from tests.chaos.recorded_server import Json, Room

AGENT = "tests.chaos.direct_agent:agent"
WITHIN_SEC = 40.0
UNKNOWN = "Whether it took effect is unknown"

_NAMED = {
    "delete_file": "path",
    "charge": "account",
    "look_up": "name",
    "count": "name",
    "take_photo": "camera",
}


async def execute(there: Room, tool: str, subject: str, **more: Json) -> httpx2.Response:
    body = {"toolID": tool, "input": {_NAMED[tool]: subject}, **more}
    return await there.http.post("/client-tools/execute", json=body)


@asynccontextmanager
async def executing(there: Room, tool: str, subject: str, **more: Json) -> AsyncIterator[asyncio.Task[Json]]:
    """A caller that waits; whether the server that it waits at survives is the test's to say."""
    task = asyncio.create_task(execute(there, tool, subject, **more))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, httpx2.HTTPError):
            await task


async def inbox(there: Room) -> list[Json]:
    calls: list[Json] = (await there.http.get("/api/inbox")).json()["calls"]
    return calls


async def waiting(there: Room, tool: str) -> Json:
    """The call of this tool in the inbox, once it is there."""
    async with asyncio.timeout(WITHIN_SEC):
        while True:
            if found := [call for call in await inbox(there) if call["tool"] == tool]:
                return found[0]
            await asyncio.sleep(0.02)


async def approve(there: Room, call: Json, *, approved: bool = True) -> tuple[int, Json]:
    body = {"approvalId": call["approvalId"], "approved": approved}
    response = await there.http.post("/api/tools/approve", json=body)
    return response.status_code, response.json()


async def yes_that_kills(there: Room, tool: str, trap: str) -> None:
    """An approval that is stored, by a server that is killed right after; it is gone by now."""
    call = await waiting(there, tool)
    # another process reads it, and nothing else continues here that would mind
    (there.folder / trap).write_text(str(there.server.pid))
    # whether the answer left before the kill is a matter of luck
    with suppress(httpx2.TransportError):
        assert await approve(there, call) == (200, {"ok": True})
    await there.server.wait()


async def answer(there: Room, tool: str, subject: str, request_id: str) -> Json:
    """What the same request id is answered once its call has an outcome."""
    async with asyncio.timeout(WITHIN_SEC):
        while True:
            response = await execute(there, tool, subject, requestID=request_id)
            if response.status_code != 409:
                assert response.status_code == 200, response.text
                return response.json()
            await asyncio.sleep(0.05)
