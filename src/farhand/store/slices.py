"""Removing much a little at a time, so that everybody else gets a turn in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable


async def in_slices(remove: Callable[[], Awaitable[int]]) -> int:
    """Until nothing is left; how much that was."""
    total = 0
    while removed := await remove():
        total += removed
    return total
