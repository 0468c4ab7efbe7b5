"""What is removed from threads, straight from the database inside the transaction.

Each answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from farhand.store.base import CutThread, DeleteThread, Why
from farhand.store.sqlite.draft import SqliteDraft
from farhand.store.sqlite.files import drop_files_of
from farhand.store.sqlite.flush import flush
from farhand.store.sqlite.sql import CUT_MESSAGES, DELETE_JOURNAL, FIND_MESSAGE
from farhand.store.told import Told


def cut_thread(draft: SqliteDraft, write: CutThread) -> Why | None:
    thread = draft.threads[write.owner, write.thread_id]
    if thread is None:
        return "missing"
    flush(draft)
    message = (thread.thread_no, write.message_id)
    first: tuple[int] | None = draft.db.execute(FIND_MESSAGE, message).fetchone()
    if first is None:
        return "missing"
    draft.db.execute(CUT_MESSAGES, (thread.thread_no, *first))
    draft.forget()
    return None


def delete_thread(draft: SqliteDraft, told: Told, write: DeleteThread) -> Why | None:
    thread = draft.threads[write.owner, write.thread_id]
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
        draft.db.execute(DELETE_JOURNAL, (run_no,))
        draft.db.execute("DELETE FROM calls WHERE run_no = ?", (run_no,))
        told.forget_run(run_id)
    draft.db.execute("DELETE FROM runs WHERE thread_no = ?", key)
    draft.db.execute(
        "DELETE FROM calls WHERE run_no IS NULL AND tenant = ? AND subject = ? AND thread_id = ?",
        (*owner_key, write.thread_id),
    )
    drop_files_of(draft.db, thread.thread_no)
    draft.db.execute(CUT_MESSAGES, (*key, 0))
    draft.db.execute("DELETE FROM threads WHERE thread_no = ?", key)
    draft.forget()
    return None
