"""Open streams and sockets: limits per principal and per process, and when each is re-authenticated.

Owns the counts and the order of re-authentication; time is passed in. Must not know what is sent on a stream
or how a credential is checked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct
from starlette.types import Scope

from farhand.core.principal import Owner, Principal
from farhand.core.settings import Limits
from farhand.errors import TooMany

Cut = Callable[[], Awaitable[None]]


class OpenStream(Struct, eq=False):
    """One open stream or socket. `cut` aborts it."""

    scope: Scope
    needs: str
    principal: Principal
    owner: Owner
    cut: Cut
    due: float = 0.0
    is_over: bool = False


class StreamRegistry:
    def __init__(self, limits: Limits, *, again_after: float) -> None:
        self._limits = limits
        self.again_after = again_after
        self._of: dict[Owner, int] = {}
        self._count = 0
        # all have the same interval, so this is also the order in which they are due
        self._waiting: deque[OpenStream] = deque()

    def __len__(self) -> int:
        return self._count

    @contextmanager
    def counted(self, opened: OpenStream, now: float) -> Iterator[None]:
        """Counts the stream while it is open; `TooMany` if a limit is reached."""
        self.begin(opened, now)
        try:
            yield
        finally:
            self.end(opened)

    def begin(self, opened: OpenStream, now: float) -> OpenStream:
        """Counts the stream until `end`; `TooMany` if a limit is reached."""
        owner = opened.owner
        here = self._of.get(owner, 0)
        if here >= self._limits.streams_per_principal:
            raise _too_many(f"One sign-in may have {self._limits.streams_per_principal} open streams.")
        if self._count >= self._limits.streams_per_worker:
            raise _too_many("The server has reached its limit of open streams.")
        self._of[owner] = here + 1
        self._count += 1
        opened.due = now + self.again_after
        self._waiting.append(opened)
        return opened

    def end(self, opened: OpenStream) -> None:
        opened.is_over = True
        # it stays in the queue for a while, but its request can be freed
        opened.scope, opened.cut = {}, _cut_already
        self._count -= 1
        here = self._of[opened.owner] - 1
        if here:
            self._of[opened.owner] = here
        else:
            del self._of[opened.owner]

    def due(self, now: float) -> list[OpenStream]:
        """Those to re-authenticate now; each is queued again."""
        due: list[OpenStream] = []
        while self._waiting and (self._waiting[0].is_over or self._waiting[0].due <= now):
            opened = self._waiting.popleft()
            if not opened.is_over:
                opened.due = now + self.again_after
                due.append(opened)
        self._waiting.extend(due)
        return due

    def next_due(self) -> float | None:
        """When the next one is due; None while nothing is open."""
        while self._waiting and self._waiting[0].is_over:
            self._waiting.popleft()
        return self._waiting[0].due if self._waiting else None


async def _cut_already() -> None:
    """For a stream that has ended."""


def _too_many(message: str) -> TooMany:
    return TooMany(message, hint="Close one you do not need; nothing was applied.", retry_after=5)
