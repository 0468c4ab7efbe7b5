"""One table as commits see it: the rows that were looked at, with what is about to be written over them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import islice
from typing import Any, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

# Any: the tables have nothing in common but that their rows are put back
Undo: TypeAlias = list[tuple["Table[Any, Any]", Any, Any, bool]]
"""What the commit under way has changed, oldest first: the table, the key, the row that was there, and
whether it was that of the database."""


class Table(dict[K, R | None]):
    """A row that is not at hand is found when it is asked for (`table[key]`); `table.get(key)` does not look.

    None stands for a row that is not there. Up to `remember` rows stay at hand between transactions: that is
    for a store that nobody else writes.
    """

    def __init__(self, undo: Undo, find: Callable[[K], R | None] | None = None, *, remember: int = 0) -> None:
        super().__init__()
        self._undo = undo
        self._find = find
        self._remember = remember
        self._stored: dict[K, R | None] = {}
        """Of every key that was changed: the row that the database has."""

    def __missing__(self, key: K) -> R | None:
        if self._find is None:
            return None
        row = self[key] = self._find(key)
        return row

    def put(self, key: K, row: R) -> None:
        """For a key that was looked up or is new: that is how an insert is told from an update."""
        old = self.get(key)
        is_first = key not in self._stored
        if is_first:
            self._stored[key] = old
        self._undo.append((self, key, old, is_first))
        self[key] = row

    def restore(self, key: K, old: R | None, *, is_stored: bool) -> None:
        if is_stored:
            del self._stored[key]
        if old is None:
            # one that was never looked for may be there after all
            del self[key]
        else:
            self[key] = old

    def is_new(self, key: K) -> bool:
        """Whether the row is there with this transaction alone."""
        return key in self._stored and self._stored[key] is None

    def added(self) -> list[tuple[K, R]]:
        rows = [(key, self[key]) for key, old in self._stored.items() if old is None]
        return [(key, row) for key, row in rows if row is not None]

    def updated(self) -> list[tuple[R, R]]:
        """As it is stored, and as it shall be."""
        rows = [(old, self[key]) for key, old in self._stored.items() if old is not None]
        return [(old, row) for old, row in rows if row is not None]

    def flushed(self) -> None:
        """What was changed is in the database."""
        self._stored.clear()
        if len(self) > self._remember:
            # the older half goes; a row that is needed again is read again
            for key in list(islice(self, len(self) - self._remember // 2)):
                del self[key]

    def forget(self) -> None:
        self._stored.clear()
        self.clear()


def take_back(undo: Undo) -> None:
    for table, key, old, is_stored in reversed(undo):
        table.restore(key, old, is_stored=is_stored)
    undo.clear()
