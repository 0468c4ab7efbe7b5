from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import httpx2
import pytest

from farhand.models.openai import client
from farhand.models.openai.client import read_events


async def read(*chunks: bytes) -> list[bytes]:
    async def sent() -> AsyncGenerator[bytes, None]:
        for chunk in chunks:
            yield chunk

    return [event async for event in read_events(sent(), bytes.upper)]


async def test_events_come_up_to_the_last_word_and_nothing_after_it() -> None:
    assert await read(b"data: a\n\ndata: [DO", b"NE]\n\ndata: b\n\n", b"data: c\n\n") == [b"A", b"[DONE]"]


async def test_the_last_word_counts_without_its_blank_line_and_no_other_event_does() -> None:
    assert await read(b"data: a\n\ndata: [DONE]") == [b"A", b"[DONE]"]
    assert await read(b"data: a\n\ndata: b\n") == [b"A"]


async def test_events_without_data_are_left_out() -> None:
    assert await read(b"event: ping\n\ndata:\n\nretry: 5\n\ndata: a\n\n") == [b"A"]


async def test_what_decodes_to_none_is_left_out() -> None:
    async def sent() -> AsyncGenerator[bytes, None]:
        yield b"data: a\n\ndata: b\n\n"

    events = read_events(sent(), lambda data: data if data == b"b" else None)
    assert [event async for event in events] == [b"b"]


async def test_a_response_is_read_to_its_end_after_the_last_word() -> None:
    ended: list[str] = []

    async def sent() -> AsyncGenerator[bytes, None]:
        yield b"data: [DONE]\n\n"
        yield b"rest"
        ended.append("ended")

    assert [event async for event in read_events(sent(), bytes)] == [b"[DONE]"]
    assert ended == ["ended"]


async def test_an_end_that_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "DRAIN_SEC", 0.01)

    async def sent() -> AsyncGenerator[bytes, None]:
        yield b"data: [DONE]\n\n"
        await asyncio.Event().wait()

    assert [event async for event in read_events(sent(), bytes)] == [b"[DONE]"]


async def test_a_connection_that_is_lost_after_the_last_word_loses_nothing() -> None:
    async def sent() -> AsyncGenerator[bytes, None]:
        yield b"data: [DONE]\n\n"
        raise httpx2.ReadError("gone")

    assert [event async for event in read_events(sent(), bytes)] == [b"[DONE]"]
