"""A commit with a rare write in it: a transaction of its own, in which the database itself does the work.

What was drafted before such a write is handed over first, and what comes after it is gathered afresh. A guard
that does not hold ends the transaction with nothing written.
"""

from __future__ import annotations

from typing import assert_never

from farhand.store.base import (
    BindFiles,
    Commit,
    Committed,
    CutThread,
    DeleteThread,
    DropClient,
    DropFile,
    InsertFile,
    PutClient,
    PutPiece,
    Stale,
    Why,
    Write,
)
from farhand.store.draft.commit import DIRECT, Direct, draft_write
from farhand.store.draft.draft import Draft
from farhand.store.postgres.clients import drop_client, lock_clients, put_client
from farhand.store.postgres.files import bind_files, drop_file, insert_file, put_piece
from farhand.store.postgres.flush import flush
from farhand.store.postgres.gather import Wanted, gather
from farhand.store.postgres.line import Line
from farhand.store.postgres.removals import cut_thread, delete_thread
from farhand.store.told import Told


async def commit_directly(
    line: Line, writes: tuple[Write, ...], *, told_time: float | None
) -> tuple[Commit, Told, str]:
    """Inside a transaction, which the caller ends as the answer says; and the transaction's own id."""
    await lock_clients(line, writes)
    gathered = await gather(line, Wanted(writes), careful=True, told_time=told_time)
    draft, transaction, told = gathered.draft, gathered.transaction, Told(gathered.at)
    for number, write in enumerate(writes):
        if isinstance(write, DIRECT):
            await flush(line, draft)
            why = await _write(line, draft, told, write)
            draft = (await gather(line, Wanted(writes[number:]), careful=True, told_time=told.at)).draft
        else:
            why = draft_write(draft, told, write)
        if why is not None:
            return Stale(write, why), told, transaction
    await flush(line, draft)
    return Committed(told.at, told.runs, told.begun), told, transaction


async def _write(line: Line, draft: Draft, told: Told, write: Direct) -> Why | None:
    match write:
        case CutThread():
            return await cut_thread(line, draft, write)
        case DeleteThread():
            return await delete_thread(line, draft, told, write)
        case PutClient():
            return await put_client(line, told, write)
        case DropClient():
            return await drop_client(line, told, write)
        case _:
            return await _write_file(line, draft, told, write)


async def _write_file(
    line: Line, draft: Draft, told: Told, write: InsertFile | PutPiece | DropFile | BindFiles
) -> Why | None:
    match write:
        case InsertFile():
            return await insert_file(line, write.file, told.at)
        case PutPiece():
            return await put_piece(line, write, told.at)
        case DropFile():
            return await drop_file(line, write)
        case BindFiles():
            await bind_files(line, draft, write)
            return None
    assert_never(write)
