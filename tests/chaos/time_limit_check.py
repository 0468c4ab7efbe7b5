"""Checks a time limit against measured values.

A machine that others keep busy may be late: then, and only then, it is measured again, a few times at most. A
promise that is broken although nobody else was there is broken. Every miss is told at the end of all tests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from tests.chaos.machine import Others

TRIES = 3
STARVED = 0.2
"""The share of the machine that others must have had for a miss to be theirs."""
MISSED = "late: "
"""What a line begins with that is shown although its test has passed."""


class Control(Protocol):
    def share(self) -> float: ...


async def kept(
    what: str,
    promised: float,
    measure: Callable[[int], Awaitable[float]],
    control: Callable[[], Control] = Others,
) -> None:
    """`measure` is told the number of the try, and answers with seconds."""
    for number in range(TRIES):
        others = control()
        took = await measure(number)
        share = others.share()
        figure = f"{what}: {took:.2f} s (promised: {promised:g} s; others had {share:.0%} of the machine)"
        if took <= promised:
            say(figure)
            return
        say(MISSED + figure)
        assert share >= STARVED, f"{figure}: nobody else was to blame"
    raise AssertionError(f"{what}: late {TRIES} times, and {promised:g} s were promised")


def say(figure: str) -> None:
    """For whoever runs the test with -s, or sees it fail."""
    # printing is what this is for
    print(figure)  # noqa: T201
