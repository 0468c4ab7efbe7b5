"""An awaitable whose first step was made at once. Owns the trick; must not know what is awaited.

Most reads and writes of a server have nothing to wait for, and a timer around them would cost more than they
do. So they are begun first, and only what turns out to wait is given a time limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Generic, TypeVar

T = TypeVar("T")


class Begun(Generic[T]):
    """Make it in the task that will await it. When it `is_done`, its `value` needs no awaiting."""

    __slots__ = ("_blocked", "_steps", "is_done", "value")

    value: T

    def __init__(self, awaited: Awaitable[T]) -> None:
        self._steps: Generator[object, None, T] = awaited.__await__()
        try:
            self._blocked: object = next(self._steps)
        except StopIteration as stop:
            self.value = stop.value
            self.is_done = True
        else:
            self.is_done = False

    def __await__(self) -> Generator[object, None, T]:
        try:
            while not self.is_done:
                try:
                    yield self._blocked
                # a cancel goes on to what it is meant for, as `yield from` would pass it
                except BaseException as fault:  # noqa: BLE001
                    self._blocked = self._steps.throw(fault)
                else:
                    self._blocked = next(self._steps)
        except StopIteration as stop:
            self.value = stop.value
            self.is_done = True
        return self.value
