from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator

import pytest
from msgspec import Struct
from msgspec.json import Decoder

from farhand.core.run import Usage
from farhand.errors import ModelFault
from farhand.models.base import ModelEvent, TextDelta
from farhand.models.stream_guard import decode_json, guard_stream, usage_of


class Word(Struct):
    text: str
    count: object = None


WORD = Decoder(Word)


async def sent(*datas: bytes) -> AsyncGenerator[bytes, None]:
    for data in datas:
        yield data


def decode(data: bytes) -> Iterator[ModelEvent]:
    yield TextDelta(decode_json(data, WORD).text)


def test_members_that_are_not_used_are_skipped() -> None:
    assert decode_json(b'{"text": "hi", "more": [{"deep": null}]}', WORD) == Word("hi")


def test_half_a_character_is_kept_as_it_came() -> None:
    assert decode_json(rb'{"text": "\ud83d"}', WORD) == Word("\ud83d")
    assert decode_json(rb'{"text": "hi", "more": "\ud83d"}', WORD) == Word("hi")


def test_numbers_that_json_does_not_have_are_read() -> None:
    assert decode_json(b'{"text": "hi", "more": NaN}', WORD) == Word("hi")
    assert decode_json(b'{"text": "hi", "count": 1e400}', WORD) == Word("hi", float("inf"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"text": "hi"} more',
        b"[1]",
        b"null",
        b'{"text": 7}',
        b"{}",
        b'{"text": "\xff"}',
        b"[" * 100_000,
    ],
    ids=["nothing", "cut", "two", "a list", "null", "a number", "no text", "no UTF-8", "too deep"],
)
async def test_what_is_no_event_ends_with_one_sentence(data: bytes) -> None:
    with pytest.raises(ModelFault, match="Acme sent something that cannot be decoded"):
        [event async for event in guard_stream("Acme", sent(b'{"text": "hi"}', data), decode)]


async def test_a_stream_without_an_event_is_none_of_the_api() -> None:
    with pytest.raises(ModelFault, match="answered, but not with its API"):
        [event async for event in guard_stream("Acme", sent(), decode)]


def test_counts_that_are_none_are_zero() -> None:
    assert usage_of(3, None) == Usage(3, 0)
    assert usage_of("3", 4) == Usage(0, 4)
