"""One commit enters the draft as a whole, or not at all. What each write means is said beside its noun."""

from __future__ import annotations

from typing import TypeAlias, assert_never

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
from farhand.store.postgres.calls import insert_call, swap_call
from farhand.store.postgres.draft import Draft, Mention
from farhand.store.postgres.rows import encode
from farhand.store.postgres.runs import claim_run, insert_run, park_run, write_run
from farhand.store.postgres.threads import allow_tool, insert_message, insert_thread, rename_thread
from farhand.store.postgres.told import Told

Direct: TypeAlias = (
    CutThread | DeleteThread | PutClient | DropClient | InsertFile | PutPiece | DropFile | BindFiles
)
"""Rare writes, made by the database itself: a commit with one of them has a transaction of its own."""

DIRECT = (CutThread, DeleteThread, PutClient, DropClient, InsertFile, PutPiece, DropFile, BindFiles)


def draft_commit(draft: Draft, told: Told, writes: tuple[Write, ...]) -> Commit:
    """All of the writes are in the draft now, or none of them."""
    try:
        for write in writes:
            why = draft_write(draft, told, write)
            if why is not None:
                draft.take_back()
                return Stale(write, why)
    except BaseException:
        draft.take_back()
        raise
    draft.keep()
    return Committed(told.at, told.runs)


def draft_write(draft: Draft, told: Told, write: Write) -> Why | None:
    # the most frequent ones first
    match write:
        case WriteRun():
            return write_run(draft, told, write)
        case SwapCall():
            return swap_call(draft, told, write)
        case InsertCall():
            return insert_call(draft, told, write)
        case InsertThread() | AllowTool() | RenameThread() | InsertMessage():
            return _draft_thread(draft, write)
        case InsertRun() | ClaimRun() | ParkRun():
            return _draft_run(draft, told, write)
        case Tell():
            _tell(draft, told, write)
            return None
        case _:
            raise AssertionError("direct writes have their own way")


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


def _draft_run(draft: Draft, told: Told, write: InsertRun | ClaimRun | ParkRun) -> Why | None:
    match write:
        case InsertRun():
            return insert_run(draft, told, write)
        case ClaimRun():
            return claim_run(draft, told, write)
        case ParkRun():
            return park_run(draft, told, write)
    assert_never(write)


def _tell(draft: Draft, told: Told, write: Tell) -> None:
    """Has no guard."""
    owner = write.owner
    draft.mentions += [
        Mention(owner, told.at, thread_id=write.thread_id, body=encode(event)) for event in write.events
    ]
    told.feeds.add(owner)
