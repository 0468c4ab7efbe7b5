"""What one transaction is about to write, over the rows that were locked and read for it.

Guards are judged against the draft: a row is read once, changed here and written at the end. So a commit
whose guard does not hold leaves nothing to roll back and nobody else fails with it, and a run that fifty
commits touch is written once. Owns the rows; what a write means is said in `threads`, `runs` and `calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from farhand.core.call import Call
from farhand.core.event import Entry
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.thread import Thread
from farhand.store.postgres.rows import Unknown, encode

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

Undo: TypeAlias = list[tuple[Callable[..., None], object, object]]
"""What the commit under way has changed, oldest first: how to restore it, its key, and what it was."""


class Table(Generic[K, R]):
    """The rows of one table: as they are stored, and as they shall be."""

    def __init__(self, undo: Undo) -> None:
        self.stored: dict[K, R] = {}
        self._changed: dict[K, R] = {}
        self._undo = undo

    def get(self, key: K) -> R | None:
        return self._changed.get(key) or self.stored.get(key)

    def put(self, key: K, row: R) -> None:
        self._undo.append((self._restore, key, self._changed.get(key)))
        self._changed[key] = row

    def is_new(self, key: K) -> bool:
        return key in self._changed and key not in self.stored

    def added(self) -> list[tuple[K, R]]:
        return [(key, row) for key, row in self._changed.items() if key not in self.stored]

    def updated(self) -> list[tuple[R, R]]:
        """As it is stored, and as it shall be."""
        return [(self.stored[key], row) for key, row in self._changed.items() if key in self.stored]

    def _restore(self, key: K, old: R | None) -> None:
        if old is None:
            del self._changed[key]
        else:
            self._changed[key] = old


class ThreadRow(Struct, frozen=True):
    thread_no: int
    thread: Thread
    unknown: Unknown
    body: bytes = b""


class RunRow(Struct, frozen=True):
    run_no: int
    run: Run


class CallRow(Struct, frozen=True):
    """What a guard needs of a call; and the record itself, once it is to be written."""

    run_no: int | None
    version: int
    deadline: float | None
    unknown: Unknown
    call: Call | None = None
    body: bytes = b""


ThreadKey: TypeAlias = tuple[Owner, str]
MessageKey: TypeAlias = tuple[int, str]
RequestKey: TypeAlias = tuple[Owner, str]


class Mention(Struct, frozen=True):
    """An entry of a feed before it has its number: one that points into a journal, or one with a body."""

    owner: Owner
    at: float
    run_no: int | None = None
    seq: int | None = None
    thread_id: str | None = None
    body: bytes | None = None


class Draft:
    """For one transaction. `at` is the database's time, read after every row was locked."""

    def __init__(self) -> None:
        self.at = 0.0
        self.thread_numbers: list[int] = []
        self.run_numbers: list[int] = []
        self._undo: Undo = []
        self.threads: Table[ThreadKey, ThreadRow] = Table(self._undo)
        self.messages: Table[MessageKey, bytes] = Table(self._undo)
        self.runs: Table[str, RunRow] = Table(self._undo)
        self.active: Table[ThreadKey, str] = Table(self._undo)
        self.calls: Table[str, CallRow] = Table(self._undo)
        self.requests: Table[RequestKey, str] = Table(self._undo)
        self.tools: Table[str, bytes] = Table(self._undo)
        self.events: list[tuple[int, int, float, bytes]] = []
        self.mentions: list[Mention] = []
        self._kept = (0, 0)

    def append(self, run_no: int, entries: list[Entry]) -> None:
        self.events += [(run_no, entry.seq, entry.at, encode(entry.event)) for entry in entries]

    def keep(self) -> None:
        """What was drafted since the last commit is one that holds."""
        self._undo.clear()
        self._kept = (len(self.events), len(self.mentions))

    def take_back(self) -> None:
        """What was drafted since the last commit is one that does not hold."""
        for restore, key, old in reversed(self._undo):
            restore(key, old)
        self._undo.clear()
        events, mentions = self._kept
        del self.events[events:], self.mentions[mentions:]
