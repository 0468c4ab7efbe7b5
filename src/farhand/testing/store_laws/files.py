"""Files: each arrives in pieces and exists once it is complete. It is deleted with its threads, or by age."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from farhand.core.file import PIECE_BYTES, Kept, StoredFile
from farhand.store.base import ARRIVING_SEC
from farhand.testing.store_laws.fixture import ANN, BOB, EVE, Laws

WEEK_SEC = 7 * 86400.0


class FileLaws(Laws):
    async def test_a_file_comes_back_byte_for_byte_with_its_size(self) -> None:
        async with self.opened() as fixture:
            pieces = [bytes(range(256)) * (PIECE_BYTES // 256), b"", b"\x00end"]
            file = await fixture.put_file(*pieces)
            stored = await fixture.store.files.get(ANN, file.ref)
            assert stored is not None
            assert (stored.name, stored.media_type, stored.created_at) == ("ü.png", "image/png", 1000.0)
            assert (stored.owner, stored.size) == (ANN, sum(map(len, pieces)))
            found = [await fixture.store.files.piece(ANN, file.ref, no) for no in range(4)]
            assert found == [*pieces, None]
            assert await fixture.store.files.piece(ANN, file.ref, -1) is None

    async def test_nobody_finds_a_file_before_its_last_piece(self) -> None:
        async with self.opened() as fixture:
            files, file = fixture.store.files, fixture.new_file()
            assert await files.put(file, 0, [b"one", b"two"], is_last=False)
            assert await files.get(ANN, file.ref) is None
            assert await files.piece(ANN, file.ref, 0) is None
            assert await files.put(file, 2, [b""], is_last=True)
            assert [await files.piece(ANN, file.ref, no) for no in range(4)] == [b"one", b"two", b"", None]

    async def test_pieces_come_in_their_order_and_none_after_the_last(self) -> None:
        async with self.opened() as fixture:
            files, file = fixture.store.files, fixture.new_file()
            assert not await files.put(file, 1, [b"x"], is_last=True)
            assert await files.put(file, 0, [b"x"], is_last=False)
            assert not await files.put(file, 0, [b"again"], is_last=False)
            assert not await files.put(file, 2, [b"z"], is_last=True)
            assert await files.put(file, 1, [b"y"], is_last=True)
            assert not await files.put(file, 2, [b"z"], is_last=True)
            assert not await files.put(file, 0, [b"x"], is_last=True)
            assert await files.kept(ANN.tenant) == Kept(1, 2)

    async def test_of_many_next_pieces_at_once_one_is_kept(self) -> None:
        async with self.opened() as fixture:
            files, file = fixture.store.files, fixture.new_file()
            assert await files.put(file, 0, [b"x"], is_last=False)
            answers = await asyncio.gather(
                *(files.put(file, 1, [bytes([no])], is_last=False) for no in range(20))
            )
            assert answers.count(True) == 1
            assert await files.kept(ANN.tenant) == Kept(1, 2)

    async def test_a_file_that_was_given_up_is_not_completed(self) -> None:
        async with self.opened() as fixture:
            files, file = fixture.store.files, fixture.new_file()
            assert await files.put(file, 0, [b"x"], is_last=False)
            await files.drop(ANN, file.ref)
            assert not await files.put(file, 1, [b"y"], is_last=True)
            assert await files.kept(ANN.tenant) == Kept()
            await files.drop(ANN, file.ref)

    async def test_a_file_of_another_owner_does_not_exist(self) -> None:
        async with self.opened() as fixture:
            files = fixture.store.files
            file, arriving = await fixture.put_file(b"mine"), fixture.new_file()
            assert await files.put(arriving, 0, [b"x"], is_last=False)
            for stranger in (BOB, EVE):
                assert await files.get(stranger, file.ref) is None
                assert await files.piece(stranger, file.ref, 0) is None
                await files.drop(stranger, file.ref)
                theirs = fixture.new_file(stranger)
                assert not await files.put(_named(theirs, arriving.ref), 1, [b"x"], is_last=True)
                assert not await files.put(_named(theirs, file.ref), 0, [b"x"], is_last=True)
            await fixture.append(owner=BOB, files=(file.ref,))
            await fixture.delete("t1", BOB)
            assert await files.piece(ANN, file.ref, 0) == b"mine"

    async def test_what_is_kept_is_counted_for_the_owner_and_for_the_tenant(self) -> None:
        async with self.opened() as fixture:
            files = fixture.store.files
            file = await fixture.put_file(b"12345")
            await fixture.put_file(b"678", owner=BOB)
            assert await files.put(fixture.new_file(), 0, [b"9"], is_last=False)
            assert await files.kept("acme") == Kept(3, 9)
            assert await files.kept("acme", "ann") == Kept(2, 6)
            assert await files.kept("evil") == Kept()
            await files.drop(ANN, file.ref)
            assert await files.kept("acme", "ann") == Kept(1, 1)

    async def test_a_file_goes_with_the_last_thread_that_refers_to_it(self) -> None:
        async with self.opened() as fixture:
            files = fixture.store.files
            one, both, free = [await fixture.put_file(b"x") for _ in range(3)]
            await fixture.append("t1", files=(one.ref, both.ref))
            await fixture.append("t2", files=(both.ref,))
            await fixture.append("t1", files=(both.ref,))
            await fixture.delete("t1")
            assert await files.get(ANN, one.ref) is None
            assert await files.piece(ANN, both.ref, 0) == b"x"
            await fixture.delete("t2")
            assert await files.get(ANN, both.ref) is None
            assert await files.get(ANN, free.ref) is not None
            assert await files.kept("acme") == Kept(1, 1)

    async def test_an_unknown_ref_does_not_block_its_append(self) -> None:
        async with self.opened() as fixture:
            files = fixture.store.files
            theirs, arriving = await fixture.put_file(b"x", owner=BOB), fixture.new_file()
            assert await files.put(arriving, 0, [b"x"], is_last=False)
            await fixture.append(files=(theirs.ref, arriving.ref, fixture.clock.fresh("blob")))
            fixture.clock.advance(WEEK_SEC)
            await fixture.store.purge(before=fixture.clock.now() - 60)
            assert await files.kept("acme") == Kept()

    async def test_files_of_an_append_that_is_refused_are_not_bound(self) -> None:
        async with self.opened() as fixture:
            file = await fixture.put_file(b"x")
            await fixture.try_append(version=7, files=(file.ref,))
            fixture.clock.advance(WEEK_SEC)
            assert (await fixture.store.purge(before=fixture.clock.now() - 60)).files == 1

    async def test_an_old_file_without_a_thread_is_purged_and_a_bound_one_stays(self) -> None:
        async with self.opened() as fixture:
            old, bound = await fixture.put_file(b"x"), await fixture.put_file(b"y")
            await fixture.append(files=(bound.ref,))
            fixture.clock.advance(WEEK_SEC + 60)
            young = await fixture.put_file(b"z")
            limit = fixture.clock.now() - WEEK_SEC
            assert (await fixture.store.purge(before=limit, dry_run=True)).files == 1
            assert (await fixture.store.purge(before=limit)).files == 1
            assert await fixture.store.files.get(ANN, old.ref) is None
            assert await fixture.store.files.piece(ANN, bound.ref, 0) == b"y"
            assert await fixture.store.files.piece(ANN, young.ref, 0) == b"z"

    async def test_an_abandoned_upload_is_purged_soon_and_an_active_one_stays(self) -> None:
        async with self.opened() as fixture:
            files = fixture.store.files
            left, going_on = fixture.new_file(), fixture.new_file()
            assert await files.put(left, 0, [b"half"], is_last=False)
            assert await files.put(going_on, 0, [b"x"], is_last=False)
            fixture.clock.advance(ARRIVING_SEC)
            assert await files.put(going_on, 1, [b"y"], is_last=False)
            fixture.clock.advance(60)
            assert (await fixture.store.purge(before=fixture.clock.now() - WEEK_SEC)).files == 1
            assert not await files.put(left, 1, [b"late"], is_last=True)
            assert await files.put(going_on, 2, [b"z"], is_last=True)
            assert await files.kept("acme") == Kept(1, 3)

    async def test_a_purge_of_many_files_is_complete(self) -> None:
        async with self.opened() as fixture:
            for _ in range(40):
                await fixture.put_file(b"x")
            fixture.clock.advance(100)
            await fixture.store.purge(before=fixture.clock.now() - 50)
            assert await fixture.store.files.kept("acme") == Kept()


def _named(file: StoredFile, ref: str) -> StoredFile:
    return replace(file, ref=ref)
