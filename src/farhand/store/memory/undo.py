"""How a commit that does not hold is taken back: every change notes what was there. Knows no records."""

from __future__ import annotations

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Undo:
    def __init__(self) -> None:
        # Any: the dictionaries and lists have nothing in common but that they are put back
        self._dicts: list[tuple[dict[Any, Any], Any, Any]] = []
        self._lists: list[tuple[list[Any], int]] = []

    def begin(self) -> None:
        """A new commit: what was done before stays done."""
        self._dicts.clear()
        self._lists.clear()

    def take_back(self) -> None:
        for where, key, old in reversed(self._dicts):
            if old is _ABSENT:
                del where[key]
            else:
                where[key] = old
        for grown, length in reversed(self._lists):
            del grown[length:]
        self.begin()

    def set(self, where: dict[K, V], key: K, value: V) -> None:
        self._dicts.append((where, key, where.get(key, _ABSENT)))
        where[key] = value

    def drop(self, where: dict[K, V], key: K) -> None:
        if key in where:
            self._dicts.append((where, key, where.pop(key)))

    def extend(self, where: list[V], added: list[V]) -> None:
        self._lists.append((where, len(where)))
        where += added


_ABSENT = object()
