"""Files of an owner: received piece by piece, found again, read by anyone who may.

Owns what is accepted and how much of it: the listed types, the size of one file, the quota of an owner and of
a tenant. A file that does not arrive whole leaves nothing behind. Knows no wire.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec import Struct
from msgspec.structs import replace

from farhand.clock import Clock
from farhand.core.file import PIECE_BYTES, FileRules, Kept, StoredFile, is_listed, is_ref
from farhand.core.principal import Owner
from farhand.core.thread import File
from farhand.errors import NotFound, StoreDown, TooLarge, TooMany, TooSlow, WrongType
from farhand.eventlog.log import EventLog
from farhand.store.base import bounded_wait


class Label(Struct, frozen=True):
    """What is known of a file before its first byte, already sanitized; its size only if it was declared."""

    name: str
    media_type: str
    size: int | None = None


class WholeFile(Struct, frozen=True):
    """A file whose bytes are all here, stored or not."""

    file: StoredFile
    data: bytes


class Files:
    def __init__(self, eventlog: EventLog, clock: Clock, rules: FileRules) -> None:
        self.rules = rules
        self._log = eventlog
        self._clock = clock
        self._arriving: Counter[Owner] = Counter()

    async def receive(self, owner: Owner, label: Label, pieces: AsyncIterator[bytes]) -> StoredFile:
        """Stores a file as it arrives, in pieces of `PIECE_BYTES`. Any interruption removes it."""
        self.check(label)
        with self._reserve_slot(owner):
            await self._check_quota(owner, label.size or 0)
            file = self._new(owner, self._clock.fresh("blob"), label)
            return await self._store_pieces(file, pieces)

    async def keep(self, owner: Owner, label: Label, data: bytes, *, known_as: str) -> StoredFile:
        """Stores all pieces in one transaction. The same bytes under the same name are stored once: a message
        that is sent again refers to the same file."""
        whole = self.describe(owner, label, data, known_as=known_as)
        await self.keep_all([whole])
        return await self.find(owner, whole.file.ref)

    def describe(self, owner: Owner, label: Label, data: bytes, *, known_as: str) -> WholeFile:
        """The file as it will be stored; raises for one that is not accepted."""
        whole = replace(label, size=len(data))
        self.check(whole)
        file = self._new(owner, _ref_of(owner, whole, known_as, data), whole)
        return WholeFile(replace(file, size=len(data)), data)

    async def keep_all(self, files: Sequence[WholeFile]) -> None:
        """Stores those of these files of one owner that are not stored yet, or none if they exceed a
        quota."""
        new = [each for each in files if await self._log.files.get(each.file.owner, each.file.ref) is None]
        if not new:
            return
        await self._check_quota(new[0].file.owner, sum(each.file.size for each in new), files=len(new))
        for each in new:
            # False means that the same message came twice at once, and the other request has stored it
            await self._put(each.file, 0, _pieces_of(each.data), is_last=True)

    def check(self, label: Label) -> None:
        """Raises for a type that is not accepted, and for a size that is too large."""
        if not is_listed(label.media_type, self.rules.types):
            taken = ", ".join(self.rules.types)
            raise WrongType(
                f"Files of type '{label.media_type}' are not accepted.", hint=f"Accepted types: {taken}."
            )
        if label.size is not None and label.size > self.rules.size:
            raise too_large(self.rules.size)

    async def find(self, owner: Owner, ref: str) -> StoredFile:
        """Raises `NotFound` both for a missing file and for another owner's, so that they cannot be told
        apart."""
        file = await self._log.files.get(owner, ref) if is_ref(ref) else None
        if file is None:
            raise NotFound("There is no such file.")
        return file

    async def known(self, owner: Owner, refs: Iterable[str]) -> dict[str, StoredFile]:
        """The files among these refs that the owner has."""
        found = {ref: await self._log.files.get(owner, ref) for ref in refs if is_ref(ref)}
        return {ref: file for ref, file in found.items() if file is not None}

    async def pieces(self, file: StoredFile) -> AsyncIterator[bytes]:
        """All of it, piece by piece; raises `NotFound` if it is removed meanwhile."""
        for no in range(file.pieces):
            piece = await self._log.files.piece(file.owner, file.ref, no)
            if piece is None:
                raise NotFound("The file was removed while it was read.")
            yield piece

    async def load(
        self, owner: Owner, ref: str, *, at_most: int | None = None
    ) -> tuple[StoredFile, bytes] | None:
        """The file with its bytes; None if the owner has no such file, or if it is larger than the limit."""
        file = await self._log.files.get(owner, ref) if is_ref(ref) else None
        if file is None or (at_most is not None and file.size > at_most):
            return None
        try:
            return file, b"".join([piece async for piece in self.pieces(file)])
        except NotFound:
            return None

    async def _store_pieces(self, file: StoredFile, pieces: AsyncIterator[bytes]) -> StoredFile:
        no = 0
        has_arrived = False
        try:
            # the previous piece is held back until it is known whether it is the last
            held = b""
            async for piece in pieces:
                if held:
                    await self._put_next(file, no, held)
                    no += 1
                held = piece
            # its first piece, if it is stored, counts as a file
            await self._check_quota(file.owner, len(held), files=0 if no else 1)
            await self._put_next(file, no, held, is_last=True)
            has_arrived = True
        finally:
            if not has_arrived:
                await self._drop(file)
        return await self.find(file.owner, file.ref)

    async def _put_next(self, file: StoredFile, no: int, piece: bytes, *, is_last: bool = False) -> None:
        if not await self._put(file, no, [piece], is_last=is_last):
            raise TooSlow("The upload took too long and was cancelled.", hint="Send it again.")

    async def _put(self, file: StoredFile, no: int, pieces: list[bytes], *, is_last: bool) -> bool:
        return await bounded_wait(self._log.store, self._log.files.put(file, no, pieces, is_last=is_last))

    async def _drop(self, file: StoredFile) -> None:
        """Also when the request was cancelled: no partial file may stay. A purge removes what this cannot."""
        with suppress(StoreDown):
            await asyncio.shield(bounded_wait(self._log.store, self._log.files.drop(file.owner, file.ref)))

    async def _check_quota(self, owner: Owner, more: int, *, files: int = 1) -> None:
        """For so many bytes, and new files, more."""
        rules = self.rules
        own = await self._log.files.kept(owner.tenant, owner.subject)
        if own.files + files > rules.per_principal:
            raise TooMany(
                f"You have {own.files} stored files; the limit is {rules.per_principal}.",
                hint="Delete chats that contain files.",
                retry_after=60,
            )
        _check_bytes("Your files", own, more, rules.bytes_per_principal)
        everybody = await self._log.files.kept(owner.tenant)
        _check_bytes("The files of your organisation", everybody, more, rules.bytes_per_tenant)

    @contextmanager
    def _reserve_slot(self, owner: Owner) -> Iterator[None]:
        if self._arriving[owner] >= self.rules.uploads_per_principal:
            raise TooMany(
                f"You already have {self._arriving[owner]} uploads in progress.",
                hint="Send this file when one has finished.",
            )
        self._arriving[owner] += 1
        try:
            yield
        finally:
            self._arriving[owner] -= 1
            if not self._arriving[owner]:
                del self._arriving[owner]

    def _new(self, owner: Owner, ref: str, label: Label) -> StoredFile:
        return StoredFile(
            owner=owner,
            ref=ref,
            name=label.name,
            media_type=label.media_type,
            created_at=self._log.now(),
        )


def too_large(limit: int) -> TooLarge:
    return TooLarge(f"The file is larger than {limit} bytes.", hint="Send a smaller one; nothing was stored.")


def part_of(file: StoredFile) -> File:
    """The file as a message refers to it."""
    return File(ref=file.ref, name=file.name, media_type=file.media_type, size=file.size)


def _check_bytes(whose: str, kept: Kept, more: int, limit: int) -> None:
    if kept.size + more > limit:
        raise TooLarge(
            f"{whose} use {kept.size} bytes; this file would exceed the limit of {limit} bytes.",
            hint="Delete chats that contain files; nothing was stored.",
        )


def _pieces_of(data: bytes) -> list[bytes]:
    return [data[start : start + PIECE_BYTES] for start in range(0, max(1, len(data)), PIECE_BYTES)]


def _ref_of(owner: Owner, label: Label, known_as: str, data: bytes) -> str:
    """The same for the same file of one owner. Different for every owner, so two owners never share a ref;
    access is checked by owner anyway."""
    digest = hashlib.sha256()
    for word in (owner.tenant, owner.subject, known_as, label.name, label.media_type):
        raw = word.encode(errors="surrogatepass")
        digest.update(b"%d:" % len(raw) + raw)
    digest.update(data)
    return f"blob_{digest.hexdigest()[:32]}"
