"""A page that runs the tools of the browser itself and posts an acknowledgement for each.

It has a registry of handlers by tool name. It sends plain chat posts, without `wait`: it knows nothing of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2

from tests.stream_checker import read_sse

# Any: bodies of a wire
Json = Any
Handler = Callable[[Json], Json]
REQUESTED_AT = "2025-02-01T12:34:56.789Z"


class AckPage:
    """`acks` are the answers to its acknowledgements, in their order."""

    def __init__(
        self, http: httpx2.AsyncClient, handlers: dict[str, Handler], *, path: str = "/api/tools/ack"
    ) -> None:
        self.http = http
        self.handlers = handlers
        self.path = path
        self.chunks: list[Json] = []
        self.acks: list[tuple[int, Json]] = []

    async def ask(self, text: str, **more: object) -> list[Json]:
        """One post: every tool input that arrives is run and acknowledged while the response is open."""
        message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}
        body = {"id": "chat", "messages": [message], "trigger": "submit-message", **more}
        rest = b""
        async with self.http.stream("POST", "/api/chat", json=body) as response:
            assert response.status_code == 200
            async for piece in response.aiter_bytes():
                head, mark, rest = (rest + piece).rpartition(b"\n\n")
                frames = [frame.data for frame in read_sse(head + mark) if frame.data != "[DONE]"]
                for data in frames:
                    await self._take(json.loads(data))
        assert rest == b""
        return self.chunks

    async def ack(self, call_id: str, status: str, **fields: object) -> tuple[int, Json]:
        body = {"toolCallId": call_id, "status": status, "requestedAt": REQUESTED_AT, **fields}
        response = await self.http.post(self.path, json=body)
        self.acks.append((response.status_code, response.json()))
        return self.acks[-1]

    @property
    def kinds(self) -> list[str]:
        return [chunk["type"] for chunk in self.chunks]

    @property
    def text(self) -> str:
        return "".join(chunk["delta"] for chunk in self.chunks if chunk["type"] == "text-delta")

    def one(self, kind: str) -> Json:
        [chunk] = [chunk for chunk in self.chunks if chunk["type"] == kind]
        return chunk

    async def _take(self, chunk: Json) -> None:
        self.chunks.append(chunk)
        if chunk["type"] != "tool-input-available" or not chunk.get("toolCallId"):
            # without an id there is nothing to acknowledge, so nothing is run
            return
        handler = self.handlers.get(chunk["toolName"])
        if handler is None:
            return
        try:
            output = handler(chunk["input"])
        except RuntimeError as error:
            await self.ack(chunk["toolCallId"], "failed", output={}, errorText=str(error))
            return
        await self.ack(chunk["toolCallId"], "success", output=output, errorText=None)
