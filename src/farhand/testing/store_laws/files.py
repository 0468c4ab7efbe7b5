"""Files arrive in pieces and are there with the last one; they go with their threads, or by their age."""

from __future__ import annotations

import asyncio

from farhand.core.file import PIECE_BYTES, Kept, StoredFile
from farhand.core.principal import Owner
from farhand.store.base import (
    BindFiles,
    Committed,
    DeleteThread,
    DropFile,
    InsertFile,
    PutPiece,
    Stale,
    SwapCall,
)
from farhand.store.rules import ARRIVING_SEC
from farhand.testing.store_laws.given import ANN, BOB, Given, Laws

EVE = Owner("evil", "ann")
WEEK_SEC = 7 * 86400.0


class FileLaws(Laws):
    async def test_a_file_comes_back_byte_for_byte_with_its_size(self) -> None:
        async with self.given() as given:
            pieces = [bytes(range(256)) * (PIECE_BYTES // 256), b"", b"\x00end"]
            file = await put_file(given, *pieces)
            stored = await given.store.files.get(ANN, file.ref)
            assert stored is not None
            assert (stored.name, stored.media_type, stored.created_at) == ("ü.png", "image/png", 1000.0)
            assert (stored.owner, stored.size) == (ANN, sum(map(len, pieces)))
            found = [await given.store.files.piece(ANN, file.ref, no) for no in range(4)]
            assert found == [*pieces, None]
            assert await given.store.files.piece(ANN, file.ref, -1) is None

    async def test_a_small_file_is_one_commit(self) -> None:
        async with self.given() as given:
            file = new_file(given)
            await given.write(InsertFile(file), PutPiece(ANN, file.ref, 0, b"all", is_last=True))
            assert await given.store.files.piece(ANN, file.ref, 0) == b"all"

    async def test_nobody_finds_a_file_before_its_last_piece(self) -> None:
        async with self.given() as given:
            file = new_file(given)
            await given.write(InsertFile(file))
            await given.write(PutPiece(ANN, file.ref, 0, b"half"))
            assert await given.store.files.get(ANN, file.ref) is None
            assert await given.store.files.piece(ANN, file.ref, 0) is None
            await given.write(PutPiece(ANN, file.ref, 1, b"", is_last=True))
            assert await given.store.files.piece(ANN, file.ref, 0) == b"half"

    async def test_pieces_come_in_their_order_and_none_after_the_last(self) -> None:
        async with self.given() as given:
            file = new_file(given)
            await given.write(InsertFile(file))
            assert await given.refuse(PutPiece(ANN, file.ref, 1, b"x")) == "version"
            await given.write(PutPiece(ANN, file.ref, 0, b"x"))
            assert await given.refuse(PutPiece(ANN, file.ref, 0, b"x")) == "version"
            await given.write(PutPiece(ANN, file.ref, 1, b"y", is_last=True))
            assert await given.refuse(PutPiece(ANN, file.ref, 2, b"z")) == "ended"
            assert await given.refuse(InsertFile(file)) == "exists"

    async def test_nothing_of_a_refused_commit_is_kept_of_a_file(self) -> None:
        async with self.given() as given:
            file = new_file(given)
            last = PutPiece(ANN, file.ref, 0, b"x", is_last=True)
            assert await given.refuse(InsertFile(file), last, last) == "ended"
            assert await given.store.files.kept(ANN.tenant) == Kept()
            await given.write(InsertFile(file), last)

    async def test_of_many_next_pieces_at_once_one_is_kept(self) -> None:
        async with self.given() as given:
            file = new_file(given)
            await given.write(InsertFile(file))
            rivals = [given.store.commit(PutPiece(ANN, file.ref, 0, bytes([no]))) for no in range(20)]
            commits = await asyncio.gather(*rivals)
            assert sum(isinstance(commit, Committed) for commit in commits) == 1
            assert {commit.why for commit in commits if isinstance(commit, Stale)} == {"version"}
            assert await given.store.files.kept(ANN.tenant) == Kept(1, 1)

    async def test_a_file_of_another_owner_does_not_exist(self) -> None:
        async with self.given() as given:
            await given.thread("t1", BOB)
            file, arriving = await put_file(given, b"mine"), new_file(given)
            await given.write(InsertFile(arriving))
            for stranger in (BOB, EVE):
                assert await given.store.files.get(stranger, file.ref) is None
                assert await given.store.files.piece(stranger, file.ref, 0) is None
                assert await given.refuse(DropFile(stranger, file.ref)) == "missing"
                assert await given.refuse(PutPiece(stranger, arriving.ref, 0, b"x")) == "missing"
            await given.write(BindFiles(BOB, "t1", (file.ref,)))
            await given.write(DeleteThread(BOB, "t1"))
            assert await given.store.files.get(ANN, file.ref) is not None

    async def test_what_is_kept_is_counted_for_the_owner_and_for_the_tenant(self) -> None:
        async with self.given() as given:
            file = await put_file(given, b"12345")
            await put_file(given, b"678", owner=BOB)
            arriving = new_file(given)
            await given.write(InsertFile(arriving), PutPiece(ANN, arriving.ref, 0, b"9"))
            assert await given.store.files.kept("acme") == Kept(3, 9)
            assert await given.store.files.kept("acme", "ann") == Kept(2, 6)
            assert await given.store.files.kept("evil") == Kept()
            await given.write(DropFile(ANN, file.ref))
            assert await given.store.files.kept("acme", "ann") == Kept(1, 1)
            assert await given.refuse(DropFile(ANN, file.ref)) == "missing"

    async def test_a_file_goes_with_the_last_thread_that_refers_to_it(self) -> None:
        async with self.given() as given:
            await given.thread("t1")
            await given.thread("t2")
            one, both, free = [await put_file(given, b"x") for _ in range(3)]
            await given.write(BindFiles(ANN, "t1", (one.ref, both.ref)))
            await given.write(BindFiles(ANN, "t2", (both.ref,)), BindFiles(ANN, "t1", (both.ref,)))
            await given.write(DeleteThread(ANN, "t1"))
            assert await given.store.files.get(ANN, one.ref) is None
            assert await given.store.files.piece(ANN, both.ref, 0) == b"x"
            await given.write(DeleteThread(ANN, "t2"))
            assert await given.store.files.get(ANN, both.ref) is None
            assert await given.store.files.get(ANN, free.ref) is not None
            assert await given.store.files.kept("acme") == Kept(1, 1)

    async def test_a_ref_that_binds_nothing_does_not_hold_up_what_it_came_with(self) -> None:
        async with self.given() as given:
            call = await given.call(await given.run("t1"))
            theirs = await put_file(given, b"x", owner=BOB)
            arriving = new_file(given)
            await given.write(InsertFile(arriving))
            refs = (theirs.ref, arriving.ref, given.clock.fresh("blob"))
            settled = given.settled(call)
            await given.write(SwapCall(call, settled), BindFiles(ANN, "t1", refs), BindFiles(ANN, "t9", refs))
            assert await given.stored_call(call) == settled
            given.clock.advance(WEEK_SEC)
            await given.store.purge(settled_before=given.clock.now())
            assert await given.store.files.kept("acme") == Kept()

    async def test_a_file_that_no_thread_refers_to_goes_by_its_age_and_a_bound_one_stays(self) -> None:
        async with self.given() as given:
            await given.thread()
            old, bound = await put_file(given, b"x"), await put_file(given, b"y")
            await given.write(BindFiles(ANN, "t1", (bound.ref,)))
            given.clock.advance(WEEK_SEC + 1)
            young = await put_file(given, b"z")
            await given.store.purge(settled_before=given.clock.now() - WEEK_SEC)
            assert await given.store.files.get(ANN, old.ref) is None
            assert await given.store.files.piece(ANN, bound.ref, 0) == b"y"
            assert await given.store.files.piece(ANN, young.ref, 0) == b"z"

    async def test_a_file_that_stopped_arriving_goes_soon_and_one_that_goes_on_stays(self) -> None:
        async with self.given() as given:
            left, going_on = new_file(given), new_file(given)
            await given.write(InsertFile(left), PutPiece(ANN, left.ref, 0, b"half"), InsertFile(going_on))
            given.clock.advance(ARRIVING_SEC)
            await given.write(PutPiece(ANN, going_on.ref, 0, b"x"))
            given.clock.advance(1)
            await given.store.purge(settled_before=given.clock.now() - WEEK_SEC)
            assert await given.refuse(PutPiece(ANN, left.ref, 1, b"late")) == "missing"
            await given.write(PutPiece(ANN, going_on.ref, 1, b"y", is_last=True))
            assert await given.store.files.kept("acme") == Kept(1, 2)

    async def test_a_purge_of_many_files_is_whole(self) -> None:
        async with self.given() as given:
            for _ in range(40):
                await put_file(given, b"x")
            given.clock.advance(10)
            await given.store.purge(settled_before=given.clock.now())
            assert await given.store.files.kept("acme") == Kept()


def new_file(given: Given, owner: Owner = ANN) -> StoredFile:
    ref = given.clock.fresh("blob")
    return StoredFile(owner=owner, ref=ref, name="ü.png", media_type="image/png", created_at=1000.0)


async def put_file(given: Given, *pieces: bytes, owner: Owner = ANN) -> StoredFile:
    """A file that has arrived, in these pieces."""
    file = new_file(given, owner)
    await given.write(InsertFile(file))
    for no, piece in enumerate(pieces):
        await given.write(PutPiece(owner, file.ref, no, piece, is_last=no == len(pieces) - 1))
    return file
