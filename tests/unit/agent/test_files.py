"""Files as the agent stores them: complete or not at all, even if the store or the sender disappears."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from farhand.agent.files import Files, Label
from farhand.core.file import PIECE_BYTES, FileRules, Kept, StoredFile
from farhand.core.principal import LOCAL, Owner
from farhand.errors import NotFound, TooSlow
from farhand.eventlog.log import EventLog
from farhand.store.base import ARRIVING_SEC, Store
from farhand.testing import FakeClock
from tests.requirement import requirement

PNG = Label("a.png", "image/png")
BOB = Owner("local", "bob")


@pytest.fixture
def files(store: Store, clock: FakeClock) -> Files:
    return Files(EventLog(store), clock, FileRules())


async def in_pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


@requirement("attack:who-you-are")
async def test_a_file_is_loaded_for_its_owner_alone(files: Files) -> None:
    file = await files.receive(LOCAL, PNG, in_pieces(b"1" * PIECE_BYTES, b"22"))
    assert await files.load(LOCAL, file.ref) == (file, b"1" * PIECE_BYTES + b"22")
    assert await files.load(BOB, file.ref) is None
    assert await files.known(BOB, [file.ref]) == {}
    assert await files.known(LOCAL, [file.ref, "x", "blob_" + "0" * 32]) == {file.ref: file}
    with pytest.raises(NotFound):
        await files.find(BOB, file.ref)


async def test_a_file_that_is_larger_than_asked_for_is_not_loaded(files: Files) -> None:
    file = await files.receive(LOCAL, PNG, in_pieces(b"1234"))
    assert await files.load(LOCAL, file.ref, at_most=3) is None
    assert await files.load(LOCAL, file.ref, at_most=4) is not None


@requirement("files:nothing-half")
async def test_an_upload_that_breaks_leaves_nothing(files: Files, store: Store) -> None:
    async def breaking() -> AsyncIterator[bytes]:
        yield b"1"
        yield b"2"
        raise TooSlow("no more")

    with pytest.raises(TooSlow):
        await files.receive(LOCAL, PNG, breaking())
    assert await store.files.kept("local") == Kept()


@requirement("files:nothing-half")
async def test_an_upload_whose_request_is_cancelled_leaves_nothing(files: Files, store: Store) -> None:
    half = asyncio.Event()

    async def stopping() -> AsyncIterator[bytes]:
        yield b"1"
        yield b"2"
        half.set()
        await asyncio.Event().wait()

    # the task is this test's own, to be cancelled as a server does
    async with asyncio.TaskGroup() as group:
        task = group.create_task(files.receive(LOCAL, PNG, stopping()))
        await half.wait()
        assert await store.files.kept("local") == Kept(1, 1)
        task.cancel()
    assert await store.files.kept("local") == Kept()


@requirement("files:nothing-half")
async def test_an_upload_that_was_given_up_meanwhile_says_so(
    files: Files, store: Store, clock: FakeClock
) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"1"
        yield b"2"
        clock.advance(ARRIVING_SEC + 1)
        await store.purge(before=0.0)
        yield b"3"

    with pytest.raises(TooSlow, match="was cancelled"):
        await files.receive(LOCAL, PNG, slow())
    assert await store.files.kept("local") == Kept()


@requirement("files:in-messages")
async def test_the_same_bytes_under_the_same_name_are_one_file(files: Files, store: Store) -> None:
    one = await files.keep(LOCAL, PNG, b"x" * (PIECE_BYTES + 1), known_as="t/m/0")
    again = await files.keep(LOCAL, PNG, b"x" * (PIECE_BYTES + 1), known_as="t/m/0")
    assert one == again
    others = [
        await files.keep(BOB, PNG, b"x" * (PIECE_BYTES + 1), known_as="t/m/0"),
        await files.keep(LOCAL, PNG, b"x" * (PIECE_BYTES + 1), known_as="t/m/1"),
        await files.keep(LOCAL, Label("b.png", "image/png"), b"x" * (PIECE_BYTES + 1), known_as="t/m/0"),
        await files.keep(LOCAL, PNG, b"y", known_as="t/m/0"),
    ]
    assert len({file.ref for file in (one, *others)}) == 5
    assert (await store.files.kept("local")).files == 5
    assert await files.load(LOCAL, one.ref) == (one, b"x" * (PIECE_BYTES + 1))


@requirement("files:in-messages")
async def test_the_pieces_of_a_file_in_a_message_are_stored_together_or_not_at_all(
    files: Files, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = store.files.put
    puts: list[int] = []

    async def counting(file: StoredFile, no: int, pieces: Sequence[bytes], *, is_last: bool) -> bool:
        puts.append(len(pieces))
        return await put(file, no, pieces, is_last=is_last)

    monkeypatch.setattr(store.files, "put", counting)
    kept = await files.keep(LOCAL, PNG, b"x" * (2 * PIECE_BYTES + 1), known_as="t/m/0")
    assert puts == [3]
    assert kept.size == 2 * PIECE_BYTES + 1
    await files.keep(LOCAL, PNG, b"", known_as="t/m/1")
    assert puts == [3, 1]


@requirement("files:in-messages")
async def test_of_many_equal_messages_at_once_one_file_is_kept(files: Files, store: Store) -> None:
    kept = await asyncio.gather(*(files.keep(LOCAL, PNG, b"x", known_as="t/m/0") for _ in range(20)))
    assert len({file.ref for file in kept}) == 1
    assert await store.files.kept("local") == Kept(1, 1)
