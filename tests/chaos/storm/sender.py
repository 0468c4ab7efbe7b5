"""Sends results and answers during a fault run, until the response is definite."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2

from farhand.core.approval import Answer
from farhand.core.outcome import Failure, Outcome, Success, digest
from tests.chaos.history import Sending, Told

# Any: what comes over the wire is looked at by its fields
Json = Any
SOON_SEC = 0.02
OVERTAKEN = 30
"""So many others that end while one does not: the machine was not to blame."""


@dataclass
class Progress:
    """What everybody together has come to; faults wait for it."""

    told: int = 0
    finished: int = 0
    _grown: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, *, told: int = 0, finished: int = 0) -> None:
        self.told += told
        self.finished += finished
        self._grown.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._grown.clear()
            await self._grown.wait()

    @asynccontextmanager
    async def ends_within(self, seconds: float, name: str) -> AsyncIterator[None]:
        """TimeoutError if everybody is late; AssertionError if only this one is: then it was lost."""
        before = self.finished
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            others = self.finished - before
            assert others < OVERTAKEN, f"{name} did not end in {seconds:g} s, and {others} others did"
            raise


class Sender:
    def __init__(self, client: Callable[[], httpx2.AsyncClient], progress: Progress) -> None:
        self.client = client
        self.progress = progress
        self.results: list[Sending] = []
        self.answers: list[Sending] = []

    async def bring(self, call_id: str, outcome: Outcome) -> None:
        sending = Sending(call_id, digest(outcome), Told.NOTHING)
        await self._send("ack", _ack(call_id, outcome), sending, self.results)

    async def answer(self, call_id: str, approval_id: str, *, approved: bool) -> None:
        body = {"approvalId": approval_id, "approved": approved}
        sending = Sending(call_id, digest(Answer(approved=approved)), Told.NOTHING)
        await self._send("approve", body, sending, self.answers)

    async def _send(self, door: str, body: Json, sending: Sending, book: list[Sending]) -> None:
        """Whatever the line did, the same again is safe."""
        while True:
            try:
                told, winner, kind = await self._try(f"/api/tools/{door}", body)
            except asyncio.CancelledError:
                # the server may have received it anyway
                book.append(sending)
                raise
            book.append(replace(sending, told=told, winner=winner, kind=kind))
            if told is not Told.NOTHING:
                break
            await asyncio.sleep(SOON_SEC)
        self.progress.add(told=1)

    async def _try(self, path: str, body: Json) -> tuple[Told, str | None, str | None]:
        """What was told, with the digest and the kind of the winner where they were."""
        try:
            response = await self.client().post(path, json=body)
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


def _ack(call_id: str, outcome: Outcome) -> Json:
    if isinstance(outcome, Success):
        return {"toolCallId": call_id, "status": "success", "output": outcome.output}
    assert isinstance(outcome, Failure), "a page succeeds or fails"
    return {"toolCallId": call_id, "status": "failed", "errorText": outcome.error}


def _kind(status: str) -> str:
    """The record's word for what the wire calls the outcome."""
    return {"failed": "failure", "timeout": "timed_out"}.get(status, status)
