"""What is written to threads: guards and changes, judged against the draft.

Each answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.thread import Thread
from farhand.store.base import AllowTool, InsertMessage, InsertThread, RenameThread, Why
from farhand.store.postgres.draft import Draft, ThreadRow
from farhand.store.postgres.rows import encode, encode_with


def insert_thread(draft: Draft, write: InsertThread) -> None:
    key = (write.thread.owner, write.thread.thread_id)
    known = draft.threads.get(key)
    if known is None:
        row = ThreadRow(draft.thread_numbers.pop(), write.thread, {}, encode(write.thread))
    else:
        row = _with_thread(known, replace(known.thread, updated_at=write.thread.updated_at))
    draft.threads.put(key, row)


def allow_tool(draft: Draft, write: AllowTool) -> Why | None:
    key = (write.owner, write.thread_id)
    known = draft.threads.get(key)
    if known is None:
        return "missing"
    allowed = tuple(dict.fromkeys((*known.thread.allowed, write.tool_version)))
    draft.threads.put(key, _with_thread(known, replace(known.thread, allowed=allowed)))
    return None


def rename_thread(draft: Draft, write: RenameThread) -> Why | None:
    key = (write.owner, write.thread_id)
    known = draft.threads.get(key)
    if known is None:
        return "missing"
    draft.threads.put(key, _with_thread(known, replace(known.thread, title=write.title)))
    return None


def insert_message(draft: Draft, write: InsertMessage) -> Why | None:
    thread = draft.threads.get((write.owner, write.thread_id))
    if thread is None:
        return "missing"
    key = (thread.thread_no, write.message.message_id)
    if draft.messages.get(key) is not None:
        return "exists"
    draft.messages.put(key, encode(write.message))
    return None


def _with_thread(row: ThreadRow, thread: Thread) -> ThreadRow:
    return ThreadRow(row.thread_no, thread, row.unknown, encode_with(row.unknown, thread))
