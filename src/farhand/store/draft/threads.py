"""What is written to threads: guards and changes, judged against the draft.

Each answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from msgspec.structs import replace

from farhand.core.thread import Thread, UserMessage
from farhand.store.base import AllowTool, InsertMessage, InsertThread, RenameThread, Tell, Why
from farhand.store.draft.draft import Draft, Mention, ThreadRow
from farhand.store.draft.records import encode, encode_with
from farhand.store.told import Told


def insert_thread(draft: Draft, told: Told, write: InsertThread) -> Why | None:
    """Has no guard."""
    key = (write.thread.owner, write.thread.thread_id)
    known = draft.threads[key]
    if known is None:
        told.begun = True
        row = ThreadRow(next(draft.thread_numbers), write.thread, {}, encode(write.thread))
    else:
        row = _with_thread(known, replace(known.thread, updated_at=write.thread.updated_at))
    draft.threads.put(key, row)
    return None


def allow_tool(draft: Draft, _: Told, write: AllowTool) -> Why | None:
    key = (write.owner, write.thread_id)
    known = draft.threads[key]
    if known is None:
        return "missing"
    allowed = tuple(dict.fromkeys((*known.thread.allowed, write.tool_version)))
    draft.threads.put(key, _with_thread(known, replace(known.thread, allowed=allowed)))
    return None


def rename_thread(draft: Draft, _: Told, write: RenameThread) -> Why | None:
    key = (write.owner, write.thread_id)
    known = draft.threads[key]
    if known is None:
        return "missing"
    draft.threads.put(key, _with_thread(known, replace(known.thread, title=write.title)))
    return None


def insert_message(draft: Draft, _: Told, write: InsertMessage) -> Why | None:
    thread_key, message = (write.owner, write.thread_id), write.message
    thread = draft.threads[thread_key]
    if thread is None:
        return "missing"
    message_id = message.message_id
    # a user's message is named by its sender, who may send it twice; the others have names of ours
    is_sent = isinstance(message, UserMessage)
    if is_sent or draft.careful:
        key = (thread.thread_no, message_id)
        is_new = draft.threads.is_new(thread_key)
        if (draft.messages.get(key) if is_new else draft.messages[key]) is not None:
            return "exists"
        draft.messages.put(key, True)
    draft.said.append((thread.thread_no, message_id, is_sent, encode(message)))
    return None


def tell(draft: Draft, told: Told, write: Tell) -> Why | None:
    """Has no guard."""
    for event in write.events:
        draft.mentions.append(Mention(write.owner, told.at, thread_id=write.thread_id, body=encode(event)))
    told.feeds.add(write.owner)
    return None


def _with_thread(row: ThreadRow, thread: Thread) -> ThreadRow:
    return ThreadRow(row.thread_no, thread, row.unknown, encode_with(row.unknown, thread))
