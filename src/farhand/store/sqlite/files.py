"""Files: what is written to them, straight to the database inside the transaction; and what is told of them.

A write answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

import sqlite3
from typing import TypeAlias, assert_never

from msgspec.structs import replace

from farhand.core.file import Kept, StoredFile
from farhand.core.principal import Owner
from farhand.store.base import BindFiles, DropFile, InsertFile, PutPiece, Why
from farhand.store.draft.records import encode, file_of
from farhand.store.sqlite.draft import SqliteDraft
from farhand.store.sqlite.reads import Reads

FileWrite: TypeAlias = InsertFile | PutPiece | DropFile | BindFiles

PURGED = 500
SWEPT = 64
"""Files, and pieces, that are removed in one transaction: others get their turn in between."""


def write_file(draft: SqliteDraft, write: FileWrite, now: float) -> Why | None:
    match write:
        case InsertFile(file=file):
            return _insert(draft.db, file, now)
        case PutPiece():
            return _put_piece(draft.db, write, now)
        case DropFile():
            return _drop(draft.db, write)
        case BindFiles():
            _bind(draft, write)
            return None
    assert_never(write)


def drop_files_of(db: sqlite3.Connection, thread_no: int) -> None:
    """What goes with this thread, unless another one refers to it, too."""
    alone: list[tuple[int]] = db.execute(
        "SELECT file_no FROM file_threads AS this WHERE thread_no = ? AND NOT EXISTS ("
        " SELECT 1 FROM file_threads AS other"
        " WHERE other.file_no = this.file_no AND other.thread_no <> this.thread_no)",
        (thread_no,),
    ).fetchall()
    _remove(db, alone)
    db.execute("DELETE FROM file_threads WHERE thread_no = ?", (thread_no,))


def purge_files(db: sqlite3.Connection, before: float, *, arriving_before: float) -> int:
    """Some of those that no thread refers to and that are old, or that stopped arriving."""
    gone: list[tuple[int]] = db.execute(
        "SELECT file_no FROM files WHERE bound = 0 AND written_at < ?"
        " AND (written_at < ? OR arrived = 0) LIMIT ?",
        (max(before, arriving_before), before, PURGED),
    ).fetchall()
    _remove(db, gone)
    return len(gone)


def sweep_pieces(db: sqlite3.Connection) -> int:
    """Some pieces of files that are gone."""
    swept = db.execute(
        "DELETE FROM file_pieces WHERE rowid IN ("
        " SELECT file_pieces.rowid FROM file_rubbish JOIN file_pieces USING (file_no) LIMIT ?)",
        (SWEPT,),
    ).rowcount
    if not swept:
        db.execute("DELETE FROM file_rubbish")
    return swept


class SqliteFiles:
    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    async def get(self, owner: Owner, ref: str) -> StoredFile | None:
        return self._reads.one(GET, (ref, owner.tenant, owner.subject), _stored)

    async def piece(self, owner: Owner, ref: str, no: int) -> bytes | None:
        found = await self._reads.far(PIECE, (no, ref, owner.tenant, owner.subject), _piece)
        return found[0] if found else None

    async def kept(self, tenant: str, subject: str | None = None) -> Kept:
        [kept] = await self._reads.far(KEPT, (tenant, subject, subject), _kept)
        return kept


def _insert(db: sqlite3.Connection, file: StoredFile, now: float) -> Why | None:
    if db.execute("SELECT 1 FROM files WHERE ref = ?", (file.ref,)).fetchone() is not None:
        return "exists"
    db.execute(
        "INSERT INTO files (file_no, ref, tenant, subject, size, pieces, arrived, bound, written_at, body)"
        " VALUES (1 + max(coalesce((SELECT max(file_no) FROM files), 0),"
        " coalesce((SELECT max(file_no) FROM file_rubbish), 0)), ?, ?, ?, 0, 0, 0, 0, ?, ?)",
        (file.ref, file.owner.tenant, file.owner.subject, now, encode(file)),
    )
    return None


def _put_piece(db: sqlite3.Connection, write: PutPiece, now: float) -> Why | None:
    found: tuple[int, int, int] | None = db.execute(
        "SELECT file_no, pieces, arrived FROM files WHERE ref = ? AND tenant = ? AND subject = ?",
        _key(write),
    ).fetchone()
    if found is None:
        return "missing"
    file_no, pieces, arrived = found
    if arrived:
        return "ended"
    if write.no != pieces:
        return "version"
    db.execute(
        "INSERT INTO file_pieces (file_no, piece_no, piece) VALUES (?, ?, ?)",
        (file_no, write.no, write.piece),
    )
    db.execute(
        "UPDATE files SET size = size + ?, pieces = pieces + 1, arrived = ?, written_at = ?"
        " WHERE file_no = ?",
        (len(write.piece), int(write.is_last), now, file_no),
    )
    return None


def _drop(db: sqlite3.Connection, write: DropFile) -> Why | None:
    found: list[tuple[int]] = db.execute(
        "SELECT file_no FROM files WHERE ref = ? AND tenant = ? AND subject = ?", _key(write)
    ).fetchall()
    _remove(db, found)
    return None if found else "missing"


def _bind(draft: SqliteDraft, write: BindFiles) -> None:
    thread = draft.threads[write.owner, write.thread_id]
    if thread is None:
        return
    for ref in write.refs:
        found: tuple[int] | None = draft.db.execute(
            "UPDATE files SET bound = 1 WHERE ref = ? AND tenant = ? AND subject = ? AND arrived = 1"
            " RETURNING file_no",
            (ref, write.owner.tenant, write.owner.subject),
        ).fetchone()
        if found is not None:
            draft.db.execute(
                "INSERT OR IGNORE INTO file_threads (thread_no, file_no) VALUES (?, ?)",
                (thread.thread_no, *found),
            )


def _remove(db: sqlite3.Connection, numbers: list[tuple[int]]) -> None:
    """From now on nobody finds them; their bytes are swept away behind this."""
    db.executemany("INSERT INTO file_rubbish (file_no) VALUES (?)", numbers)
    db.executemany("DELETE FROM file_threads WHERE file_no = ?", numbers)
    db.executemany("DELETE FROM files WHERE file_no = ?", numbers)


def _key(write: PutPiece | DropFile) -> tuple[str, str, str]:
    return write.ref, write.owner.tenant, write.owner.subject


def _stored(row: tuple[bytes, int]) -> StoredFile:
    return replace(file_of(row[0]), size=row[1])


def _piece(row: tuple[bytes]) -> bytes:
    return row[0]


def _kept(row: tuple[int, int]) -> Kept:
    return Kept(*row)


GET = "SELECT body, size FROM files WHERE ref = ? AND tenant = ? AND subject = ? AND arrived = 1"

PIECE = """
    SELECT piece FROM file_pieces WHERE piece_no = ? AND file_no = (
        SELECT file_no FROM files WHERE ref = ? AND tenant = ? AND subject = ? AND arrived = 1
    )
"""

KEPT = """
    SELECT count(*), coalesce(sum(size), 0) FROM files WHERE tenant = ? AND (? IS NULL OR subject = ?)
"""
