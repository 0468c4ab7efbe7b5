"""Backboard's stream of one round as model events. Knows the stream's shapes, and no connection."""

from __future__ import annotations

import json
from collections.abc import Iterator

from farhand.core.run import Usage
from farhand.errors import ModelFault
from farhand.models.backboard.client import Event
from farhand.models.backboard.fresh import Fresh
from farhand.models.backboard.standing import Place, echo_of
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
from farhand.models.calling import Names


class Answer:
    """`stop` is there once the round is complete: with an answer, or with calls it waits for."""

    def __init__(self, names: Names, place: Place) -> None:
        self._names = names
        self._place = place
        self._text = Fresh()
        self._thought = Fresh()
        self._reason: StopReason | None = None
        self._usage = Usage()

    @property
    def stop(self) -> Stop | None:
        return None if self._reason is None else Stop(self._reason, self._usage)

    def hear(self, event: Event) -> Iterator[ModelEvent]:
        self._count(event)
        match event.get("type"):
            case "content_streaming":
                yield from _told(ReasoningDelta, self._thought.rest())
                yield from _told(TextDelta, self._text.feed(str(event.get("content") or "")))
            case "reasoning_streaming":
                yield from _told(TextDelta, self._text.rest())
                yield from _told(ReasoningDelta, self._thought.feed(str(event.get("content") or "")))
            case "tool_submit_required":
                yield from self._ask(event)
            case "run_ended" if self._reason is None:
                yield from self._rest()
                yield echo_of(self._place, None)
                self._reason = "end"
            case "run_cancelled":
                raise ModelFault(
                    "Backboard cancelled the run.",
                    hint="Send the message again.",
                    public="The model's answer was cancelled. Send the message again.",
                )
            case _:
                pass

    def _ask(self, event: Event) -> Iterator[ModelEvent]:
        calls = event.get("tool_calls") or []
        if not calls:
            # the run waits for outputs there, and nobody could ever bring one
            raise ModelFault(
                "Backboard asked for results of tools, but named no call.", hint="Send the message again."
            )
        yield from self._rest()
        yield echo_of(self._place, str(event.get("run_id") or ""))
        for index, call in enumerate(calls):
            function = call.get("function") or {}
            written = function.get("arguments")
            text = written if isinstance(written, str) else json.dumps(written or {})
            yield CallStart(index, self._names.name(str(function.get("name") or "")), call.get("id") or None)
            yield InputDelta(index, text)
            yield CallDone(index, text)
        self._reason = "calls"

    def _rest(self) -> Iterator[ModelEvent]:
        yield from _told(ReasoningDelta, self._thought.rest())
        yield from _told(TextDelta, self._text.rest())

    def _count(self, event: Event) -> None:
        told, said = event.get("input_tokens"), event.get("output_tokens")
        if isinstance(told, int) and isinstance(said, int):
            self._usage = Usage(told, said)


def _told(kind: type[TextDelta | ReasoningDelta], text: str) -> Iterator[ModelEvent]:
    if text:
        yield kind(text)
