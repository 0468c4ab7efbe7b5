"""What happened to a run between its segments: connections lost, pauses, answers that changed nothing. Pure.

Pauses are in the journal. Readers and repeated answers are only what this process has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from farhand.agent.observations import Observation
from farhand.core.call import Call
from farhand.core.event import RunFailed, RunFinished, RunParked, RunResumed
from farhand.core.position import Entry

MarkKind: TypeAlias = Literal["lost", "resumed", "paused", "continued", "repeat", "conflict"]


class Mark(Struct, frozen=True):
    """`at` is a time; `call_id` for what concerns one call."""

    at: float
    kind: MarkKind
    call_id: str | None = None


def marks_of(
    entries: Sequence[Entry], readers: Iterable[Observation], calls: Mapping[str, Iterable[Observation]]
) -> list[Mark]:
    """`calls` has what was seen of each call, by its id. In the order of time."""
    pauses = [
        Mark(entry.at, "paused" if isinstance(entry.event, RunParked) else "continued")
        for entry in entries
        if isinstance(entry.event, RunParked | RunResumed)
    ]
    answers = [
        Mark(each.at, each.seen, call_id)
        for call_id, seen in calls.items()
        for each in seen
        if each.seen in ("repeat", "conflict")
    ]
    return sorted([*pauses, *_connections(entries, readers), *answers], key=lambda mark: mark.at)


def _connections(entries: Sequence[Entry], readers: Iterable[Observation]) -> list[Mark]:
    """A connection is lost when the last reader leaves a run that works or is held for it; a response that
    ends with a pause or with the run is no loss."""
    marks: list[Mark] = []
    for each in readers:
        is_lost = bool(marks) and marks[-1].kind == "lost"
        if each.seen == "joined" and is_lost:
            marks.append(Mark(each.at, "resumed"))
        elif each.seen == "left" and each.readers == 0 and not is_lost and not _is_at_rest(entries, each.at):
            marks.append(Mark(each.at, "lost"))
    return marks


def _is_at_rest(entries: Sequence[Entry], at: float) -> bool:
    moves = [entry.event for entry in entries if entry.at <= at and isinstance(entry.event, _MOVES)]
    return bool(moves) and not isinstance(moves[-1], RunResumed)


_MOVES = (RunParked, RunResumed, RunFinished, RunFailed)


def observed_calls(calls: Sequence[Call]) -> dict[str, tuple[str, ...]]:
    """The names by which answers for each call come: its own, and that of its approval."""
    return {
        call.call_id: (call.call_id,) if call.approval is None else (call.call_id, call.approval.approval_id)
        for call in calls
    }


def price_of(prices: Mapping[str, tuple[float, float]], model: str) -> tuple[float, float] | None:
    """By the whole name, or without its provider."""
    return prices.get(model) or prices.get(model.partition(":")[2])


def cost_of(price: tuple[float, float] | None, input_tokens: int, output_tokens: int) -> float | None:
    """In dollars; prices are for a million tokens."""
    if price is None:
        return None
    return round((input_tokens * price[0] + output_tokens * price[1]) / 1_000_000, 6)
