"""A page that speaks the chat stream as AI SDK's client does: it keeps the messages and posts them again.

Every response goes through the stream checker, whole, whatever the test looks at.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.stream_checker import Chunk, StreamChecker, read_sse

# Any: what comes over the wire is looked at by its fields, and a wrong one fails the test
Json = Any
WITHIN_SEC = 20.0
_numbers = itertools.count(1)


@dataclass
class Turn:
    """One response: its chunks if it is a stream, its JSON if it is not."""

    status: int
    chunks: list[Chunk] = field(default_factory=list)
    body: Json = None
    headers: dict[str, str] = field(default_factory=dict)
    ids: list[str | None] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        """Types in their order, deltas of one block joined."""
        kinds = [chunk["type"] for chunk in self.chunks]
        return [kind for kind, _ in itertools.groupby(kinds)]

    @property
    def text(self) -> str:
        return "".join(chunk["delta"] for chunk in self.chunks if chunk["type"] == "text-delta")

    @property
    def message_id(self) -> str:
        return str(self.chunks[0]["messageId"])

    @property
    def finish(self) -> str:
        return str(self.chunks[-1].get("finishReason"))

    def of(self, kind: str) -> list[Chunk]:
        return [chunk for chunk in self.chunks if chunk["type"] == kind]

    def one(self, kind: str) -> Chunk:
        [chunk] = self.of(kind)
        return chunk

    @property
    def calls(self) -> list[str]:
        """The calls that this response lets a client run, or shows for the first time."""
        shown = ("tool-input-start", "tool-input-available")
        return list(dict.fromkeys(chunk["toolCallId"] for chunk in self.chunks if chunk["type"] in shown))


class Live:
    """A response that is read while it is written."""

    def __init__(self, response: httpx2.Response, known: set[str], heard: Callable[[Chunk], None]) -> None:
        self.turn = Turn(response.status_code, headers=dict(response.headers))
        self._bytes = response.aiter_bytes()
        self._checker = StreamChecker(known=known)
        self._heard = heard
        self._rest = b""
        self._read = 0

    async def until(self, kind: str) -> Chunk:
        """The next chunk of this type; all before it are read, too."""
        async with asyncio.timeout(WITHIN_SEC):
            while True:
                chunk = await self._next()
                if chunk["type"] == kind:
                    return chunk

    async def rest(self) -> Turn:
        """All of the response, which must end by itself and be well-formed."""
        async with asyncio.timeout(WITHIN_SEC):
            while await self._more():
                pass
        self._checker.finished()
        return self.turn

    async def _next(self) -> Chunk:
        while self._read == len(self.turn.chunks):
            assert await self._more(), f"the response ended: {self.turn.kinds}"
        self._read += 1
        return self.turn.chunks[self._read - 1]

    async def _more(self) -> bool:
        piece = await anext(self._bytes, None)
        if piece is None:
            assert not self._rest, f"the body ends in the middle of an event: {self._rest!r}"
            return False
        head, mark, self._rest = (self._rest + piece).rpartition(b"\n\n")
        for frame in read_sse(head + mark):
            self._take(frame.data, frame.id)
        return True

    def _take(self, data: str, position: str | None) -> None:
        self._checker.read_data(data)
        if data == "[DONE]":
            self.turn.ids[-1] = position or self.turn.ids[-1]
            return
        chunk: Chunk = json.loads(data)
        self.turn.chunks.append(chunk)
        self.turn.ids.append(position)
        self._heard(chunk)


class Page:
    """One chat in one tab. `wait` is what it asks for in every post."""

    def __init__(self, http: httpx2.AsyncClient, chat_id: str = "", *, wait: str | None = None) -> None:
        self.http = http
        self.id = chat_id or f"chat-{next(_numbers)}"
        self.wait = wait
        self.messages: list[Json] = []

    async def say(self, text: str, **more: object) -> Turn:
        async with self.saying(text, **more) as live:
            return await live.rest()

    @asynccontextmanager
    async def saying(self, text: str, **more: object) -> AsyncIterator[Live]:
        self.messages.append(user_message(text))
        async with self.sending(**more) as live:
            yield live

    async def send(self, **more: object) -> Turn:
        """Posts the messages as they are now."""
        async with self.sending(**more) as live:
            return await live.rest()

    @asynccontextmanager
    async def sending(self, **more: object) -> AsyncIterator[Live]:
        async with self.http.stream("POST", "/api/chat", json=self.body(**more)) as response:
            yield await self.reading(response)

    async def refused(self, **more: object) -> Turn:
        """A post that is answered with JSON."""
        response = await self.http.post("/api/chat", json=self.body(**more))
        return Turn(response.status_code, body=response.json(), headers=dict(response.headers))

    async def resume(self, after: str | None = None) -> Turn:
        async with self.resuming(after) as live:
            return await live.rest()

    @asynccontextmanager
    async def resuming(self, after: str | None = None) -> AsyncIterator[Live]:
        """A reload: the answer in progress is shown again, from its start."""
        query = "" if after is None else f"?after={after}"
        async with self.http.stream("GET", f"/api/chat/{self.id}/stream{query}") as response:
            assert response.status_code == 200, f"{response.status_code}"
            if after is None:
                self.messages = [each for each in self.messages if each["role"] == "user"]
            yield await self.reading(response)

    async def resume_status(self) -> int:
        async with self.http.stream("GET", f"/api/chat/{self.id}/stream") as response:
            return int(response.status_code)

    async def stop(self) -> Turn:
        response = await self.http.post(f"/api/chat/{self.id}/stop")
        return Turn(response.status_code, body=response.json())

    def body(self, **more: object) -> dict[str, object]:
        wait = {} if self.wait is None else {"wait": self.wait}
        return {"id": self.id, "messages": self.messages, "trigger": "submit-message", **wait, **more}

    @property
    def known(self) -> set[str]:
        """The calls that the last message shows."""
        parts = self.messages[-1]["parts"] if self.messages else []
        return {part["toolCallId"] for part in parts if "toolCallId" in part}

    def part(self, call_id: str) -> Json:
        [part] = [each for each in self.messages[-1]["parts"] if each.get("toolCallId") == call_id]
        return part

    def output(self, call_id: str, output: object) -> None:
        """As `addToolOutput` does."""
        self.part(call_id).update(state="output-available", output=output)

    def fail(self, call_id: str, error: str) -> None:
        self.part(call_id).update(state="output-error", errorText=error)

    def approve(self, call_id: str, *, approved: bool = True, reason: str | None = None) -> None:
        """As `addToolApprovalResponse` does, for the call that asks."""
        part = self.part(call_id)
        answer = {"approved": approved} if reason is None else {"approved": approved, "reason": reason}
        part.update(state="approval-responded", approval={**part["approval"], **answer})

    async def reading(self, response: httpx2.Response) -> Live:
        if response.headers["content-type"] != "text/event-stream":
            raise AssertionError(f"{response.status_code}: {(await response.aread()).decode()}")
        return Live(response, self.known, self.hear)

    def hear(self, chunk: Chunk) -> None:
        """What the page makes of one chunk: its last message grows."""
        if chunk["type"] == "start" and (not self.messages or self.messages[-1]["role"] != "assistant"):
            self.messages.append({"id": chunk["messageId"], "role": "assistant", "parts": []})
        if self.messages and self.messages[-1]["role"] == "assistant":
            reduce(self.messages[-1], chunk)


def user_message(text: str, message_id: str | None = None) -> Json:
    parts = [{"type": "text", "text": text}]
    return {"id": message_id or f"message-{next(_numbers)}", "role": "user", "parts": parts}


def reduce(message: Json, chunk: Chunk) -> None:
    """What a client makes of one chunk."""
    kind = chunk["type"]
    if kind == "start":
        message["id"] = chunk["messageId"]
    elif kind == "start-step":
        message["parts"].append({"type": "step-start"})
    elif kind == "text-start":
        message["parts"].append({"type": "text", "text": "", "state": "streaming"})
    elif kind == "text-delta":
        message["parts"][-1]["text"] += chunk["delta"]
    elif "toolCallId" in chunk:
        _reduce_call(message["parts"], kind, chunk)


def _reduce_call(parts: list[Json], kind: str, chunk: Chunk) -> None:
    call_id = chunk["toolCallId"]
    part = next((each for each in parts if each.get("toolCallId") == call_id), None)
    if part is None:
        part = {"type": f"tool-{chunk['toolName']}", "toolCallId": call_id}
        parts.append(part)
    match kind:
        case "tool-input-start":
            part["state"] = "input-streaming"
        case "tool-input-available":
            part.update(state="input-available", input=chunk["input"])
        case "tool-approval-request":
            part.update(state="approval-requested", approval={"id": chunk["approvalId"]})
        case "tool-output-available":
            part.update(state="output-available", output=chunk["output"])
        case "tool-output-error" | "tool-input-error":
            part.update(state="output-error", errorText=chunk["errorText"])
        case "tool-output-denied":
            part["state"] = "output-denied"
        case _:
            pass


async def until(holds: Callable[[], bool]) -> None:
    """Waits for a fact that nobody announces."""
    async with asyncio.timeout(WITHIN_SEC):
        # looked at again and again: the fact has no event to wait for
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
