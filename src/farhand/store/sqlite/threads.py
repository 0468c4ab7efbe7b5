"""What is written to threads: guards and changes, judged against the draft.

Each answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.thread import Thread, UserMessage
from farhand.store.base import (
    AllowTool,
    CutThread,
    DeleteThread,
    InsertMessage,
    InsertThread,
    RenameThread,
    Why,
)
from farhand.store.sqlite.draft import Draft, ThreadRow
from farhand.store.sqlite.files import drop_files_of
from farhand.store.sqlite.flush import flush
from farhand.store.sqlite.rows import encode, encode_with
from farhand.store.sqlite.told import Told


def insert_thread(draft: Draft, write: InsertThread) -> None:
    key = (write.thread.owner, write.thread.thread_id)
    known = draft.threads.get(key)
    if known is None:
        row = ThreadRow(draft.next_thread_no(), write.thread, {}, encode(write.thread))
    else:
        row = _with_thread(known, replace(known.thread, updated_at=write.thread.updated_at))
    draft.threads.put(key, row)


def allow_tool(draft: Draft, write: AllowTool) -> Why | None:
    known = draft.threads.get((write.owner, write.thread_id))
    if known is None:
        return "missing"
    allowed = tuple(dict.fromkeys((*known.thread.allowed, write.tool_version)))
    changed = _with_thread(known, replace(known.thread, allowed=allowed))
    draft.threads.put((write.owner, write.thread_id), changed)
    return None


def rename_thread(draft: Draft, write: RenameThread) -> Why | None:
    known = draft.threads.get((write.owner, write.thread_id))
    if known is None:
        return "missing"
    renamed = _with_thread(known, replace(known.thread, title=write.title))
    draft.threads.put((write.owner, write.thread_id), renamed)
    return None


def insert_message(draft: Draft, write: InsertMessage) -> Why | None:
    thread_key = (write.owner, write.thread_id)
    thread = draft.threads.get(thread_key)
    if thread is None:
        return "missing"
    key = (thread.thread_no, write.message.message_id)
    # a user's message is named by its sender, who may send it twice; the others have names of ours
    is_fresh = not isinstance(write.message, UserMessage) or draft.threads.is_new(thread_key)
    if draft.known_message(key, is_fresh=is_fresh):
        return "exists"
    draft.messages.put(key, encode(write.message))
    return None


def cut_thread(draft: Draft, write: CutThread) -> Why | None:
    thread = draft.threads.get((write.owner, write.thread_id))
    if thread is None:
        return "missing"
    flush(draft)
    first: tuple[int] | None = draft.db.execute(
        "SELECT message_no FROM messages WHERE thread_no = ? AND message_id = ?",
        (thread.thread_no, write.message_id),
    ).fetchone()
    if first is None:
        return "missing"
    draft.db.execute(
        "DELETE FROM messages WHERE thread_no = ? AND message_no >= ?", (thread.thread_no, *first)
    )
    draft.forget()
    return None


def delete_thread(draft: Draft, told: Told, write: DeleteThread) -> Why | None:
    thread = draft.threads.get((write.owner, write.thread_id))
    if thread is None:
        return "missing"
    flush(draft)
    key = (thread.thread_no,)
    runs: list[tuple[int, str, float | None]] = draft.db.execute(
        "SELECT run_no, run_id, ended_at FROM runs WHERE thread_no = ?", key
    ).fetchall()
    if any(ended_at is None for _, _, ended_at in runs):
        return "active"
    owner_key = (write.owner.tenant, write.owner.subject)
    # the numbers stay: a reader's position must not come to mean something else
    draft.db.execute(
        "UPDATE feed SET run_no = NULL, seq = NULL, thread_id = NULL, body = NULL"
        " WHERE tenant = ? AND subject = ?"
        " AND (thread_id = ? OR run_no IN (SELECT run_no FROM runs WHERE thread_no = ?))",
        (*owner_key, write.thread_id, thread.thread_no),
    )
    for run_no, run_id, _ in runs:
        draft.db.execute("DELETE FROM events WHERE run_no = ?", (run_no,))
        draft.db.execute("DELETE FROM calls WHERE run_no = ?", (run_no,))
        told.forget_run(run_id)
    draft.db.execute("DELETE FROM runs WHERE thread_no = ?", key)
    draft.db.execute(
        "DELETE FROM calls WHERE run_no IS NULL AND tenant = ? AND subject = ? AND thread_id = ?",
        (*owner_key, write.thread_id),
    )
    drop_files_of(draft.db, thread.thread_no)
    draft.db.execute("DELETE FROM messages WHERE thread_no = ?", key)
    draft.db.execute("DELETE FROM threads WHERE thread_no = ?", key)
    draft.forget()
    return None


def _with_thread(row: ThreadRow, thread: Thread) -> ThreadRow:
    return ThreadRow(row.thread_no, thread, row.unknown, encode_with(row.unknown, thread))
