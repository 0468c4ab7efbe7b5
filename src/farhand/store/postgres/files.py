"""Files: what is written to them, straight to the database inside the transaction; and what is told of them.

A write answers with the reason why its guard does not hold, or with None.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from farhand.core.file import Kept, StoredFile
from farhand.core.principal import Owner
from farhand.store.base import BindFiles, DropFile, PutPiece, Why
from farhand.store.draft.draft import Draft
from farhand.store.draft.records import Columns, encode, file_of
from farhand.store.postgres.line import Line
from farhand.store.postgres.lines import Lines

PURGED = 16
"""Files removed in one transaction, so that commits get their turn in between: each may be large."""


async def insert_file(line: Line, file: StoredFile, now: float) -> Why | None:
    owner = file.owner
    added = await line.fetch(INSERT, file.ref, owner.tenant, owner.subject, now, encode(file))
    return None if added else "exists"


async def put_piece(line: Line, write: PutPiece, now: float) -> Why | None:
    found: Sequence[Columns] = await line.fetch(FOR_PIECE, *_key(write))
    if not found:
        return "missing"
    file_no, pieces, arrived = found[0]
    if arrived:
        return "ended"
    if write.no != pieces:
        return "version"
    await line.fetch(
        "INSERT INTO file_pieces (file_no, piece_no, piece) VALUES ($1, $2, $3)",
        file_no,
        write.no,
        write.piece,
    )
    await line.fetch(GREW, file_no, len(write.piece), write.is_last, now)
    return None


async def drop_file(line: Line, write: DropFile) -> Why | None:
    found = await line.fetch(
        "SELECT file_no FROM files WHERE ref = $1 AND tenant = $2 AND subject = $3 FOR UPDATE", *_key(write)
    )
    await _remove(line, found)
    return None if found else "missing"


async def bind_files(line: Line, draft: Draft, write: BindFiles) -> None:
    thread = draft.threads.get((write.owner, write.thread_id))
    if thread is not None:
        owner = write.owner
        refs = sorted(set(write.refs))
        await line.fetch(BIND, refs, owner.tenant, owner.subject, thread.thread_no)


async def drop_files_of(line: Line, thread_no: int) -> None:
    """What goes with this thread, unless another one refers to it, too."""
    await _remove(line, await line.fetch(ALONE, thread_no))
    await line.fetch("DELETE FROM file_threads WHERE thread_no = $1", thread_no)


async def purge_files(line: Line, before: float, *, arriving_before: float) -> int:
    """Some of those that no thread refers to and that are old, or that stopped arriving."""
    gone = await line.fetch(OLD, max(before, arriving_before), before, PURGED)
    await _remove(line, gone)
    return len(gone)


class PostgresFiles:
    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    async def get(self, owner: Owner, ref: str) -> StoredFile | None:
        return await self._lines.one(GET, (ref, owner.tenant, owner.subject), _stored)

    async def piece(self, owner: Owner, ref: str, no: int) -> bytes | None:
        return await self._lines.one(PIECE, (ref, owner.tenant, owner.subject, no), _piece)

    async def kept(self, tenant: str, subject: str | None = None) -> Kept:
        [kept] = await self._lines.many(KEPT, (tenant, subject), _kept)
        return kept


async def _remove(line: Line, rows: Sequence[Columns]) -> None:
    numbers = [row[0] for row in rows]
    if not numbers:
        return
    await line.fetch("DELETE FROM file_pieces WHERE file_no = ANY($1::bigint[])", numbers)
    await line.fetch("DELETE FROM file_threads WHERE file_no = ANY($1::bigint[])", numbers)
    await line.fetch("DELETE FROM files WHERE file_no = ANY($1::bigint[])", numbers)


def _key(write: PutPiece | DropFile) -> tuple[str, str, str]:
    return write.ref, write.owner.tenant, write.owner.subject


def _stored(row: Columns) -> StoredFile:
    return replace(file_of(row[0]), size=row[1])


def _piece(row: Columns) -> bytes:
    return bytes(row[0])


def _kept(row: Columns) -> Kept:
    return Kept(row[0], int(row[1]))


INSERT = """
    INSERT INTO files (ref, tenant, subject, size, pieces, arrived, bound, written_at, body)
    VALUES ($1, $2, $3, 0, 0, false, false, $4, $5) ON CONFLICT DO NOTHING RETURNING file_no
"""

FOR_PIECE = """
    SELECT file_no, pieces, arrived FROM files WHERE ref = $1 AND tenant = $2 AND subject = $3 FOR UPDATE
"""

GREW = """
    UPDATE files SET size = size + $2, pieces = pieces + 1, arrived = $3, written_at = $4 WHERE file_no = $1
"""

BIND = """
    WITH bound AS (
        UPDATE files SET bound = true
        WHERE ref = ANY($1::text[]) AND tenant = $2 AND subject = $3 AND arrived
        RETURNING file_no
    )
    INSERT INTO file_threads (thread_no, file_no) SELECT $4, file_no FROM bound ON CONFLICT DO NOTHING
"""

ALONE = """
    SELECT file_no FROM file_threads AS this WHERE thread_no = $1 AND NOT EXISTS (
        SELECT 1 FROM file_threads AS other
        WHERE other.file_no = this.file_no AND other.thread_no <> this.thread_no)
"""

OLD = """
    SELECT file_no FROM files WHERE NOT bound AND written_at < $1 AND (written_at < $2 OR NOT arrived)
    LIMIT $3 FOR UPDATE SKIP LOCKED
"""

GET = "SELECT body, size FROM files WHERE ref = $1 AND tenant = $2 AND subject = $3 AND arrived"

PIECE = """
    SELECT piece FROM file_pieces JOIN files USING (file_no)
    WHERE ref = $1 AND tenant = $2 AND subject = $3 AND arrived AND piece_no = $4
"""

KEPT = """
    SELECT count(*), coalesce(sum(size), 0)::bigint FROM files
    WHERE tenant = $1 AND ($2::text IS NULL OR subject = $2)
"""
