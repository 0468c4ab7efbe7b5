"""The load of live chats: many concurrent streams that each deliver some words a second.

A word contains the time at which it was sent (`bench/words.py`), so the client knows its delay.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from typing import Any

from bench.connection import connect
from bench.dialects import chat_request
from bench.machine import Meter
from bench.words import chat_text

WARM_SEC = 1.0
"""Between the start of the last chat and the start of the measurement."""
RAMP_SEC = 1.0
OVER_SEC = 60.0
SAMPLED = 25
"""Chats whose words are timed one by one: timing all of them would keep the client busy."""

_WORD = re.compile(rb"w(\d{9,}) ")


class _Chats:
    """The words of all chats."""

    def __init__(self, count: int) -> None:
        self.words = 0
        self.writes = 0
        self.late: list[int] = []
        self.is_measured = False
        self.fault: bytes | None = None
        self.over = asyncio.Event()
        self._open = count

    def count(self, data: bytes, *, is_sampled: bool) -> None:
        if not self.is_measured:
            return
        self.writes += 1
        found = _WORD.findall(data)
        self.words += len(found)
        if is_sampled:
            now = time.monotonic_ns()
            self.late += [now - int(said_at) for said_at in found]

    def end_one(self) -> None:
        self._open -= 1
        if self._open == 0:
            self.over.set()

    def fail(self, fault: bytes) -> None:
        if not self.over.is_set():
            self.fault = fault
            self.over.set()


class _Chat:
    """The words of one chat. A connection that is closed after its end is not a fault: a server closes idle
    connections, and on a busy machine the other chats may take longer than that."""

    def __init__(self, chats: _Chats, *, is_sampled: bool) -> None:
        self._chats = chats
        self._is_sampled = is_sampled
        self._is_over = False

    def on_data(self, data: bytes) -> None:
        if not data:
            if not self._is_over:
                self._chats.fail(b"a connection was closed")
            return
        self._chats.count(data, is_sampled=self._is_sampled)
        if data.startswith(b"HTTP/") and not data.startswith(b"HTTP/1.1 200"):
            self._chats.fail(data)
        elif data.endswith(b"0\r\n\r\n"):
            self._is_over = True
            self._chats.end_one()


async def chats(spec: dict[str, Any]) -> dict[str, object]:
    """`count` chats of `rate` words a second, measured for `seconds`. The chats run to their end: a server
    that stores its words sends all of them."""
    count, rate, seconds = spec["count"], spec["rate"], spec["seconds"]
    totals = _Chats(count)
    each = max(1, count // SAMPLED)
    said = int(rate * (RAMP_SEC + WARM_SEC + seconds + 0.5))
    for number in range(count):
        await _begin(spec["port"], totals, number, chat_text(rate, said), is_sampled=number % each == 0)
        await asyncio.sleep(RAMP_SEC / count)
    await asyncio.sleep(WARM_SEC)
    meter = Meter(spec["pids"])
    totals.is_measured = True
    await asyncio.sleep(seconds)
    totals.is_measured = False
    used = meter.read()
    await asyncio.wait_for(totals.over.wait(), OVER_SEC)
    if totals.fault is not None:
        raise RuntimeError(f"the load client found a fault: {totals.fault[:300]!r}")
    late = sorted(totals.late)
    return {
        **used,
        "count": count,
        "words": totals.words,
        "share": totals.words / (used["seconds"] * count * rate),
        "writes": totals.writes / totals.words,
        "each": used["cpu"] / totals.words,
        "p50": late[len(late) // 2] / 1e9,
        "p99": late[int(len(late) * 0.99)] / 1e9,
    }


async def _begin(port: int, totals: _Chats, number: int, text: str, *, is_sampled: bool) -> None:
    connection = await connect(port, _Chat(totals, is_sampled=is_sampled).on_data)
    # a name that no earlier load used, so that the threads are new
    connection.write(chat_request(f"chatter-{number}", f"chat-{os.getpid()}-{number}", text))
