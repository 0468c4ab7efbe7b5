"""WebSockets of the chat stream as a test sees them: frames in, frames out, every response checked."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.faces.served import Served
from tests.faces.ui_stream.page import Page, Turn, user_message
from tests.stream_checker import Chunk, StreamChecker, read_sse

# Any: what comes over the wire is looked at by its fields, and a wrong one fails the test
Json = Any
WITHIN_SEC = 20.0
_numbers = itertools.count(1)


@asynccontextmanager
async def wire(served: Served, path: str, *, token: str | None = None) -> AsyncIterator[ClientConnection]:
    headers = {"authorization": f"Bearer {served.token if token is None else token}"}
    address = served.url.replace("http", "ws", 1) + path
    async with connect(address, additional_headers=headers, max_size=None, proxy=None) as socket:
        yield socket


async def read(socket: ClientConnection) -> str:
    async with asyncio.timeout(WITHIN_SEC):
        frame = await socket.recv()
    assert isinstance(frame, str), "every frame is text"
    return frame


async def closed_with(socket: ClientConnection) -> int | None:
    """The code it is closed with; what still arrives before is passed over."""
    async with asyncio.timeout(WITHIN_SEC):
        try:
            while True:
                await socket.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd is not None else None


class Shared:
    """`/api/chat/ws`, where many requests share a connection: frames are kept until they are asked for."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self._kept: dict[str, list[Json]] = {}

    @property
    def unread(self) -> list[Json]:
        """What came and was not asked for."""
        return [frame for frames in self._kept.values() for frame in frames]

    async def send(self, page: Page, **more: object) -> str:
        """The page's messages as AI SDK's transport sends them; the id of the request."""
        request_id = f"request-{next(_numbers)}"
        frame = {"type": "send", "requestId": request_id, **page.body(), "headers": {}, "body": {}, **more}
        await self.socket.send(json.dumps(frame))
        return request_id

    async def resume(self, chat_id: str) -> str:
        request_id = f"request-{next(_numbers)}"
        await self.socket.send(json.dumps({"type": "resume", "requestId": request_id, "id": chat_id}))
        return request_id

    async def abort(self, request_id: str) -> None:
        await self.socket.send(json.dumps({"type": "abort", "requestId": request_id}))

    async def frame(self, request_id: str) -> Json:
        """The next frame of this request."""
        while not self._kept.get(request_id):
            frame = json.loads(await read(self.socket))
            self._kept.setdefault(frame["requestId"], []).append(frame)
        return self._kept[request_id].pop(0)

    async def until(self, request_id: str, kind: str) -> Chunk:
        """The next chunk of this type, without a look at what comes before it."""
        while (frame := await self.frame(request_id))["type"] != "chunk" or frame["chunk"]["type"] != kind:
            assert frame["type"] == "chunk", f"no {kind} before {frame}"
        return dict(frame["chunk"])

    async def turn(self, request_id: str, page: Page) -> Turn:
        """The whole response, numbered without gaps, as the page hears it."""
        turn, checker = Turn(200), StreamChecker(known=page.known)
        while (frame := await self.frame(request_id))["type"] == "chunk":
            assert frame["sequence"] == len(turn.chunks), "numbered from 0 on"
            assert frame.keys() == {"type", "requestId", "sequence", "chunk"}
            checker.read(frame["chunk"])
            turn.chunks.append(frame["chunk"])
            page.hear(frame["chunk"])
        assert frame == {"type": "end", "requestId": request_id}
        checker.read_done()
        checker.finished()
        return turn


class Held:
    """`/api/chat/live`: one exchange at a time."""

    def __init__(self, socket: ClientConnection, page: Page) -> None:
        self.socket = socket
        self.page = page

    async def message(self, text: str | None = None) -> None:
        """The page's messages, after a new one if there is one."""
        if text is not None:
            self.page.messages.append(user_message(text))
        await self.tell(
            type="message", id=self.page.id, messages=self.page.messages, trigger="submit-message"
        )

    async def tell(self, **frame: object) -> None:
        await self.socket.send(json.dumps(frame))

    async def chunk(self) -> Chunk:
        [event] = read_sse((await read(self.socket)).encode())
        chunk: Chunk = json.loads(event.data)
        self.page.hear(chunk)
        return chunk

    async def until(self, kind: str) -> Chunk:
        while (chunk := await self.chunk())["type"] != kind:
            pass
        return chunk

    async def turn(self) -> Turn:
        """The frames of one exchange, up to `[DONE]`."""
        turn, checker = Turn(200), StreamChecker(known=self.page.known)
        while not checker.ended:
            [event] = read_sse((await read(self.socket)).encode())
            checker.read_data(event.data)
            if event.data != "[DONE]":
                turn.chunks.append(json.loads(event.data))
                self.page.hear(turn.chunks[-1])
        checker.finished()
        return turn

    async def pong(self) -> Json:
        """What proves that nothing else was sent before: frames keep their order."""
        await self.tell(type="ping", timestamp=next(_numbers))
        return json.loads(await read(self.socket))
