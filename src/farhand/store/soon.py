"""How long whoever asks from outside waits to hear what became of a write.

While a database does not say whether it kept a transaction, the runs of this process wait for the truth: what
they have told must not be written twice. A person or a program that asked is told instead that nobody knows,
and asks again: the same again is safe. Must not know what is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from farhand.errors import StoreDown
from farhand.store.base import Store

SOON_SEC = 8.0
"""Longer than any write takes that comes to its end; shorter than most are willing to wait."""

T = TypeVar("T")


def soon(store: Store, work: Awaitable[T]) -> Awaitable[T]:
    """What the work brings. `StoreDown` if that takes too long: what it has asked the store for may be kept
    all the same."""
    # a store of this process alone is never in doubt
    return _in_time(work) if store.is_shared else work


async def _in_time(work: Awaitable[T]) -> T:
    patience = asyncio.timeout(SOON_SEC)
    try:
        async with patience:
            return await work
    except TimeoutError:
        if not patience.expired():
            raise
        raise StoreDown(
            "The store has not said yet whether this was kept.",
            hint="Send the same again in a moment: it is not done twice.",
        ) from None
