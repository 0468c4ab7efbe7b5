"""A promise of time, held by what was measured.

A machine that has much else to do may be late once, but a promise that is broken is broken every time: it is
measured again until it is kept, a few times at most. What was measured is printed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

TRIES = 3


async def kept(what: str, promised: float, measure: Callable[[int], Awaitable[float]]) -> None:
    """`measure` is told the number of the try, and answers with seconds."""
    took: list[float] = []
    for number in range(TRIES):
        took.append(await measure(number))
        if took[-1] <= promised:
            break
    figures = ", ".join(f"{each:.2f} s" for each in took)
    say(f"{what}: {figures} (promised: {promised:g} s)")
    assert took[-1] <= promised, f"{what}: {figures}, and {promised:g} s were promised"


def say(figure: str) -> None:
    """For whoever runs the test with -s, or sees it fail."""
    # printing is what this is for
    print(figure)  # noqa: T201
