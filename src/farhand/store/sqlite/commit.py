"""One commit enters the draft as a whole, or not at all. What each write means is said beside its noun."""

from __future__ import annotations

from typing import assert_never

from farhand.store.base import (
    AllowTool,
    ClaimRun,
    Commit,
    Committed,
    CutThread,
    DeleteThread,
    InsertCall,
    InsertMessage,
    InsertRun,
    InsertThread,
    ParkRun,
    RenameThread,
    Stale,
    SwapCall,
    Why,
    Write,
    WriteRun,
)
from farhand.store.sqlite.calls import insert_call, swap_call
from farhand.store.sqlite.draft import Draft
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
    if any(isinstance(write, CutThread | DeleteThread) for write in writes):
        return _commit_removal(draft, told, writes)
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


def _commit_removal(draft: Draft, told: Told, writes: tuple[Write, ...]) -> Commit:
    """Rows are removed by the database, so a commit that removes some is undone by the database, too."""
    flush(draft)
    draft.db.execute("SAVEPOINT removal")
    try:
        stale = _draft_all(draft, told, writes)
        flush(draft)
    except BaseException:
        _undo_removal(draft)
        raise
    if stale is not None:
        _undo_removal(draft)
        return stale
    draft.db.execute("RELEASE removal")
    return Committed(told.at, told.runs)


def _undo_removal(draft: Draft) -> None:
    draft.db.execute("ROLLBACK TO removal")
    draft.db.execute("RELEASE removal")
    draft.forget()


def _draft_all(draft: Draft, told: Told, writes: tuple[Write, ...]) -> Stale | None:
    for write in writes:
        why = _draft(draft, told, write)
        if why is not None:
            return Stale(write, why)
    return None


def _draft(draft: Draft, told: Told, write: Write) -> Why | None:
    match write:
        case SwapCall():
            return swap_call(draft, told, write)
        case InsertCall():
            return insert_call(draft, told, write)
        case InsertThread() | AllowTool() | RenameThread() | InsertMessage():
            return _draft_thread(draft, write)
        case CutThread():
            return cut_thread(draft, write)
        case DeleteThread():
            return delete_thread(draft, told, write)
        case InsertRun() | ClaimRun() | WriteRun() | ParkRun():
            return _draft_run(draft, told, write)
    assert_never(write)


def _draft_thread(draft: Draft, write: InsertThread | AllowTool | RenameThread | InsertMessage) -> Why | None:
    match write:
        case InsertThread():
            insert_thread(draft, write)
            return None
        case AllowTool():
            return allow_tool(draft, write)
        case RenameThread():
            return rename_thread(draft, write)
        case InsertMessage():
            return insert_message(draft, write)
    assert_never(write)


def _draft_run(draft: Draft, told: Told, write: InsertRun | ClaimRun | WriteRun | ParkRun) -> Why | None:
    match write:
        case WriteRun():
            return write_run(draft, told, write)
        case InsertRun():
            return insert_run(draft, told, write)
        case ClaimRun():
            return claim_run(draft, told, write)
        case ParkRun():
            return park_run(draft, told, write)
    assert_never(write)
