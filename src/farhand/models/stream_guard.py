"""Reads a provider's stream to its end: it yields model events or raises one clear fault.

Owns what happens to data that follows no API. It must not know the shapes of any API.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from typing import TypeVar

import msgspec

from farhand.core.run import Usage
from farhand.models.base import CallDone, CallStart, InputDelta, ModelEvent, ReasoningDelta, TextDelta
from farhand.models.error_messages import unexpected_response, unreadable_stream

E = TypeVar("E")
T = TypeVar("T")

GARBLED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""Raised for bytes that are not JSON, and for JSON of an unexpected shape."""


async def guard_stream(
    who: str, events: AsyncIterable[E], decode: Callable[[E], Iterable[ModelEvent]]
) -> AsyncGenerator[ModelEvent, None]:
    """The decoded events. Raises `ModelFault` if they cannot be decoded or if there are none."""
    is_empty = True
    try:
        async for event in events:
            is_empty = False
            for decoded in decode(event):
                yield _checked(decoded)
    except GARBLED as error:
        raise unreadable_stream(who) from error
    if is_empty:
        raise unexpected_response(who)


def decode_json(data: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """The decoded value. Raises `ValueError` if it is not JSON or has another shape."""
    try:
        return decoder.decode(data)
    except msgspec.DecodeError:
        # lone surrogates and numbers such as NaN: compatible servers send them, and Python can read them
        return msgspec.convert(json.loads(data.decode()), decoder.type)


def usage_of(input_tokens: object, output_tokens: object) -> Usage:
    """Usage as far as it is known: some servers omit a count or send null."""
    return Usage(*(count if isinstance(count, int) else 0 for count in (input_tokens, output_tokens)))


def _checked(event: ModelEvent) -> ModelEvent:
    texts: tuple[object, ...] = ()
    match event:
        case TextDelta(text=text) | ReasoningDelta(text=text) | InputDelta(text=text) | CallDone(input=text):
            texts = (text,)
        case CallStart(tool=tool, model_call_id=theirs):
            texts = (tool, theirs or "")
        case _:
            pass
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("expected a string")
    return event
