"""What one SQLite transaction is about to write.

Guards are judged against the draft: a row is read once, changed here and written at the end. So a commit
whose guard does not hold leaves nothing to roll back, and a run that fifty commits touch is written once.
Owns the rows and how they are found; what a write means is said in `threads`, `runs` and `calls`.
"""

from __future__ import annotations

import sqlite3
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from farhand.core.call import Call
from farhand.core.event import Entry
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.thread import Thread
from farhand.store.sqlite.overlay import Overlay, Undo
from farhand.store.sqlite.rows import (
    RUN_BY_ID,
    RunColumns,
    Unknown,
    encode,
    run_of,
    thread_of,
    unknown_in,
)

SMALL_ROWS = 4096
TOOL_ROWS = 256
"""How many stay at hand between transactions. A tool may be large, the others are not."""


class ThreadRow(Struct, frozen=True, gc=False):
    thread_no: int
    thread: Thread
    unknown: Unknown
    body: bytes = b""


class RunRow(Struct, frozen=True, gc=False):
    run_no: int
    thread_no: int
    run: Run


class CallRow(Struct, frozen=True, gc=False):
    """What a guard needs of a call; and the record itself, while it is to be written."""

    call_no: int
    run_no: int | None
    version: int
    deadline: float | None
    is_open: bool
    unknown: Unknown
    call: Call | None = None
    body: bytes = b""


ThreadKey: TypeAlias = tuple[Owner, str]
MessageKey: TypeAlias = tuple[int, str]
RequestKey: TypeAlias = tuple[str, str, str]
EventRow: TypeAlias = tuple[int, int, float, bytes]
PointerRow: TypeAlias = tuple[str, str, int, float, int, int]
NewsRow: TypeAlias = tuple[str, str, int, float, str | None, bytes]
"""An entry of a feed: one that points into a journal, or one with a body of its own."""


class Draft:
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.careful = False
        """True: look whether an id of ours is taken. Else that is left to the table, since they are fresh."""
        self._undo: Undo = []
        self.threads: Overlay[ThreadKey, ThreadRow] = Overlay(
            self._find_thread, self._undo, remember=SMALL_ROWS
        )
        self.runs: Overlay[str, RunRow] = Overlay(self._find_run, self._undo, remember=SMALL_ROWS)
        self.active: Overlay[int, str] = Overlay(self._find_active, self._undo, remember=SMALL_ROWS)
        self.calls: Overlay[str, CallRow] = Overlay(
            self._find_call, self._undo, remember=SMALL_ROWS, slim=_without_record
        )
        self.tools: Overlay[str, bytes] = Overlay(self._find_tool, self._undo, remember=TOOL_ROWS)
        self.messages: Overlay[MessageKey, bytes] = Overlay(self._find_message, self._undo)
        self.requests: Overlay[RequestKey, str] = Overlay(self._find_request, self._undo)
        self.feed_ends: Overlay[Owner, int] = Overlay(self._find_feed_end, self._undo, remember=SMALL_ROWS)
        self.events: list[EventRow] = []
        self.pointers: list[PointerRow] = []
        self.news: list[NewsRow] = []
        self._tables = (
            self.threads,
            self.runs,
            self.active,
            self.calls,
            self.tools,
            self.messages,
            self.requests,
            self.feed_ends,
        )
        self._kept = (0, 0, 0)
        # only this process writes, so it may number the rows on its own
        self._last_thread_no = _highest(db, "SELECT max(thread_no) FROM threads")
        self._last_run_no = _highest(db, "SELECT max(run_no) FROM runs")
        self._last_call_no = _highest(db, "SELECT max(call_no) FROM calls")

    def next_thread_no(self) -> int:
        self._last_thread_no += 1
        return self._last_thread_no

    def next_run_no(self) -> int:
        self._last_run_no += 1
        return self._last_run_no

    def next_call_no(self) -> int:
        self._last_call_no += 1
        return self._last_call_no

    def known_run(self, run_id: str) -> bool:
        return (self.runs.get(run_id) if self.careful else self.runs.peek(run_id)) is not None

    def known_call(self, call_id: str) -> bool:
        return (self.calls.get(call_id) if self.careful else self.calls.peek(call_id)) is not None

    def known_message(self, key: MessageKey, *, is_fresh: bool) -> bool:
        look = self.messages.peek if is_fresh and not self.careful else self.messages.get
        return look(key) is not None

    def append(self, run_no: int, entries: list[Entry]) -> None:
        self.events += [(run_no, entry.seq, entry.at, encode(entry.event)) for entry in entries]

    def next_feed_no(self, owner: Owner, count: int) -> int:
        """The first of so many numbers in the owner's feed."""
        last = self.feed_ends.get(owner) or 0
        self.feed_ends.put(owner, last + count)
        return last + 1

    def keep(self) -> None:
        """What was drafted since the last commit is one that holds."""
        self._undo.clear()
        self._kept = (len(self.events), len(self.pointers), len(self.news))

    def take_back(self) -> None:
        """What was drafted since the last commit is one that does not hold."""
        for restore, key, old in reversed(self._undo):
            restore(key, old)
        self._undo.clear()
        events, pointers, news = self._kept
        del self.events[events:], self.pointers[pointers:], self.news[news:]

    def flushed(self) -> None:
        """All of it is in the transaction."""
        for table in self._tables:
            table.flushed()
        self._clear_lists()

    def forget(self) -> None:
        """The transaction was undone, or rows were removed behind the draft: read everything again."""
        for table in self._tables:
            table.forget()
        self._clear_lists()

    def _clear_lists(self) -> None:
        self._undo.clear()
        self.events.clear()
        self.pointers.clear()
        self.news.clear()
        self._kept = (0, 0, 0)

    def _find_thread(self, key: ThreadKey) -> ThreadRow | None:
        owner, thread_id = key
        found: tuple[int, bytes] | None = self.db.execute(
            "SELECT thread_no, body FROM threads WHERE tenant = ? AND subject = ? AND thread_id = ?",
            (owner.tenant, owner.subject, thread_id),
        ).fetchone()
        if found is None:
            return None
        return ThreadRow(found[0], thread_of(found[1]), unknown_in(found[1], Thread))

    def _find_run(self, run_id: str) -> RunRow | None:
        found: RunColumns | None = self.db.execute(RUN_BY_ID, (run_id,)).fetchone()
        return None if found is None else RunRow(found[0], found[1], run_of(found))

    def _find_active(self, thread_no: int) -> str | None:
        found: tuple[str] | None = self.db.execute(
            "SELECT run_id FROM runs WHERE thread_no = ? AND ended_at IS NULL", (thread_no,)
        ).fetchone()
        return None if found is None else found[0]

    def _find_call(self, call_id: str) -> CallRow | None:
        found: tuple[int, int | None, int, float | None, int, bytes] | None = self.db.execute(
            "SELECT call_no, run_no, version, deadline, is_open, body FROM calls WHERE call_id = ?",
            (call_id,),
        ).fetchone()
        if found is None:
            return None
        call_no, run_no, version, deadline, is_open, body = found
        return CallRow(call_no, run_no, version, deadline, is_open == 1, unknown_in(body, Call))

    def _find_request(self, key: RequestKey) -> str | None:
        found: tuple[str] | None = self.db.execute(
            "SELECT call_id FROM calls WHERE tenant = ? AND subject = ? AND request_id = ?", key
        ).fetchone()
        return None if found is None else found[0]

    def _find_feed_end(self, owner: Owner) -> int | None:
        found: tuple[int | None] = self.db.execute(
            "SELECT max(feed_no) FROM feed WHERE tenant = ? AND subject = ?", (owner.tenant, owner.subject)
        ).fetchone()
        return found[0]

    def _find_tool(self, version: str) -> bytes | None:
        found = self.db.execute("SELECT 1 FROM tools WHERE version = ?", (version,)).fetchone()
        return None if found is None else b""

    def _find_message(self, key: MessageKey) -> bytes | None:
        found = self.db.execute(
            "SELECT 1 FROM messages WHERE thread_no = ? AND message_id = ?", key
        ).fetchone()
        return None if found is None else b""


def _without_record(row: CallRow) -> CallRow:
    return replace(row, call=None, body=b"")


def _highest(db: sqlite3.Connection, sql: str) -> int:
    found: tuple[int | None] = db.execute(sql).fetchone()
    return found[0] or 0
