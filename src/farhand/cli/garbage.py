"""How often Python looks for what only refers to itself: seldom, and not at what a command has loaded."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 10_000
"""New objects before the next collection; Python's own 700 are fewer than the requests of one moment hold."""


@contextmanager
def loading() -> Iterator[None]:
    """For imports of ours alone: what they load stays and holds next to no garbage, so nothing looks through
    it, neither now nor later. What a user's own program loads is not known that well."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def spare_collections() -> None:
    """For a process that is ready to serve: what is loaded by now stays, and is not looked through again by
    every full collection, which would stop everybody for as long as that takes. And the young are left alone
    for longer: nearly all that a request makes is freed when it ends, without being looked through once."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)
