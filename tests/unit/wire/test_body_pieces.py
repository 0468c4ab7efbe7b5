"""A large body, read in pieces of one size."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as some
from starlette.types import Message

from farhand.errors import Malformed, TooLarge, TooSlow
from farhand.wire.http import declared_length, read_pieces
from tests.requirement import requirement
from tests.unit.wire.peer import Peer


def parts(*bodies: bytes) -> list[Message]:
    last = len(bodies) - 1
    return [{"type": "http.request", "body": body, "more_body": no < last} for no, body in enumerate(bodies)]


async def read(peer: Peer, *, piece: int = 4, limit: int = 100, within: float = 10.0) -> list[bytes]:
    return [each async for each in read_pieces(peer.receive, piece=piece, limit=limit, within=within)]


@given(some.lists(some.binary(max_size=9), min_size=1, max_size=8), some.integers(1, 7))
def test_every_piece_but_the_last_is_full_and_together_they_are_the_body(
    bodies: list[bytes], piece: int
) -> None:
    found = asyncio.run(read(Peer(*parts(*bodies)), piece=piece))
    assert b"".join(found) == b"".join(bodies)
    assert all(len(each) == piece for each in found[:-1])
    assert all(0 < len(each) <= piece for each in found)


@requirement("files:upload")
@given(some.integers(0, 20), some.integers(1, 20), some.integers(1, 7))
def test_a_body_is_refused_exactly_when_it_passes_the_limit(size: int, limit: int, piece: int) -> None:
    async def attempt() -> bool:
        try:
            await read(Peer(*parts(*[b"x"] * size or [b""])), piece=piece, limit=limit)
        except TooLarge:
            return False
        return True

    assert asyncio.run(attempt()) is (size <= limit)


@requirement("files:upload")
async def test_a_body_that_passed_its_limit_is_not_read_any_further() -> None:
    peer = Peer(*parts(b"123", b"4", b"5"))
    with pytest.raises(TooLarge, match="larger than 3 bytes"):
        await read(peer, piece=100, limit=3)
    assert (await peer.receive())["body"] == b"5"


@requirement("files:nothing-half")
async def test_a_body_that_is_cut_is_malformed() -> None:
    peer = Peer(*parts(b"1234", b"5")[:1])
    peer.leave()
    with pytest.raises(Malformed, match="closed before the whole body"):
        await read(peer)


async def test_a_piece_that_does_not_come_in_time_is_too_slow() -> None:
    with pytest.raises(TooSlow, match=r"4 bytes of the body did not arrive within 0\.05 s"):
        await read(Peer(*parts(b"1234", b"5", b"")[:2]), within=0.05)


async def test_the_time_is_for_each_piece_and_not_for_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    timeout, begun = asyncio.timeout, []

    def counted(seconds: float | None) -> asyncio.Timeout:
        begun.append(seconds)
        return timeout(seconds)

    monkeypatch.setattr(asyncio, "timeout", counted)
    found = await read(Peer(*parts(*[b"1234"] * 6, b"")), within=60.0)
    assert found == [b"1234"] * 6
    assert begun == [60.0] * 7, "one for each, and one for the end"


def test_a_length_is_a_number_or_nothing() -> None:
    assert declared_length([(b"content-length", b"12")]) == 12
    assert declared_length([(b"content-type", b"x")]) is None
    assert declared_length([(b"content-length", b"9" * 5000)]) == 10**19 - 1
    with pytest.raises(Malformed):
        declared_length([(b"content-length", b"-1")])
