"""One commit enters the draft as a whole, or not at all. What each write means is said beside its noun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

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
from farhand.store.draft.calls import insert_call, swap_call
from farhand.store.draft.draft import Draft
from farhand.store.draft.runs import claim_run, insert_run, park_run, write_run
from farhand.store.draft.threads import allow_tool, insert_message, insert_thread, rename_thread, tell
from farhand.store.told import Told

Direct: TypeAlias = (
    CutThread | DeleteThread | PutClient | DropClient | InsertFile | PutPiece | DropFile | BindFiles
)
"""Rare writes, made by the database itself and not by the draft."""

DIRECT = (CutThread, DeleteThread, PutClient, DropClient, InsertFile, PutPiece, DropFile, BindFiles)
_DIRECT = frozenset(DIRECT)

# Any: each takes the write that it stands beside
_MEANING: dict[type[Write], Callable[[Draft, Told, Any], Why | None]] = {
    WriteRun: write_run,
    InsertMessage: insert_message,
    SwapCall: swap_call,
    InsertCall: insert_call,
    InsertThread: insert_thread,
    AllowTool: allow_tool,
    RenameThread: rename_thread,
    InsertRun: insert_run,
    ClaimRun: claim_run,
    ParkRun: park_run,
    Tell: tell,
}


def is_direct(writes: tuple[Write, ...]) -> bool:
    """Whether the database itself has to make one of them."""
    return not _DIRECT.isdisjoint(map(type, writes))


def draft_commit(draft: Draft, told: Told, writes: tuple[Write, ...]) -> Commit:
    """All of the writes are in the draft now, or none of them. None of them is direct."""
    try:
        for write in writes:
            why = _MEANING[type(write)](draft, told, write)
            if why is not None:
                draft.take_back()
                return Stale(write, why)
    except BaseException:
        draft.take_back()
        raise
    draft.keep()
    return Committed(told.at, told.runs, told.begun)


def draft_write(draft: Draft, told: Told, write: Write) -> Why | None:
    """One that is not direct, in a commit that the caller takes back."""
    return _MEANING[type(write)](draft, told, write)
