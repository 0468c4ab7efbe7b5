"""What is removed from threads, inside a transaction that has locked them.

Each answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from collections.abc import Sequence

from farhand.store.base import CutThread, DeleteThread, Why
from farhand.store.draft.draft import Draft
from farhand.store.draft.records import Columns
from farhand.store.postgres.files import drop_files_of
from farhand.store.postgres.line import Line
from farhand.store.told import Told


async def cut_thread(line: Line, draft: Draft, write: CutThread) -> Why | None:
    thread = draft.threads.get((write.owner, write.thread_id))
    if thread is None:
        return "missing"
    found = await line.fetch(
        "DELETE FROM messages WHERE thread_no = $1 AND message_no >= ("
        " SELECT message_no FROM messages WHERE thread_no = $1 AND message_id = $2) RETURNING 1",
        thread.thread_no,
        write.message_id,
    )
    return None if found else "missing"


async def delete_thread(line: Line, draft: Draft, told: Told, write: DeleteThread) -> Why | None:
    thread = draft.threads.get((write.owner, write.thread_id))
    if thread is None:
        return "missing"
    key = (write.owner.tenant, write.owner.subject, write.thread_id)
    runs: Sequence[Columns] = await line.fetch(RUNS_OF_THREAD, *key)
    if any(ended_at is None for _, _, ended_at in runs):
        return "active"
    numbers = [run_no for run_no, _, _ in runs]
    # the numbers stay: a reader's position must not come to mean something else
    await line.fetch(EMPTY_FEED, *key, numbers)
    await drop_files_of(line, thread.thread_no)
    await line.fetch("DELETE FROM events WHERE run_no = ANY($1::bigint[])", numbers)
    await line.fetch(DELETE_CALLS, *key, numbers)
    await line.fetch("DELETE FROM runs WHERE run_no = ANY($1::bigint[])", numbers)
    await line.fetch("DELETE FROM messages WHERE thread_no = $1", thread.thread_no)
    await line.fetch("DELETE FROM threads WHERE thread_no = $1", thread.thread_no)
    for _, run_id, _ in runs:
        told.forget_run(run_id)
    return None


RUNS_OF_THREAD = """
    SELECT run_no, run_id, ended_at FROM runs WHERE tenant = $1 AND subject = $2 AND thread_id = $3
    ORDER BY run_id FOR UPDATE
"""

EMPTY_FEED = """
    UPDATE feed SET run_no = NULL, seq = NULL, thread_id = NULL, body = NULL
    WHERE tenant = $1 AND subject = $2 AND (thread_id = $3 OR run_no = ANY($4::bigint[]))
"""

DELETE_CALLS = """
    DELETE FROM calls WHERE run_no = ANY($4::bigint[])
        OR (run_no IS NULL AND tenant = $1 AND subject = $2 AND thread_id = $3)
"""
