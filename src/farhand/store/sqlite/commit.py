"""One commit enters the draft as a whole, or not at all. What each write means is said beside its noun."""

from __future__ import annotations

from typing import assert_never

from farhand.store.base import (
    AllowTool,
    BindFiles,
    ClaimRun,
    Commit,
    Committed,
    CutThread,
    DeleteThread,
    DropClient,
    DropFile,
    InsertCall,
    InsertFile,
    InsertMessage,
    InsertRun,
    InsertThread,
    ParkRun,
    PutClient,
    PutPiece,
    RenameThread,
    Stale,
    SwapCall,
    Tell,
    Why,
    Write,
    WriteRun,
)
from farhand.store.sqlite.calls import insert_call, swap_call
from farhand.store.sqlite.clients import drop_client, put_client
from farhand.store.sqlite.draft import Draft
from farhand.store.sqlite.feed import tell
from farhand.store.sqlite.files import FileWrite, write_file
from farhand.store.sqlite.flush import flush
from farhand.store.sqlite.runs import claim_run, insert_run, park_run, write_run
from farhand.store.sqlite.threads import (
    allow_tool,
    cut_thread,
    delete_thread,
    insert_message,
    insert_thread,
    rename_thread,
)
from farhand.store.sqlite.told import Told


def draft_commit(draft: Draft, told: Told, writes: tuple[Write, ...]) -> Commit:
    """All of the writes are in the draft now, or none of them."""
    if not _DIRECT.isdisjoint(map(type, writes)):
        return _commit_directly(draft, told, writes)
    try:
        stale = _draft_all(draft, told, writes)
    except BaseException:
        draft.take_back()
        raise
    if stale is not None:
        draft.take_back()
        return stale
    draft.keep()
    return Committed(told.at, told.runs)


_DIRECT = frozenset(
    {CutThread, DeleteThread, PutClient, DropClient, InsertFile, PutPiece, DropFile, BindFiles}
)
"""Rare writes, made by the database itself and not by the draft."""


def _commit_directly(draft: Draft, told: Told, writes: tuple[Write, ...]) -> Commit:
    """What the database does at once is undone by the database, too."""
    flush(draft)
    draft.db.execute("SAVEPOINT direct")
    try:
        stale = _draft_all(draft, told, writes)
        flush(draft)
    except BaseException:
        _undo_direct(draft)
        raise
    if stale is not None:
        _undo_direct(draft)
        return stale
    draft.db.execute("RELEASE direct")
    return Committed(told.at, told.runs)


def _undo_direct(draft: Draft) -> None:
    draft.db.execute("ROLLBACK TO direct")
    draft.db.execute("RELEASE direct")
    draft.forget()


def _draft_all(draft: Draft, told: Told, writes: tuple[Write, ...]) -> Stale | None:
    for write in writes:
        why = _draft(draft, told, write)
        if why is not None:
            return Stale(write, why)
    return None


def _draft(draft: Draft, told: Told, write: Write) -> Why | None:
    # the most frequent ones first
    match write:
        case WriteRun():
            return write_run(draft, told, write)
        case InsertMessage():
            return insert_message(draft, write)
        case SwapCall():
            return swap_call(draft, told, write)
        case InsertCall():
            return insert_call(draft, told, write)
        case InsertThread() | AllowTool() | RenameThread():
            return _draft_thread(draft, write)
        case InsertRun() | ClaimRun() | ParkRun():
            return _draft_run(draft, told, write)
        case _:
            return _write_directly(draft, told, write)


def _write_directly(
    draft: Draft, told: Told, write: CutThread | DeleteThread | Tell | PutClient | DropClient | FileWrite
) -> Why | None:
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
        case Tell():
            tell(draft, told, write)
            return None
    assert_never(write)


def _draft_thread(draft: Draft, write: InsertThread | AllowTool | RenameThread) -> Why | None:
    match write:
        case InsertThread():
            insert_thread(draft, write)
            return None
        case AllowTool():
            return allow_tool(draft, write)
        case RenameThread():
            return rename_thread(draft, write)
    assert_never(write)


def _draft_run(draft: Draft, told: Told, write: InsertRun | ClaimRun | ParkRun) -> Why | None:
    match write:
        case InsertRun():
            return insert_run(draft, told, write)
        case ClaimRun():
            return claim_run(draft, told, write)
        case ParkRun():
            return park_run(draft, told, write)
    assert_never(write)
