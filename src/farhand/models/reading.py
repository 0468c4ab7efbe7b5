"""Reads a provider's stream to its end: what comes in it is model events, or one clear fault.

Owns what happens with shapes that no API has. It must not know which shapes each API does have.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from typing import TypeVar

from farhand.core.run import Usage
from farhand.models.base import CallDone, CallStart, InputDelta, ModelEvent, ReasoningDelta, TextDelta
from farhand.models.faults import no_answer_of_its_api, unreadable

E = TypeVar("E")

GARBLED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What is raised on bytes that are no JSON, and on JSON of other shapes: the libraries build their records
without a look at what is in them."""


async def heard(
    who: str, events: AsyncIterable[E], hear: Callable[[E], Iterable[ModelEvent]]
) -> AsyncGenerator[ModelEvent, None]:
    """All that is heard in the events; a `ModelFault` if they make no sense, or if there is none at all."""
    came = False
    try:
        async for event in events:
            came = True
            for said in hear(event):
                yield _checked(said)
    except GARBLED as error:
        raise unreadable(who) from error
    if not came:
        raise no_answer_of_its_api(who)


def counted(input_tokens: object, output_tokens: object) -> Usage:
    """Usage as far as it was told: some servers leave a count out, or send null."""
    told, said = (count if isinstance(count, int) else 0 for count in (input_tokens, output_tokens))
    return Usage(told, said)


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
        raise TypeError("a text that is none")
    return event
