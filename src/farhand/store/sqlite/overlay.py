"""One table as the writer sees it: what is stored, and what is about to be written over it.

Only one process writes the file, so what was read or written once is still true and need not be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import islice
from typing import Generic, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


Undo: TypeAlias = list[tuple[Callable[..., None], object, object]]
"""What the commit under way has changed, oldest first: how to restore it, its key, and what it was."""


class Overlay(Generic[K, R]):
    """`find` reads a stored row; up to `remember` of them stay at hand between transactions, made `slim`."""

    def __init__(
        self,
        find: Callable[[K], R | None],
        undo: Undo,
        *,
        remember: int = 0,
        slim: Callable[[R], R] | None = None,
    ) -> None:
        self._find = find
        self._undo = undo
        self._remember = remember
        self._slim = slim
        self._stored: dict[K, R | None] = {}
        self._changed: dict[K, R] = {}

    def get(self, key: K) -> R | None:
        row = self._changed.get(key)
        if row is not None:
            return row
        if key not in self._stored:
            self._stored[key] = self._find(key)
        return self._stored[key]

    def peek(self, key: K) -> R | None:
        """Without a look at the table, for a key that should be new: if it is not, the table refuses it."""
        row = self._changed.get(key)
        return self._stored.get(key) if row is None else row

    def is_new(self, key: K) -> bool:
        return key in self._changed and self._stored.get(key) is None

    def put(self, key: K, row: R) -> None:
        """For a key that was looked up or is new: that is how an insert is told from an update."""
        self._undo.append((self._restore, key, self._changed.get(key)))
        self._changed[key] = row

    def added(self) -> list[tuple[K, R]]:
        stored = self._stored
        return [(key, row) for key, row in self._changed.items() if stored.get(key) is None]

    def updated(self) -> list[tuple[R, R]]:
        """As it is stored, and as it shall be."""
        pairs = [(self._stored.get(key), row) for key, row in self._changed.items()]
        return [(old, row) for old, row in pairs if old is not None]

    def flushed(self) -> None:
        """What was changed is in the table."""
        slim = self._slim
        self._stored.update(
            self._changed if slim is None else {key: slim(row) for key, row in self._changed.items()}
        )
        self._changed.clear()
        if len(self._stored) > self._remember:
            # the older half goes; a row that is needed again is read again
            for key in list(islice(self._stored, len(self._stored) - self._remember // 2)):
                del self._stored[key]

    def forget(self) -> None:
        self._stored.clear()
        self._changed.clear()

    def _restore(self, key: K, old: R | None) -> None:
        if old is None:
            del self._changed[key]
        else:
            self._changed[key] = old
