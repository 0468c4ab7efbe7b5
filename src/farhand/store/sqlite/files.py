"""The files of a SQLite store: removed files cannot be found, and their bytes are deleted a few at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from msgspec.structs import replace

from farhand.core.file import Kept, StoredFile
from farhand.core.principal import Owner
from farhand.store.records import decode_file, decode_or_raise, encode
from farhand.store.sqlite.queries import Reads
from farhand.store.sqlite.writer import WriteConnection, Writer

SWEPT = 64
"""Pieces removed in one transaction: other writes get their turn in between."""


class SqliteFiles:
    def __init__(self, reads: Reads, writer: Writer) -> None:
        self._reads = reads
        self._writer = writer

    async def get(self, owner: Owner, ref: str) -> StoredFile | None:
        found = self._reads.one(GET, (ref, owner.tenant, owner.subject))
        return None if found is None else replace(decode_or_raise(decode_file, found[0]), size=found[1])

    async def piece(self, owner: Owner, ref: str, no: int) -> bytes | None:
        key = (no, ref, owner.tenant, owner.subject)
        found = await self._reads.far(lambda db: db.execute(PIECE, key).fetchone())
        return None if found is None else found[0]

    async def kept(self, tenant: str, subject: str | None = None) -> Kept:
        sql, key = (KEPT, (tenant,)) if subject is None else (KEPT_OF_OWNER, (tenant, subject))
        return Kept(*await self._reads.far(lambda db: db.execute(sql, key).fetchone()))

    async def put(self, file: StoredFile, no: int, pieces: Sequence[bytes], *, is_last: bool) -> bool:
        return await self._writer.do(lambda writing: _put(writing, file, no, pieces, is_last=is_last))

    async def drop(self, owner: Owner, ref: str) -> None:
        await self._writer.do(lambda writing: _drop(writing.db, owner, ref))
        await self.sweep()

    async def sweep(self) -> None:
        """Only the caller that removes files waits for it; a purge removes what a crash left."""
        while await self._writer.do(lambda writing: _sweep(writing.db)):
            pass


def bind_files(db: sqlite3.Connection, owner: Owner, thread_no: int, refs: Sequence[str]) -> None:
    for ref in refs:
        found = db.execute(BIND, (ref, owner.tenant, owner.subject)).fetchone()
        if found is not None:
            db.execute(BIND_THREAD, (thread_no, *found))


def drop_files_of(db: sqlite3.Connection, thread_no: int) -> None:
    """The files of this thread, unless another one refers to them too."""
    remove_files(db, db.execute(ONLY_OF_THREAD, (thread_no,)).fetchall())
    db.execute("DELETE FROM file_threads WHERE thread_no = ?", (thread_no,))


def drop_incomplete_files(db: sqlite3.Connection) -> None:
    """At start: nobody will send the rest."""
    remove_files(db, db.execute("SELECT no FROM files WHERE is_bound = 0 AND is_complete = 0").fetchall())


def remove_files(db: sqlite3.Connection, numbers: list[tuple[int]]) -> None:
    """From now on they cannot be found."""
    db.executemany("INSERT INTO removed_files (file_no) VALUES (?)", numbers)
    db.executemany("DELETE FROM file_threads WHERE file_no = ?", numbers)
    db.executemany("DELETE FROM files WHERE no = ?", numbers)


def _put(
    writing: WriteConnection, file: StoredFile, no: int, pieces: Sequence[bytes], *, is_last: bool
) -> bool:
    db, now = writing.db, writing.now()
    found: tuple[int, int, int, str, str] | None = db.execute(FIND, (file.ref,)).fetchone()
    if no == 0:
        if found is not None:
            return False
        file_no = db.execute(INSERT, (file.ref, file.owner.tenant, file.owner.subject, now, encode(file)))
        number = file_no.lastrowid
    else:
        if found is None or found[1:] != (no, 0, file.owner.tenant, file.owner.subject):
            return False
        number = found[0]
    db.executemany(
        "INSERT INTO file_pieces (file_no, piece_no, piece) VALUES (?, ?, ?)",
        [(number, piece_no, piece) for piece_no, piece in enumerate(pieces, no)],
    )
    db.execute(GROW, (sum(map(len, pieces)), len(pieces), is_last, now, number))
    return True


def _drop(db: sqlite3.Connection, owner: Owner, ref: str) -> None:
    key = (ref, owner.tenant, owner.subject)
    remove_files(
        db, db.execute("SELECT no FROM files WHERE ref = ? AND tenant = ? AND subject = ?", key).fetchall()
    )


def _sweep(db: sqlite3.Connection) -> int:
    """Deletes some pieces of removed files; returns how many."""
    swept = db.execute(SWEEP, (SWEPT,)).rowcount
    if not swept:
        db.execute("DELETE FROM removed_files")
    return swept


GET = "SELECT record, size FROM files WHERE ref = ? AND tenant = ? AND subject = ? AND is_complete = 1"

PIECE = """
SELECT piece FROM file_pieces WHERE piece_no = ? AND file_no = (
    SELECT no FROM files WHERE ref = ? AND tenant = ? AND subject = ? AND is_complete = 1)"""

KEPT = "SELECT count(*), coalesce(sum(size), 0) FROM files WHERE tenant = ?"
KEPT_OF_OWNER = f"{KEPT} AND subject = ?"

FIND = "SELECT no, pieces, is_complete, tenant, subject FROM files WHERE ref = ?"

INSERT = """
INSERT INTO files (no, ref, tenant, subject, size, pieces, is_complete, is_bound, written_at, record)
VALUES (
    1 + max(coalesce((SELECT max(no) FROM files), 0), coalesce((SELECT max(file_no) FROM removed_files), 0)),
    ?, ?, ?, 0, 0, 0, 0, ?, ?)"""

GROW = """
UPDATE files SET size = size + ?, pieces = pieces + ?, is_complete = ?, written_at = ? WHERE no = ?"""

BIND = """
UPDATE files SET is_bound = 1 WHERE ref = ? AND tenant = ? AND subject = ? AND is_complete = 1
RETURNING no"""

BIND_THREAD = "INSERT OR IGNORE INTO file_threads (thread_no, file_no) VALUES (?, ?)"

ONLY_OF_THREAD = """
SELECT file_no FROM file_threads AS this WHERE thread_no = ? AND NOT EXISTS (
    SELECT 1 FROM file_threads AS other
    WHERE other.file_no = this.file_no AND other.thread_no <> this.thread_no)"""

SWEEP = """
DELETE FROM file_pieces WHERE rowid IN (
    SELECT file_pieces.rowid FROM removed_files CROSS JOIN file_pieces USING (file_no) LIMIT ?)"""
"""CROSS: scans the removed files, never all pieces."""
