"""How a commit that does not hold is taken back: every change notes its opposite. Knows no records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Undo:
    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []

    def begin(self) -> None:
        """A new commit: what was done before stays done."""
        self._steps = []

    def take_back(self) -> None:
        for step in reversed(self._steps):
            step()
        self._steps = []

    def add(self, step: Callable[[], object]) -> None:
        self._steps.append(step)

    def set(self, where: dict[K, V], key: K, value: V) -> None:
        if key in where:
            old = where[key]
            self.add(lambda: where.__setitem__(key, old))
        else:
            self.add(lambda: where.pop(key))
        where[key] = value

    def drop(self, where: dict[K, V], key: K) -> None:
        if key in where:
            old = where.pop(key)
            self.add(lambda: where.__setitem__(key, old))

    def extend(self, where: list[V], added: list[V]) -> None:
        where.extend(added)
        self.add(lambda: where.__delitem__(slice(len(where) - len(added), None)))
