"""How often something is tried: until it works, ever more slowly. The only module that knows `stamina`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from farhand.client.link import Away
from farhand.errors import not_installed

try:
    import stamina
except ModuleNotFoundError as error:
    raise not_installed("Outside programs", "client") from error

T = TypeVar("T")

FIRST_WAIT_SEC = 0.1
LONGEST_WAIT_SEC = 5.0
JITTER_SEC = 0.2


async def until_reached(work: Callable[[], Awaitable[T]], *, within: float | None = None) -> T:
    """What `work` returns, once the server was there for it. With `within`, `Away` after so many seconds."""
    async for attempt in stamina.retry_context(
        on=Away,
        attempts=None,
        timeout=within,
        wait_initial=FIRST_WAIT_SEC,
        wait_max=LONGEST_WAIT_SEC,
        wait_jitter=JITTER_SEC,
    ):
        with attempt:
            return await work()
    raise AssertionError("the last attempt returns or raises")
