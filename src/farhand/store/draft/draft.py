"""What one transaction is about to write.

Guards are judged against the draft: a row is read once, changed here and written at the end. So a commit
whose guard does not hold leaves nothing to roll back and nobody else fails with it, and a run that fifty
commits touch is written once. Owns the rows; what a write means is said in `threads`, `runs` and `calls`, and
how rows are found and written is the backend's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, TypeAlias

from msgspec import Struct

from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.thread import Thread
from farhand.store.draft.records import Unknown
from farhand.store.draft.table import Table, Undo, take_back


class ThreadRow(Struct, frozen=True, gc=False):
    thread_no: int
    thread: Thread
    unknown: Unknown
    body: bytes = b""


class RunRow(Struct, frozen=True, gc=False):
    run_no: int
    run: Run


class CallRow(Struct, frozen=True, gc=False):
    """What a guard needs of a call. `call_no` is 0 where the database numbers calls itself."""

    call_no: int
    run_no: int | None
    version: int
    deadline: float | None
    is_open: bool
    unknown: Unknown


class Mention(Struct, frozen=True, gc=False):
    """An entry of a feed before it has its number: one that points into a journal, or one with a body."""

    owner: Owner
    at: float
    run_no: int | None = None
    seq: int | None = None
    thread_id: str | None = None
    body: bytes | None = None


ThreadKey: TypeAlias = tuple[Owner, str]
MessageKey: TypeAlias = tuple[int, str]
RequestKey: TypeAlias = tuple[Owner, str]


class Find(Struct, frozen=True):
    """How rows are found that are not at hand, and how many stay; nothing is found in a draft that was filled
    before."""

    thread: Callable[[ThreadKey], ThreadRow | None] | None = None
    run: Callable[[str], RunRow | None] | None = None
    active: Callable[[ThreadKey], str | None] | None = None
    call: Callable[[str], CallRow | None] | None = None
    tool: Callable[[str], bytes | None] | None = None
    message: Callable[[MessageKey], bool | None] | None = None
    request: Callable[[RequestKey], str | None] | None = None
    feed: Callable[[Owner], int | None] | None = None
    remember: int = 0
    remember_tools: int = 0


class Draft:
    def __init__(self, find: Find, *, careful: bool = False) -> None:
        self.careful = careful
        """True: look whether an id of ours is taken. Else that is left to the table, since they are fresh."""
        self.thread_numbers: Iterator[int] = iter(())
        self.run_numbers: Iterator[int] = iter(())
        self.call_numbers: Iterator[int] = repeat(0)
        self._undo: Undo = []
        undo, few = self._undo, find.remember
        self.threads: Table[ThreadKey, ThreadRow] = Table(undo, find.thread, remember=few)
        self.runs: Table[str, RunRow] = Table(undo, find.run, remember=few)
        self.active: Table[ThreadKey, str] = Table(undo, find.active, remember=few)
        self.calls: Table[str, CallRow] = Table(undo, find.call, remember=few)
        self.tools: Table[str, bytes] = Table(undo, find.tool, remember=find.remember_tools)
        self.messages: Table[MessageKey, bool] = Table(undo, find.message)
        self.requests: Table[RequestKey, str] = Table(undo, find.request)
        self.feeds: Table[Owner, int] = Table(undo, find.feed, remember=few)
        """The last number in each feed that was written to, where the draft numbers news itself."""
        # Any: they have nothing in common but that they are emptied
        self._tables: tuple[Table[Any, Any], ...] = (
            self.threads,
            self.runs,
            self.active,
            self.calls,
            self.tools,
            self.messages,
            self.requests,
            self.feeds,
        )
        self.said: list[tuple[int, str, bool, bytes]] = []
        """New messages: thread number, id, whether that is its sender's, body."""
        self.opened: list[tuple[CallRow, Call, bytes]] = []
        self.moved: list[tuple[CallRow, CallRow, Call, bytes]] = []
        """In the order of the moves: the row as it was, the row, the record and its body."""
        self.events: list[tuple[int, int, float, list[bytes]]] = []
        """Those of one write: run number, number of the first one in the journal, time, bodies."""
        self.mentions: list[Mention] = []
        self._kept = (0, 0, 0, 0, 0)

    def keep(self) -> None:
        """What was drafted since the last commit is one that holds."""
        self._undo.clear()
        self._kept = (
            len(self.said),
            len(self.opened),
            len(self.moved),
            len(self.events),
            len(self.mentions),
        )

    def take_back(self) -> None:
        """What was drafted since the last commit is one that does not hold."""
        take_back(self._undo)
        said, opened, moved, events, mentions = self._kept
        del self.said[said:], self.opened[opened:], self.moved[moved:]
        del self.events[events:], self.mentions[mentions:]

    def flushed(self) -> None:
        """All of it is in the transaction."""
        for table in self._tables:
            # most are empty, so they are looked at and not called
            if table.changed:
                table.changed.clear()
            if len(table) > table.remember:
                table.shrink()
        self._clear_lists()

    def forget(self) -> None:
        """The transaction was undone, or rows were removed behind the draft: read everything again."""
        for table in self._tables:
            table.forget()
        self._clear_lists()

    def _clear_lists(self) -> None:
        self._undo.clear()
        self.said.clear()
        self.opened.clear()
        self.moved.clear()
        self.events.clear()
        self.mentions.clear()
        self._kept = (0, 0, 0, 0, 0)
