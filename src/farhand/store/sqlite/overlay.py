"""One table as the writer sees it: what is stored, and what is about to be written over it.

Only one process writes the file, so what was read or written once is still true and need not be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import islice
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class Overlay(Generic[K, R]):
    """`find` reads a stored row; up to `remember` of them stay at hand between transactions, made `slim`."""

    def __init__(
        self, find: Callable[[K], R | None], *, remember: int = 0, slim: Callable[[R], R] | None = None
    ) -> None:
        self._find = find
        self._remember = remember
        self._slim = slim
        self._stored: dict[K, R | None] = {}
        self._changed: dict[K, R] = {}
        self._undo: list[tuple[K, R | None]] = []

    def get(self, key: K) -> R | None:
        row = self._changed.get(key)
        if row is not None:
            return row
        if key not in self._stored:
            self._stored[key] = self._find(key)
        return self._stored[key]

    def peek(self, key: K) -> R | None:
        """Without a look at the table: for a key that should be new."""
        return self._changed.get(key) or self._stored.setdefault(key, None)

    def put(self, key: K, row: R) -> None:
        """For a key that was looked up before: that is how an insert is told from an update."""
        self._undo.append((key, self._changed.get(key)))
        self._changed[key] = row

    def added(self) -> list[tuple[K, R]]:
        return [(key, row) for key, row in self._changed.items() if self._stored[key] is None]

    def updated(self) -> list[tuple[R, R]]:
        """As it is stored, and as it shall be."""
        pairs = [(self._stored[key], row) for key, row in self._changed.items()]
        return [(old, row) for old, row in pairs if old is not None]

    def keep(self) -> None:
        """The commit holds: it can no longer be taken back alone."""
        self._undo.clear()

    def take_back(self) -> None:
        for key, old in reversed(self._undo):
            if old is None:
                del self._changed[key]
            else:
                self._changed[key] = old
        self._undo.clear()

    def flushed(self) -> None:
        """What was changed is in the table."""
        slim = self._slim
        self._stored.update(
            self._changed if slim is None else {key: slim(row) for key, row in self._changed.items()}
        )
        self._changed.clear()
        self._undo.clear()
        if len(self._stored) > self._remember:
            # the older half goes; a row that is needed again is read again
            for key in list(islice(self._stored, len(self._stored) - self._remember // 2)):
                del self._stored[key]

    def forget(self) -> None:
        self._stored.clear()
        self._changed.clear()
        self._undo.clear()
