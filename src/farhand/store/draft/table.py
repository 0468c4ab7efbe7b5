"""One table as commits see it: the rows that were looked at, with what is about to be written over them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import islice
from typing import Any, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

# Any: the tables have nothing in common but that their rows are put back
Undo: TypeAlias = list[tuple["Table[Any, Any]", Any, Any, Any]]
"""What the commit under way has changed, oldest first: the table, the key, the row that was there, and what
was noted of its change."""


class Table(dict[K, R | None]):
    """A row that is not at hand is found when it is asked for (`table[key]`); `table.get(key)` does not look.

    None stands for a row that is not there. Up to `remember` rows stay at hand between transactions: that is
    for a store that nobody else writes.
    """

    def __init__(self, undo: Undo, find: Callable[[K], R | None] | None = None, *, remember: int = 0) -> None:
        super().__init__()
        self._undo = undo
        self._find = find
        self.remember = remember
        self.changed: dict[K, tuple[R | None, R]] = {}
        """Of every key that was changed: the row that the database has, and the row as it shall be."""

    def __missing__(self, key: K) -> R | None:
        if self._find is None:
            return None
        row = self[key] = self._find(key)
        return row

    def put(self, key: K, row: R) -> None:
        """For a key that was looked up or is new: that is how an insert is told from an update."""
        old, change = self.get(key), self.changed.get(key)
        self.changed[key] = (old if change is None else change[0], row)
        self._undo.append((self, key, old, change))
        self[key] = row

    def restore(self, key: K, old: R | None, change: tuple[R | None, R] | None) -> None:
        if change is None:
            del self.changed[key]
        else:
            self.changed[key] = change
        if old is None:
            # one that was never looked for may be there after all
            del self[key]
        else:
            self[key] = old

    def is_new(self, key: K) -> bool:
        """Whether the row is there with this transaction alone."""
        change = self.changed.get(key)
        return change is not None and change[0] is None

    def added(self) -> list[tuple[K, R]]:
        return [(key, row) for key, (old, row) in self.changed.items() if old is None]

    def updated(self) -> list[tuple[R, R]]:
        """As it is stored, and as it shall be."""
        return [(old, row) for old, row in self.changed.values() if old is not None]

    def shrink(self) -> None:
        """The older half goes; a row that is needed again is read again."""
        for key in list(islice(self, len(self) - self.remember // 2)):
            del self[key]

    def forget(self) -> None:
        self.changed.clear()
        self.clear()


def take_back(undo: Undo) -> None:
    for table, key, old, change in reversed(undo):
        table.restore(key, old, change)
    undo.clear()
