"""The files of a memory store, in pieces."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from farhand.core.file import Kept, StoredFile
from farhand.core.principal import Owner
from farhand.store.base import BindFiles, DropFile, InsertFile, PutPiece, Why
from farhand.store.memory.threads import Threads
from farhand.store.memory.undo import Undo
from farhand.store.told import Told


class _Row(Struct, frozen=True):
    file: StoredFile
    written_at: float
    pieces: tuple[bytes, ...] = ()
    arrived: bool = False
    threads: frozenset[str] = frozenset()


class MemoryFiles:
    def __init__(self, undo: Undo, threads: Threads) -> None:
        self._undo = undo
        self._threads = threads
        self._rows: dict[str, _Row] = {}

    async def get(self, owner: Owner, ref: str) -> StoredFile | None:
        row = self._own(owner, ref)
        return row.file if row is not None and row.arrived else None

    async def piece(self, owner: Owner, ref: str, no: int) -> bytes | None:
        row = self._own(owner, ref)
        if row is None or not row.arrived or not 0 <= no < len(row.pieces):
            return None
        return row.pieces[no]

    async def kept(self, tenant: str, subject: str | None = None) -> Kept:
        owners = (row.file for row in self._rows.values() if row.file.owner.tenant == tenant)
        sizes = [file.size for file in owners if subject in (None, file.owner.subject)]
        return Kept(len(sizes), sum(sizes))

    def insert(self, write: InsertFile, told: Told) -> Why | None:
        file = write.file
        if file.ref in self._rows:
            return "exists"
        self._undo.set(self._rows, file.ref, _Row(replace(file, size=0), told.at))
        return None

    def put_piece(self, write: PutPiece, told: Told) -> Why | None:
        row = self._own(write.owner, write.ref)
        if row is None:
            return "missing"
        if row.arrived:
            return "ended"
        if write.no != len(row.pieces):
            return "version"
        longer = replace(
            row,
            file=replace(row.file, size=row.file.size + len(write.piece)),
            written_at=told.at,
            pieces=(*row.pieces, write.piece),
            arrived=write.is_last,
        )
        self._undo.set(self._rows, write.ref, longer)
        return None

    def drop(self, write: DropFile, _: Told) -> Why | None:
        if self._own(write.owner, write.ref) is None:
            return "missing"
        self._undo.drop(self._rows, write.ref)
        return None

    def bind(self, write: BindFiles, _: Told) -> Why | None:
        if (write.owner, write.thread_id) not in self._threads:
            return None
        for ref in write.refs:
            row = self._own(write.owner, ref)
            if row is not None and row.arrived:
                self._undo.set(self._rows, ref, replace(row, threads=row.threads | {write.thread_id}))
        return None

    def forget(self, owner: Owner, thread_id: str) -> None:
        """What goes with this thread, unless another one refers to it, too."""
        bound = [row for row in self._rows.values() if row.file.owner == owner and thread_id in row.threads]
        for row in bound:
            others = row.threads - {thread_id}
            if others:
                self._undo.set(self._rows, row.file.ref, replace(row, threads=others))
            else:
                self._undo.drop(self._rows, row.file.ref)

    def purge(self, before: float, *, arriving_before: float) -> None:
        for ref in self._old(before, arriving_before):
            del self._rows[ref]

    def count_old(self, before: float, *, arriving_before: float) -> int:
        return len(self._old(before, arriving_before))

    def _old(self, before: float, arriving_before: float) -> list[str]:
        limits = {True: before, False: max(before, arriving_before)}
        return [
            ref for ref, row in self._rows.items() if not row.threads and row.written_at < limits[row.arrived]
        ]

    def _own(self, owner: Owner, ref: str) -> _Row | None:
        row = self._rows.get(ref)
        return row if row is not None and row.file.owner == owner else None
