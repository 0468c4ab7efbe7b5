"""What every server sends in a live chat: words at a steady pace, each with the time at which it was sent.

It imports nothing of farhand, since peers use it in environments of their own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

CHAT = "chat"


def chat_text(rate: float, count: int) -> str:
    """The message that is answered with `count` words, `rate` of them a second."""
    return f"{CHAT} {rate:g} {count}"


async def words(text: str) -> AsyncIterator[str]:
    _, rate, count = text.split()
    pace, due = 1 / float(rate), time.monotonic()
    for _ in range(int(count)):
        yield f"w{time.monotonic_ns()} "
        due += pace
        await asyncio.sleep(max(0.0, due - time.monotonic()))
