"""A journal as the Inspector shows it: what was streamed in pieces is whole again, and secrets are masked.

Whole first: a secret that came in two pieces is none in either of them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from farhand.core.approval import Approval
from farhand.core.call import Call
from farhand.core.event import (
    ApprovalAnswered,
    CallOpened,
    CallRejected,
    CallSettled,
    Entry,
    Event,
    Happening,
    InputAdded,
    News,
    join,
)
from farhand.core.event import ReasoningAdded as Reasoning
from farhand.core.event import TextAdded as Text
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.thread import Asked, AssistantMessage, File, Part
from farhand.core.thread import Reasoning as Thought
from farhand.core.thread import Text as Said
from farhand.faces.inspector.masks import MASK, masked, masked_text

H = TypeVar("H", bound=Happening)

_DELTAS = (Text, Reasoning, InputAdded)
_WORDS = ("error", "public", "reason", "message", "detail", "text")


def masked_entries(entries: Sequence[Entry]) -> list[Entry]:
    """One entry for each block of text and for each input; those keep the number of their first piece."""
    whole = _joined(entries)
    return [replace(entry, event=masked_event(entry.event)) for entry in whole]


def masked_news(news: News) -> News:
    return replace(news, event=masked_event(news.event))


def masked_event(event: H) -> H:
    match event:
        case InputAdded(text=text):
            return _changed(event, text=_masked_json(text))
        case CallOpened() | ApprovalAnswered() | CallRejected():
            return _changed(event, input=masked(event.input), **_words(event))
        case CallSettled(outcome=outcome):
            return _changed(event, outcome=masked_outcome(outcome))
        case _:
            # whatever comes to be told one day: its words are looked through, too
            return _changed(event, **_words(event))


def masked_call(call: Call) -> Call:
    outcome = None if call.outcome is None else masked_outcome(call.outcome)
    return _changed(
        call,
        input=masked(call.input),
        outcome=outcome,
        approval=None if call.approval is None else _masked_approval(call.approval),
        metadata=masked(call.metadata),
        title=None if call.title is None else masked_text(call.title),
    )


def masked_step(message: AssistantMessage) -> AssistantMessage:
    return _changed(message, parts=tuple(_masked_part(part) for part in message.parts))


def masked_outcome(outcome: Outcome) -> Outcome:
    match outcome:
        case Success(output=output):
            return Success(masked(output))
        case TimedOut():
            return outcome
        case Failure() | Denied() | Cancelled():
            return _changed(outcome, **_words(outcome))


def _masked_approval(approval: Approval) -> Approval:
    answer = approval.answer
    if answer is not None:
        answer = _changed(answer, reason=masked_text(answer.reason), input=masked(answer.input))
    return _changed(approval, answer=answer, asked_input=masked(approval.asked_input))


def _masked_part(part: Part) -> Part:
    match part:
        case Asked(input=input):
            return _changed(part, input=masked(input))
        case Said(text=text) | Thought(text=text):
            return _changed(part, text=masked_text(text))
        case File():
            return part


S = TypeVar("S", bound=Struct)


def _changed(record: S, **changes: object) -> S:
    return replace(record, **changes)


def _words(record: Struct) -> dict[str, object]:
    return {name: masked_text(getattr(record, name)) for name in record.__struct_fields__ if name in _WORDS}


def _joined(entries: Iterable[Entry]) -> list[Entry]:
    whole: list[Entry] = []
    inputs: dict[str, int] = {}
    for entry in entries:
        event = entry.event
        into = inputs.get(event.call_id) if isinstance(event, InputAdded) else len(whole) - 1
        both = None if into is None or into < 0 else _both(whole[into].event, event)
        if both is not None and into is not None:
            whole[into] = replace(whole[into], event=both)
            continue
        if isinstance(event, InputAdded):
            inputs[event.call_id] = len(whole)
        whole.append(entry)
    return whole


def _both(last: Event, event: Event) -> Event | None:
    if not isinstance(last, _DELTAS) or not isinstance(event, _DELTAS):
        return None
    return join(last, event)


def _masked_json(text: str) -> str:
    try:
        understood: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        # not finished yet, or never: what stands under which name can't be told
        return MASK if text else text
    hidden = masked(understood)
    return text if hidden == understood else msgspec.json.encode(hidden).decode()
