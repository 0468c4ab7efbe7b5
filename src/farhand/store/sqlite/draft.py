"""A draft over a SQLite file: how rows are found that are not at hand, and numbered that are new.

Only one process writes the file, so what was read or written once is still true and need not be read again.
"""

from __future__ import annotations

import sqlite3
from itertools import count

from farhand.core.call import Call
from farhand.core.principal import Owner
from farhand.core.thread import Thread
from farhand.store.draft.draft import (
    CallRow,
    Draft,
    Find,
    MessageKey,
    RequestKey,
    RunRow,
    ThreadKey,
    ThreadRow,
)
from farhand.store.draft.records import Columns, run_of, thread_of, unknown_in
from farhand.store.sqlite.sql import FIND_MESSAGE, IS_SENT, RUN_BY_ID

SMALL_ROWS = 4096
TOOL_ROWS = 256
"""How many stay at hand between transactions. A tool may be large, the others are not."""


class SqliteDraft(Draft):
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        find = Find(
            thread=self._find_thread,
            run=self._find_run,
            active=self._find_active,
            call=self._find_call,
            tool=self._find_tool,
            message=self._find_message,
            request=self._find_request,
            feed=self._find_feed,
            remember=SMALL_ROWS,
            remember_tools=TOOL_ROWS,
        )
        super().__init__(find)
        self.thread_numbers = count(_highest(db, "SELECT max(thread_no) FROM threads") + 1)
        self.run_numbers = count(_highest(db, "SELECT max(run_no) FROM runs") + 1)
        self.call_numbers = count(_highest(db, "SELECT max(call_no) FROM calls") + 1)

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
        found: Columns | None = self.db.execute(RUN_BY_ID, (run_id,)).fetchone()
        return None if found is None else RunRow(found[0], run_of(found))

    def _find_active(self, key: ThreadKey) -> str | None:
        thread = self.threads[key]
        # a run begins only when the one before it has ended, so no other than the last can be active
        found: tuple[str, float | None] | None = self.db.execute(
            "SELECT run_id, ended_at FROM runs WHERE thread_no = ? ORDER BY run_no DESC LIMIT 1",
            (0 if thread is None else thread.thread_no,),
        ).fetchone()
        return None if found is None or found[1] is not None else found[0]

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
        owner, request_id = key
        found: tuple[str] | None = self.db.execute(
            "SELECT call_id FROM calls WHERE tenant = ? AND subject = ? AND request_id = ?",
            (owner.tenant, owner.subject, request_id),
        ).fetchone()
        return None if found is None else found[0]

    def _find_feed(self, owner: Owner) -> int | None:
        found: tuple[int | None] = self.db.execute(
            "SELECT max(feed_no) FROM feed WHERE tenant = ? AND subject = ?", (owner.tenant, owner.subject)
        ).fetchone()
        return found[0]

    def _find_tool(self, version: str) -> bytes | None:
        found = self.db.execute("SELECT 1 FROM tools WHERE version = ?", (version,)).fetchone()
        return None if found is None else b""

    def _find_message(self, key: MessageKey) -> bool | None:
        # those of ours begin with their run, and have no index: only such a name has the thread walked
        return (
            self.db.execute(FIND_MESSAGE if key[1].startswith("run_") else IS_SENT, key).fetchone() and True
        )


def _highest(db: sqlite3.Connection, sql: str) -> int:
    found: tuple[int | None] = db.execute(sql).fetchone()
    return found[0] or 0
