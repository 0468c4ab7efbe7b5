"""How a commit that does not hold is taken back: every change notes what was there. Knows no records."""

from __future__ import annotations

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

ABSENT = object()
"""What was there before the first."""


# Any: the dictionaries and lists have nothing in common but that they are put back
class Undo(list[tuple[Any, Any, Any]]):
    """Where, at which place, and what was there, in the order of the changes; empty when a commit begins.

    Whoever has looked there already notes it without looking again.
    """

    def take_back(self) -> None:
        for where, key, old in reversed(self):
            if isinstance(where, list):
                del where[key:]
            elif old is ABSENT:
                del where[key]
            else:
                where[key] = old
        self.clear()

    def set(self, where: dict[K, V], key: K, value: V) -> None:
        self.append((where, key, where.get(key, ABSENT)))
        where[key] = value

    def drop(self, where: dict[K, V], key: K) -> None:
        if key in where:
            self.append((where, key, where.pop(key)))
