"""Tunes the garbage collector: fewer collections, and none over what was imported."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 10_000
"""New objects before the next collection; Python's default of 700 is less than concurrent requests hold."""


@contextmanager
def without_gc() -> Iterator[None]:
    """For our own imports: the modules stay and hold next to no garbage, so the collector skips them now and
    later. Not for imports of a user's own program, which may hold garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def tune_gc() -> None:
    """For a process that is ready to serve: what is loaded by now stays, and full collections, which stop
    every request, no longer scan it. Young objects are collected less often: nearly everything that a request
    makes is freed by reference counts when it ends."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)
