"""Chats during a fault run: posts, reads, answers, and retries until the response is definite.

Writes down what was sent, what was told and what was heard. Decides nothing about what is right.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import httpx2

from farhand.core.outcome import Failure, Outcome, Success
from farhand.core.position import Position, parse_bookmark
from tests.chaos.history import Ending, Gap, Heard
from tests.chaos.storm.sender import SOON_SEC, Json, Progress, Sender
from tests.stream_checker import DONE, read_sse

FINISHED_WITHIN_SEC = 300.0
"""Faults do not wait for a busy machine: a chat that comes to its end may take minutes among them."""


class Person:
    """One chat, from its message to the end of its answer."""

    def __init__(
        self, chat: str, client: Callable[[], httpx2.AsyncClient], dice: random.Random, progress: Progress
    ) -> None:
        self.chat = chat
        self.sender = Sender(client, progress)
        self.heard: list[Heard] = []
        self.gaps: list[Gap] = []
        self.endings: list[Ending] = []
        self.is_finished = False
        self._dice = dice
        self._progress = progress
        self._is_held = dice.random() < 0.7
        self._is_posted = False
        self._position = "0.0"
        self._pending: list[Json] = []
        self._known: set[str] = set()
        self._group: asyncio.TaskGroup | None = None

    async def talk(self) -> None:
        async with (
            self._progress.ends_within(FINISHED_WITHIN_SEC, self.chat),
            asyncio.TaskGroup() as self._group,
        ):
            await self._listen()
            while not self.is_finished:
                await asyncio.sleep(SOON_SEC)
                await self._listen()
        self._progress.add(finished=1)

    async def _listen(self) -> None:
        """For as long as one connection lasts."""
        with suppress(httpx2.HTTPError):
            async with self._opened() as response:
                await self._read(response)
        self._pending.clear()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[httpx2.Response]:
        client = self.sender.client()
        if self._is_posted and self._position != "0.0":
            address = f"/api/chat/{self.chat}/stream?after={self._position}"
            async with client.stream("GET", address) as response:
                yield response
            return
        # nothing is known of an answer: the same post again begins it, or shows it from its start
        self._is_posted = True
        self.heard.clear()
        message = {"id": f"{self.chat}-m", "role": "user", "parts": [{"type": "text", "text": self.chat}]}
        wait = "hold" if self._is_held else "turn"
        body = {"id": self.chat, "wait": wait, "messages": [message]}
        async with client.stream("POST", "/api/chat?after=0.0", json=body) as response:
            yield response

    async def _read(self, response: httpx2.Response) -> None:
        if response.status_code in (204, 409, 429, 503):
            return
        assert response.status_code == 200, (response.status_code, await response.aread())
        rest = b""
        frames: list[str] = []
        is_whole = False
        try:
            async for piece in response.aiter_bytes():
                head, mark, rest = (rest + piece).rpartition(b"\n\n")
                for frame in read_sse(head + mark):
                    frames.append(frame.data)
                    self._hear(frame.data, frame.id)
            is_whole = True
        finally:
            said_after = len(frames) - 1 - frames.index(DONE) if DONE in frames else 0
            self.endings.append(Ending(frames.count(DONE), said_after, is_whole))

    def _hear(self, data: str, position: str | None) -> None:
        chunk: Json = {"type": DONE} if data == DONE else json.loads(data)
        if chunk["type"] == "data-gap":
            # our place is unknown there: all is told again from the start
            at = _place(self._position)
            self.gaps.append(Gap(at.seq, at.offset))
            self.heard.clear()
            self._pending.clear()
            return
        self._pending.append(chunk)
        if position is None:
            return
        chunks, self._pending = self._pending, []
        at = _place(position)
        self.heard.append(Heard(at.seq, at.offset, "".join(map(described, chunks))))
        self._position = position
        for each in chunks:
            self._react(each)

    def _react(self, chunk: Json) -> None:
        if chunk["type"] == "finish" and chunk["finishReason"] == "stop":
            self.is_finished = True
        assert chunk["type"] != "error", chunk
        call_id = chunk.get("toolCallId")
        wanted = {"tool-input-available": chunk.get("toolName") == "open_page", "tool-approval-request": True}
        if not wanted.get(chunk["type"], False) or call_id in self._known:
            return
        self._known.add(call_id)
        assert self._group is not None, "it listens while it talks"
        answer = (
            self._bring(call_id) if "toolName" in chunk else self._say_yes_or_no(call_id, chunk["approvalId"])
        )
        self._group.create_task(answer)

    async def _bring(self, call_id: str) -> None:
        """Mostly one result; sometimes the same from two tabs, sometimes two that differ."""
        ways: list[list[Outcome]] = [
            [Success({"viewKey": "v1"})],
            [Failure("no window")],
            [Success({"viewKey": "v1"})] * 3,
            [Success({"viewKey": "v1"}), Success({"viewKey": "v2"}), Failure("no window")],
        ]
        [outcomes] = self._dice.choices(ways, weights=(5, 1, 2, 2))
        async with asyncio.TaskGroup() as senders:
            for outcome in outcomes:
                senders.create_task(self.sender.bring(call_id, outcome))

    async def _say_yes_or_no(self, call_id: str, approval_id: str) -> None:
        """Mostly one answer; sometimes the same from two tabs, sometimes a yes and a no."""
        first = self._dice.random() < 0.7
        [answers] = self._dice.choices([[first], [first] * 2, [first, not first]], weights=(4, 2, 2))
        async with asyncio.TaskGroup() as senders:
            for approved in answers:
                senders.create_task(self.sender.answer(call_id, approval_id, approved=approved))


def described(chunk: Json) -> str:
    """One chunk in the words of the checker; the frame around what is said is no event."""
    call_id = chunk.get("toolCallId")
    match chunk["type"]:
        case "text-delta":
            return str(chunk["delta"])
        case "tool-input-delta":
            return str(chunk["inputTextDelta"])
        case "tool-input-start":
            return f"begun {call_id};"
        case "tool-input-available":
            return f"ready {call_id};"
        case "tool-approval-request":
            return f"asks {call_id};"
        case "tool-output-available" | "tool-output-error" | "tool-output-denied":
            return f"settled {call_id};"
        case "finish":
            return f"finish {chunk['finishReason']};"
        case _:
            return ""


def _place(position: str) -> Position:
    bookmark = parse_bookmark(position)
    assert bookmark is not None, position
    return bookmark.position
