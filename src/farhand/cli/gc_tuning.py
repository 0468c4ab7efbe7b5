"""Tunes the garbage collector: fewer collections, and none of them scans imported modules."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 10_000
"""New objects before the next collection; concurrent requests hold more than Python's default of 700."""
MIDDLE = 1
"""Collections of new objects before the next one of those that survived: it stops every request for as long
as they take to scan, up to one more times `YOUNG`. Each survivor is scanned there once, so more such
collections take no more time altogether. Python's default is 10."""
OLD = 60
"""Collections of survivors before the next full one, as many new objects as by default."""


@contextmanager
def without_gc() -> Iterator[None]:
    """For our own imports: modules stay in memory and create almost no garbage, so the collector skips them
    now and later. Not for imports of a user's program, which may create garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def tune_gc() -> None:
    """For a process that is ready to serve: everything loaded so far stays, so full collections, which stop
    every request, no longer scan it. Young objects are collected less often: reference counts free nearly
    everything that a request creates when it ends."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
