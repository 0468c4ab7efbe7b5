"""Somebody who chats while everything around breaks: posts, reads, answers, and tries again until it is told.

Writes down what was sent, what was told and what was heard. Decides nothing about what is right.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2

from farhand.core.approval import Answer
from farhand.core.event import Position, parse_bookmark
from farhand.core.outcome import Failure, Outcome, Success, digest
from farhand.testing.ui_stream import DONE, read_sse
from tests.chaos.history import Ending, Gap, Heard, Sending, Told

# Any: what comes over the wire is looked at by its fields
Json = Any
SOON_SEC = 0.02
FINISHED_WITHIN_SEC = 300.0
"""Faults do not wait for a busy machine: a chat that comes to its end may take minutes among them."""


@dataclass
class Progress:
    """What everybody together has come to; faults wait for it."""

    told: int = 0
    finished: int = 0
    begun: int = 0
    _grown: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, *, told: int = 0, finished: int = 0) -> None:
        self.told += told
        self.finished += finished
        self._grown.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._grown.clear()
            await self._grown.wait()


class Person:
    """One chat, from its message to the end of its answer."""

    def __init__(
        self, chat: str, client: Callable[[], httpx2.AsyncClient], dice: random.Random, progress: Progress
    ) -> None:
        self.chat = chat
        self.heard: list[Heard] = []
        self.sendings: list[Sending] = []
        self.answers: list[Sending] = []
        self.gaps: list[Gap] = []
        self.endings: list[Ending] = []
        self.is_finished = False
        self._client = client
        self._dice = dice
        self._progress = progress
        self._is_held = dice.random() < 0.7
        self._is_posted = False
        self._position = "0.0"
        self._pending: list[Json] = []
        self._known: set[str] = set()
        self._group: asyncio.TaskGroup | None = None

    async def talk(self) -> None:
        async with asyncio.timeout(FINISHED_WITHIN_SEC), asyncio.TaskGroup() as self._group:
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
        client = self._client()
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
            self.gaps.append(Gap(at.seq, at.offset, at.takeover))
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
        answer = self._bring(call_id) if "toolName" in chunk else self._say_yes_or_no(chunk)
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
                sending = Sending(call_id, digest(outcome), Told.NOTHING)
                senders.create_task(self._send("ack", _ack(call_id, outcome), sending, self.sendings))

    async def _say_yes_or_no(self, chunk: Json) -> None:
        """Mostly one answer; sometimes the same from two tabs, sometimes a yes and a no."""
        first = self._dice.random() < 0.7
        [answers] = self._dice.choices([[first], [first] * 2, [first, not first]], weights=(4, 2, 2))
        async with asyncio.TaskGroup() as senders:
            for approved in answers:
                body = {"approvalId": chunk["approvalId"], "approved": approved}
                sending = Sending(chunk["toolCallId"], digest(Answer(approved=approved)), Told.NOTHING)
                senders.create_task(self._send("approve", body, sending, self.answers))

    async def _send(self, door: str, body: Json, sending: Sending, book: list[Sending]) -> None:
        """Until something definite is told; whatever the line did, the same again is safe."""
        while True:
            told, winner, kind = await self._try(f"/api/tools/{door}", body)
            book.append(replace(sending, told=told, winner=winner, kind=kind))
            if told is not Told.NOTHING:
                break
            await asyncio.sleep(SOON_SEC)
        self._progress.add(told=1)

    async def _try(self, path: str, body: Json) -> tuple[Told, str | None, str | None]:
        """What was told, with the digest and the kind of the winner where they were."""
        try:
            response = await self._client().post(path, json=body)
        except httpx2.HTTPError:
            return Told.NOTHING, None, None
        answer = response.json()
        match response.status_code:
            case 200:
                return (Told.REPEATED if answer.get("ignored") else Told.ACCEPTED), None, None
            case 409 if answer["reason"] == "conflict":
                return Told.CONFLICT, answer["digest"], _kind(answer["status"])
            case 410:
                return Told.OVER, None, _kind(answer["status"])
            case 404:
                return Told.UNKNOWN, None, None
            case 503 | 429:
                return Told.NOTHING, None, None
            case status:
                raise AssertionError(f"{path}: {status} {answer}")


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


def _ack(call_id: str, outcome: Outcome) -> Json:
    if isinstance(outcome, Success):
        return {"toolCallId": call_id, "status": "success", "output": outcome.output}
    assert isinstance(outcome, Failure), "a page succeeds or fails"
    return {"toolCallId": call_id, "status": "failed", "errorText": outcome.error}


def _kind(status: str) -> str:
    """The record's word for what the wire calls the outcome."""
    return {"failed": "failure", "timeout": "timed_out"}.get(status, status)
