"""Our decoding of a provider's bytes compared with the official library's, wherever the bytes are cut.

The library parses the stream into its records, which are written as JSON again; what an answer makes of those
is what it has to make of the bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.core.run import Usage
from farhand.models.anthropic.stream import MessageDecoder as MessageAnswer
from farhand.models.anthropic.stream import decode_event as decode_message_event
from farhand.models.base import (
    CallDone,
    CallStart,
    InputDelta,
    ModelEvent,
    ReasoningDelta,
    Stop,
    StopReason,
    TextDelta,
)
from farhand.models.openai.chat import ChatDecoder as ChatAnswer
from farhand.models.openai.chat import ChatEvent, decode_chunk
from farhand.models.openai.client import read_events
from farhand.models.openai.responses import ResponseDecoder as ResponseAnswer
from farhand.models.openai.responses import ResponseEvent
from farhand.models.openai.responses import decode_event as decode_response_event
from farhand.models.prompt_encoding import ToolNames
from farhand.models.sse_reader import SseEvent, SseReader
from tests.fakes.anthropic.write import MessageWriter
from tests.fakes.openai.chat_write import ChunkWriter
from tests.fakes.openai.responses_write import ResponseWriter
from tests.fakes.stream import Writer

Said: TypeAlias = tuple[list[ModelEvent], Stop | None]
NAMES = ToolNames(["look", "listen"])
REASONS: tuple[StopReason, ...] = ("end", "calls", "length", "refusal", "pause", "other")


class Body(httpx2.AsyncByteStream):
    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


def http(chunks: Sequence[bytes]) -> httpx2.AsyncClient:
    """A client whose every request is answered with these bytes."""
    headers = {"content-type": "text/event-stream"}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, stream=Body(chunks)))
    return httpx2.AsyncClient(transport=transport)


async def sent(chunks: Sequence[bytes]) -> AsyncGenerator[bytes, None]:
    for chunk in chunks:
        yield chunk


async def chat_by_library(chunks: Sequence[bytes]) -> Said:
    answer = ChatAnswer(NAMES, "m")
    async with openai.AsyncOpenAI(api_key="key", http_client=http(chunks)) as client:
        stream = await client.chat.completions.create(model="m", messages=[], stream=True)
        records = [record.to_json(warnings=False).encode() async for record in stream]
    return [said for each in records for said in answer.decode(decode_chunk(each))], answer.stop


async def chat_by_us(chunks: Sequence[bytes]) -> Said:
    answer = ChatAnswer(NAMES, "m")
    events: AsyncGenerator[ChatEvent, None] = read_events(sent(chunks), decode_chunk)
    return [said async for event in events for said in answer.decode(event)], answer.stop


async def response_by_library(chunks: Sequence[bytes]) -> Said:
    answer = ResponseAnswer(NAMES)
    async with openai.AsyncOpenAI(api_key="key", http_client=http(chunks)) as client:
        stream = await client.responses.create(model="m", input=[], stream=True)
        records = [decode_response_event(record.to_json(warnings=False).encode()) async for record in stream]
    return [said for each in records if each for said in answer.decode(each)], answer.stop


async def response_by_us(chunks: Sequence[bytes]) -> Said:
    answer = ResponseAnswer(NAMES)
    events: AsyncGenerator[ResponseEvent, None] = read_events(sent(chunks), decode_response_event)
    return [said async for event in events for said in answer.decode(event)], answer.stop


async def message_by_library(chunks: Sequence[bytes]) -> Said:
    async with anthropic.AsyncAnthropic(api_key="key", http_client=http(chunks)) as client:
        stream = await client.messages.create(model="m", max_tokens=9, messages=[], stream=True)
        return message_of(
            [SseEvent(b"x", record.to_json(warnings=False).encode()) async for record in stream]
        )


async def message_by_us(chunks: Sequence[bytes]) -> Said:
    reader = SseReader()
    return message_of([event for chunk in chunks for event in reader.feed(chunk)])


def message_of(events: Sequence[SseEvent]) -> Said:
    answer = MessageAnswer(NAMES)
    decoded = map(decode_message_event, events)
    return [said for each in decoded if each for said in answer.decode(each)], answer.stop


@dataclass(frozen=True)
class Api:
    writer: Callable[[], Writer]
    by_library: Callable[[Sequence[bytes]], Awaitable[Said]]
    by_us: Callable[[Sequence[bytes]], Awaitable[Said]]


CHAT = Api(
    lambda: ChunkWriter(
        {"model": "m", "messages": [], "stream_options": {"include_usage": True}}, "reasoning", set()
    ),
    chat_by_library,
    chat_by_us,
)
RESPONSES = Api(lambda: ResponseWriter({"model": "m", "input": []}, {}), response_by_library, response_by_us)
MESSAGES = Api(lambda: MessageWriter({"model": "m", "messages": []}, []), message_by_library, message_by_us)
by_api = pytest.mark.parametrize(
    "api", [CHAT, RESPONSES, MESSAGES], ids=["openai-chat", "openai", "anthropic"]
)

WORDS = st.text(st.sampled_from('aö🎉 \n\r\t"\\:\x85\u2028{}[]'), max_size=5)
TEXTS = st.lists(WORDS.map(TextDelta), min_size=1, max_size=3)
THOUGHTS = st.lists(WORDS.map(ReasoningDelta), min_size=1, max_size=3)
CALLS = st.tuples(
    st.sampled_from(["look", "listen", "made up"]),
    st.sampled_from(["call_1", "call_2", None]),
    st.lists(WORDS.filter(bool), max_size=3),
)
STOPS = st.builds(Stop, st.sampled_from(REASONS), st.builds(Usage, st.integers(1, 99), st.integers(1, 99)))
STEPS = st.lists(TEXTS | THOUGHTS | CALLS, max_size=5)


def events_of(steps: Sequence[list[ModelEvent] | tuple[str, str | None, list[str]]]) -> Iterator[ModelEvent]:
    indexes = itertools.count()
    for step in steps:
        if isinstance(step, list):
            yield from step
            continue
        (tool, theirs, pieces), index = step, next(indexes)
        yield CallStart(index, tool, theirs)
        yield from (InputDelta(index, piece) for piece in pieces)
        yield CallDone(index, "".join(pieces))


def cut_at(stream: bytes, cuts: set[int]) -> list[bytes]:
    places = [0, *sorted(cut for cut in cuts if 0 < cut < len(stream)), len(stream)]
    return [stream[start:end] for start, end in itertools.pairwise(places)]


@by_api
@given(
    steps=STEPS,
    stop=STOPS,
    length=st.integers(0, 100),
    line_end=st.sampled_from([b"\n", b"\r\n"]),
    cuts=st.sets(st.integers(1, 4_000), max_size=20),
)
async def test_an_answer_is_read_as_the_library_reads_it_wherever_its_bytes_are_cut(
    api: Api,
    steps: list[list[ModelEvent] | tuple[str, str | None, list[str]]],
    stop: Stop,
    length: int,
    line_end: bytes,
    cuts: set[int],
) -> None:
    writer = api.writer()
    frames = [writer.begin(), *(writer.write(event) for event in events_of(steps)), writer.write(stop)]
    # some answers end before their time
    stream = b"".join(frames if length > len(frames) // 2 else frames[:length]).replace(b"\n", line_end)
    whole = await api.by_library([stream])
    assert await api.by_us([stream]) == whole
    assert await api.by_us(cut_at(stream, cuts)) == whole


OTHERS = {
    "comments": b": OPENROUTER PROCESSING\n\n",
    "an unknown event": b'event: response.sky\ndata: {"type": "response.sky", "delta": {"blue": 1}}\n\n',
    "unknown members": b'event: x\ndata: {"type": "x", "choices": [{"delta": {"sky": [1]}}], "x": 1}\n\n',
    "data in several lines": b'event: x\ndata: {"type":\ndata: "x",\ndata: "choices": []}\n\n',
    "null members": b'event: x\ndata: {"type": "x", "choices": null, "usage": null, "error": null}\n\n',
}


@by_api
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
async def test_what_stands_between_the_events_is_passed_over_as_the_library_does(
    api: Api, other: bytes
) -> None:
    writer = api.writer()
    frames = [writer.begin(), writer.write(TextDelta("one ")), other, writer.write(TextDelta("two"))]
    stream = b"".join([*frames, writer.write(Stop("end", Usage(3, 4)))])
    said, stop = await api.by_library([stream])
    assert (said, stop) == ([TextDelta("one "), TextDelta("two")], Stop("end", Usage(3, 4)))
    for at in range(len(stream)):
        assert await api.by_us([stream[:at], stream[at:]]) == (said, stop)
