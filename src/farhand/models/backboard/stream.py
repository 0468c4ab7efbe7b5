"""Decodes the stream of one round of Backboard into model events. Knows no connection.

A text arrives in pieces that are deltas or all of the text so far; nothing in the stream says which.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from farhand.core.run import Usage
from farhand.errors import ModelFault
from farhand.models.backboard.client import BackboardEvent
from farhand.models.backboard.position import AnswerPlace, echo_of
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
from farhand.models.prompt_encoding import ToolNames


class RoundDecoder:
    """`stop` is set once the round is complete, with an answer or with calls that it waits for."""

    def __init__(self, names: ToolNames, place: AnswerPlace) -> None:
        self._names = names
        self._place = place
        self._text = DeltaText()
        self._thought = DeltaText()
        self._reason: StopReason | None = None
        self._usage = Usage()

    @property
    def stop(self) -> Stop | None:
        return None if self._reason is None else Stop(self._reason, self._usage)

    def decode(self, event: BackboardEvent) -> Iterator[ModelEvent]:
        self._count(event)
        match event.get("type"):
            case "content_streaming":
                yield from _delta(ReasoningDelta, self._thought.rest())
                yield from _delta(TextDelta, self._text.feed(str(event.get("content") or "")))
            case "reasoning_streaming":
                yield from _delta(TextDelta, self._text.rest())
                yield from _delta(ReasoningDelta, self._thought.feed(str(event.get("content") or "")))
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

    def _ask(self, event: BackboardEvent) -> Iterator[ModelEvent]:
        calls = event.get("tool_calls") or []
        if not calls:
            # the run waits for outputs, and nobody could ever submit one
            raise ModelFault(
                "Backboard requested results of tools but named no call.", hint="Send the message again."
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
        yield from _delta(ReasoningDelta, self._thought.rest())
        yield from _delta(TextDelta, self._text.rest())

    def _count(self, event: BackboardEvent) -> None:
        read, written = event.get("input_tokens"), event.get("output_tokens")
        if isinstance(read, int) and isinstance(written, int):
            self._usage = Usage(read, written)


def _delta(kind: type[TextDelta | ReasoningDelta], text: str) -> Iterator[ModelEvent]:
    if text:
        yield kind(text)


class DeltaText:
    """The new part of each piece of a text, whether pieces are deltas or the whole text so far.

    A piece that begins with all of the previous text could be either, so it is held back until the next piece
    decides: in a stream of whole texts that one begins with it, in a stream of deltas it does not.
    """

    def __init__(self) -> None:
        self._text = ""
        self._held: str | None = None
        self._whole: bool | None = None

    def feed(self, piece: str) -> str:
        """The part of this piece, and of the one held back, that is new."""
        if self._whole is True:
            return self._replace(piece)
        if self._whole is False or not self._text:
            return self._add(piece)
        if self._held is None:
            if _continues(piece, self._text):
                self._held = piece
                return ""
            self._whole = False
            return self._add(piece)
        held, self._held = self._held, None
        self._whole = _continues(piece, held)
        return self._replace(piece) if self._whole else self._add(held + piece)

    def rest(self) -> str:
        """At the end, the piece held back: if it begins with the one before, both are whole texts."""
        held, self._held = self._held, None
        return "" if held is None else self._replace(held)

    def _add(self, piece: str) -> str:
        self._text += piece
        return piece

    def _replace(self, text: str) -> str:
        new = text[len(self._text) :] if text.startswith(self._text) else ""
        self._text = text if new else self._text
        return new


def _continues(piece: str, text: str) -> bool:
    return len(piece) > len(text) and piece.startswith(text)
