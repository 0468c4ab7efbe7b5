"""Anthropic's stream of one answer as model events. Knows the stream's shapes, and no connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from farhand.core.run import Usage
from farhand.models.anthropic.request import PROVIDER
from farhand.models.base import (
    CallDone,
    CallStart,
    InputDelta,
    ModelEvent,
    ReasoningDelta,
    ReasoningDone,
    Stop,
    StopReason,
    TextDelta,
)
from farhand.models.calling import Names
from farhand.models.telling import echo_by

if TYPE_CHECKING:
    from anthropic.types import (
        MessageDeltaUsage,
        RawContentBlockDelta,
        RawContentBlockDeltaEvent,
        RawContentBlockStartEvent,
        RawMessageStreamEvent,
    )
    from anthropic.types import Usage as MessageUsage

_REASONS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "refusal": "refusal",
}
# what is written to the cache or read from it is told apart, and not counted in the first
_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_OUTPUT = "output_tokens"


class Answer:
    """`stop` is there once the answer is complete."""

    def __init__(self, names: Names) -> None:
        self.stop: Stop | None = None
        self._names = names
        self._reason: StopReason | None = None
        self._counts: dict[str, int] = {}
        self._calls: dict[int, int] = {}
        self._block: dict[str, object] = {}
        self._pieces: list[str] = []
        self._has_words = False
        self._last_text: dict[str, object] | None = None

    def hear(self, event: RawMessageStreamEvent) -> Iterator[ModelEvent]:
        match event.type:
            case "message_start":
                self._count(event.message.usage)
            case "content_block_start":
                yield from self._begin(event)
            case "content_block_delta":
                yield from self._go_on(event)
            case "content_block_stop":
                yield from self._end(event.index)
            case "message_delta":
                self._reason = _REASONS.get(event.delta.stop_reason or "", "other")
                self._count(event.usage)
            case "message_stop" if self._reason is not None:
                read = sum(self._counts.get(name, 0) for name in _INPUTS)
                self.stop = Stop(self._reason, Usage(read, self._counts.get(_OUTPUT, 0)))
            case _:
                pass

    def _count(self, usage: MessageUsage | MessageDeltaUsage) -> None:
        # each count is of all so far; compatible servers leave some out
        told = {name: getattr(usage, name, None) for name in (*_INPUTS, _OUTPUT)}
        self._counts |= {name: count for name, count in told.items() if isinstance(count, int) and count}

    def _begin(self, event: RawContentBlockStartEvent) -> Iterator[ModelEvent]:
        block = event.content_block
        self._block = block.to_dict(mode="json")
        self._pieces = []
        self._has_words = False
        # two texts in a row are two blocks, and go back as two
        if block.type == "text" and self._last_text is not None:
            yield ReasoningDone(echo_by(PROVIDER, self._last_text))
        self._last_text = None
        if block.type == "tool_use":
            index = self._calls[event.index] = len(self._calls)
            yield CallStart(index, self._names.name(block.name), block.id or None)
        elif block.type == "text":
            self._block["text"] = ""
            yield from self._say(block.text)

    def _go_on(self, event: RawContentBlockDeltaEvent) -> Iterator[ModelEvent]:
        match event.delta.type:
            case "text_delta":
                yield from self._say(event.delta.text)
            case "thinking_delta":
                self._pieces.append(event.delta.thinking)
                yield ReasoningDelta(event.delta.thinking)
            case "input_json_delta":
                self._pieces.append(event.delta.partial_json)
                if event.index in self._calls:
                    yield InputDelta(self._calls[event.index], event.delta.partial_json)
            case "signature_delta" | "citations_delta":
                self._complete(event.delta)

    def _say(self, text: str) -> Iterator[ModelEvent]:
        """Blanks wait for the first word: without one, it is as if the block had never been."""
        self._pieces.append(text)
        if self._has_words:
            yield TextDelta(text)
        elif text.strip():
            self._has_words = True
            yield TextDelta("".join(self._pieces))

    def _complete(self, delta: RawContentBlockDelta) -> None:
        if delta.type == "signature_delta":
            self._block["signature"] = delta.signature
        elif delta.type == "citations_delta":
            known = self._block.get("citations")
            self._block["citations"] = [
                *(known if isinstance(known, list) else ()),
                delta.citation.to_dict(mode="json"),
            ]

    def _end(self, index: int) -> Iterator[ModelEvent]:
        said = "".join(self._pieces)
        match self._block.get("type"):
            case "tool_use":
                yield CallDone(self._calls[index], said)
            case "text" if not self._has_words:
                pass
            case "text":
                self._block["text"] = said
                if self._block.get("citations"):
                    yield ReasoningDone(echo_by(PROVIDER, self._block))
                else:
                    self._last_text = self._block
            case "thinking":
                self._block["thinking"] = f"{self._block.get('thinking', '')}{said}"
                # without its signature it was cut off, and would be refused
                if self._block.get("signature"):
                    yield ReasoningDone(echo_by(PROVIDER, self._block))
            case _:
                yield ReasoningDone(echo_by(PROVIDER, self._with_input(said)))

    def _with_input(self, said: str) -> dict[str, object]:
        """A block of the provider's own tools; the input of one comes in pieces, like a call's."""
        if not said:
            return self._block
        try:
            return {**self._block, "input": json.loads(said)}
        except ValueError:
            return self._block
