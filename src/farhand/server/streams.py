"""What stays open: how many streams and sockets one principal may have, and whose sign-in is asked for again.

Owns the places and the order in which they are looked at again; time is handed in. Must not know what is sent
on a stream, nor how a sign-in is judged.
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


class Open(Struct, eq=False):
    """One open stream or socket. `cut` ends it at once."""

    scope: Scope
    needs: str
    principal: Principal
    owner: Owner
    cut: Cut
    due: float = 0.0
    is_over: bool = False


class Streams:
    def __init__(self, limits: Limits, *, again_after: float) -> None:
        self._limits = limits
        self.again_after = again_after
        self._of: dict[Owner, int] = {}
        self._count = 0
        # all wait equally long, so who came first is due first
        self._waiting: deque[Open] = deque()

    def __len__(self) -> int:
        return self._count

    @contextmanager
    def place(self, opened: Open, now: float) -> Iterator[None]:
        """Keeps a place while the stream is open; `TooMany` if there is none."""
        self.begin(opened, now)
        try:
            yield
        finally:
            self.end(opened)

    def begin(self, opened: Open, now: float) -> Open:
        """Takes a place, for whoever gives it back with `end`; `TooMany` if there is none."""
        owner = opened.owner
        here = self._of.get(owner, 0)
        if here >= self._limits.streams_per_principal:
            raise _too_many(
                f"One sign-in may have {self._limits.streams_per_principal} streams open at once."
            )
        if self._count >= self._limits.streams_per_worker:
            raise _too_many("The server has as many streams open as it can hold.")
        self._of[owner] = here + 1
        self._count += 1
        opened.due = now + self.again_after
        self._waiting.append(opened)
        return opened

    def end(self, opened: Open) -> None:
        opened.is_over = True
        # it stays in line for a while, but nothing of its request does
        opened.scope, opened.cut = {}, _cut_already
        self._count -= 1
        here = self._of[opened.owner] - 1
        if here:
            self._of[opened.owner] = here
        else:
            del self._of[opened.owner]

    def due(self, now: float) -> list[Open]:
        """Those to ask about again by now; each of them comes back in its turn."""
        due: list[Open] = []
        while self._waiting and (self._waiting[0].is_over or self._waiting[0].due <= now):
            opened = self._waiting.popleft()
            if not opened.is_over:
                opened.due = now + self.again_after
                due.append(opened)
        self._waiting.extend(due)
        return due

    def next_due(self) -> float | None:
        """When somebody has to be asked about again; None while nothing is open."""
        while self._waiting and self._waiting[0].is_over:
            self._waiting.popleft()
        return self._waiting[0].due if self._waiting else None


async def _cut_already() -> None:
    """For what is over."""


def _too_many(message: str) -> TooMany:
    return TooMany(message, hint="Close one that is not needed; nothing was applied.", retry_after=5)
