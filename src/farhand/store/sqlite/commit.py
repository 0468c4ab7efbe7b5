"""One commit of a SQLite store: drafted, or, with a rare write in it, made by the database at once."""

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
from farhand.store.draft.commit import DIRECT, Direct, draft_commit, draft_write, is_direct
from farhand.store.sqlite.clients import drop_client, put_client
from farhand.store.sqlite.draft import SqliteDraft
from farhand.store.sqlite.files import write_file
from farhand.store.sqlite.flush import flush
from farhand.store.sqlite.removals import cut_thread, delete_thread
from farhand.store.told import Told


def commit(draft: SqliteDraft, told: Told, writes: tuple[Write, ...]) -> Commit:
    """All of the writes are in the transaction now, or in its draft, or none of them is."""
    return _commit_directly(draft, told, writes) if is_direct(writes) else draft_commit(draft, told, writes)


def _commit_directly(draft: SqliteDraft, told: Told, writes: tuple[Write, ...]) -> Commit:
    """What the database does at once is undone by the database, too."""
    flush(draft)
    draft.db.execute("SAVEPOINT direct")
    try:
        stale = _write_all(draft, told, writes)
        flush(draft)
    except BaseException:
        _undo_direct(draft)
        raise
    if stale is not None:
        _undo_direct(draft)
        return stale
    draft.db.execute("RELEASE direct")
    return Committed(told.at, told.runs, told.begun)


def _undo_direct(draft: SqliteDraft) -> None:
    draft.db.execute("ROLLBACK TO direct")
    draft.db.execute("RELEASE direct")
    draft.forget()


def _write_all(draft: SqliteDraft, told: Told, writes: tuple[Write, ...]) -> Stale | None:
    for write in writes:
        why = _write(draft, told, write) if isinstance(write, DIRECT) else draft_write(draft, told, write)
        if why is not None:
            return Stale(write, why)
    return None


def _write(draft: SqliteDraft, told: Told, write: Direct) -> Why | None:
    match write:
        case InsertFile() | PutPiece() | DropFile() | BindFiles():
            return write_file(draft, write, told.at)
        case CutThread():
            return cut_thread(draft, write)
        case DeleteThread():
            return delete_thread(draft, told, write)
        case PutClient():
            return put_client(draft, write)
        case DropClient():
            return drop_client(draft, write)
    assert_never(write)
