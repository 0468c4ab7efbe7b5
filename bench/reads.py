"""Counts the store reads of an AI SDK answer, for which the page posts its thread again with the result."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from starlette.types import Message

from farhand.server.app import App
from farhand.store.base import Store
from farhand.store.open import open_store

# the reads counted here must be those that the guards count
from tests.guards.counted_round_trip import BY_THE_CLOCK, CALL, INPUT, asked_of, make_app, post

WRITES = frozenset({"append", "add_to_feed", "delete"})
WARM = 3
"""Turns before the one that is counted: one-time caching is not part of a turn."""


@dataclass(frozen=True)
class Reads:
    """The reads of one answer, by the name of the method."""

    cached: Counter[str]
    """At the server that opened the call."""
    afresh: Counter[str]
    """At a server that has never seen the thread."""


async def read_by_turns(address: str) -> Reads:
    store = await open_store(address)
    asked = count_reads(store)
    app = make_app(store)
    async with app.lifespan():
        for number in range(WARM):
            await Turn(app, f"warm-{number}").run()
        turn = Turn(app, "cached")
        await turn.ask()
        asked.clear()
        await turn.answer()
        cached = asked.copy()
        left = Turn(app, "afresh")
        await left.ask()
    store = await open_store(address)
    asked = count_reads(store)
    app = make_app(store)
    async with app.lifespan():
        asked.clear()
        await Turn(app, left.thread, left.call_id).answer()
        return Reads(cached, asked.copy())


class Turn:
    """Two posts, as a page with the AI SDK makes them: a message, and the thread with the call's result."""

    def __init__(self, app: App, thread: str, call_id: str = "") -> None:
        self.thread = thread
        self.call_id = call_id
        self._app = app

    async def run(self) -> None:
        await self.ask()
        await self.answer()

    async def ask(self) -> None:
        said = await self._post([self._message()])
        found = CALL.search(said)
        assert found is not None, said
        self.call_id = found[1].decode()

    async def answer(self) -> None:
        part = {
            "type": "tool-open_url",
            "toolCallId": self.call_id,
            "state": "output-available",
            "input": json.loads(INPUT),
            "output": "hello",
        }
        answered: dict[str, object] = {"id": f"{self.thread}-a", "role": "assistant", "parts": [part]}
        said = await self._post([self._message(), answered])
        assert b"hello" in said, said

    def _message(self) -> dict[str, object]:
        return {"id": f"{self.thread}-m", "role": "user", "parts": [{"type": "text", "text": "go"}]}

    async def _post(self, messages: list[dict[str, object]]) -> bytes:
        received: list[bytes] = []

        async def receive(message: Message) -> None:
            received.append(message.get("body", b""))

        body = {"id": self.thread, "messages": messages, "wait": "turn"}
        await post(self._app, "/api/chat", body, receive)
        return b"".join(received)


def count_reads(store: Store) -> Counter[str]:
    """Counts from now on, without periodic reads and writes."""
    asked: Counter[str] = Counter()
    for name in asked_of(Store) - BY_THE_CLOCK - WRITES:
        _count(store, name, asked)
    return asked


def _count(store: Store, name: str, asked: Counter[str]) -> None:
    read = getattr(store, name)

    # Any: a read may answer anything
    async def counted(*arguments: Any, **named: Any) -> Any:
        asked[name] += 1
        return await read(*arguments, **named)

    setattr(store, name, counted)
