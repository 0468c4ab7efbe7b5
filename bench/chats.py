"""The load of live chats: many streams at once that each bring some words a second.

A word says when it was said (`bench/words.py`), so the client knows how late it was.
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
"""Between the last chat's beginning and the first look."""
RAMP_SEC = 1.0
OVER_SEC = 60.0
SAMPLED = 25
"""Chats whose words are looked at one by one: to look at all would keep the client busy."""

_WORD = re.compile(rb"w(\d{9,}) ")


class _Chats:
    """What all of them have said."""

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
    """What one of them has said. A connection that is closed after its end is no fault: a server closes those
    that are idle, and on a busy machine the others take longer than that."""

    def __init__(self, chats: _Chats, *, is_sampled: bool) -> None:
        self._chats = chats
        self._is_sampled = is_sampled
        self._is_over = False

    def hear(self, data: bytes) -> None:
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
    """`count` chats of `rate` words a second, looked at for `seconds`. They come to their end by themselves:
    a server that stores its words says them to the last one, whoever reads."""
    count, rate, seconds = spec["count"], spec["rate"], spec["seconds"]
    heard = _Chats(count)
    each = max(1, count // SAMPLED)
    said = int(rate * (RAMP_SEC + WARM_SEC + seconds + 0.5))
    for number in range(count):
        await _begin(spec["port"], heard, number, chat_text(rate, said), is_sampled=number % each == 0)
        await asyncio.sleep(RAMP_SEC / count)
    await asyncio.sleep(WARM_SEC)
    meter = Meter(spec["pids"])
    heard.is_measured = True
    await asyncio.sleep(seconds)
    heard.is_measured = False
    used = meter.read()
    await asyncio.wait_for(heard.over.wait(), OVER_SEC)
    if heard.fault is not None:
        raise RuntimeError(f"the load found a fault: {heard.fault[:300]!r}")
    late = sorted(heard.late)
    return {
        **used,
        "count": count,
        "words": heard.words,
        "share": heard.words / (used["seconds"] * count * rate),
        "writes": heard.writes / heard.words,
        "each": used["cpu"] / heard.words,
        "p50": late[len(late) // 2] / 1e9,
        "p99": late[int(len(late) * 0.99)] / 1e9,
    }


async def _begin(port: int, heard: _Chats, number: int, text: str, *, is_sampled: bool) -> None:
    connection = await connect(port, _Chat(heard, is_sampled=is_sampled).hear)
    # a name that no load before this one had: its threads are new
    connection.write(chat_request(f"chatter-{number}", f"chat-{os.getpid()}-{number}", text))
