"""Anthropic's stream of one answer as model events. Knows the stream's shapes, and no connection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from farhand.core.run import Usage
from farhand.models.anthropic.blocks import Block, Calling, Foreign, Thought, Words, echoed
from farhand.models.base import ModelEvent, Stop, StopReason
from farhand.models.calling import Names

if TYPE_CHECKING:
    from anthropic.types import MessageDeltaUsage, RawContentBlockStartEvent, RawMessageStreamEvent
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
        self._calls = 0
        self._block: Block | None = None
        """The one that is open, or that was the last."""

    def hear(self, event: RawMessageStreamEvent) -> Iterator[ModelEvent]:
        match event.type:
            case "message_start":
                self._count(event.message.usage)
            case "content_block_start":
                yield from self._begin(event)
            case "content_block_delta" if self._block is not None:
                yield from self._block.hear(event.delta)
            case "content_block_stop" if self._block is not None:
                yield from self._block.end()
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
        last = self._block
        self._block = self._read(event)
        # two texts in a row are two blocks, and go back as two
        if isinstance(last, Words) and isinstance(self._block, Words) and last.plain is not None:
            yield echoed(last.plain)
        yield from self._block.begin()

    def _read(self, event: RawContentBlockStartEvent) -> Block:
        block = event.content_block
        if block.type == "text":
            return Words(block)
        if block.type == "thinking":
            return Thought(block)
        if block.type == "tool_use":
            self._calls += 1
            return Calling(block, self._calls - 1, self._names.name(block.name))
        return Foreign(block.to_dict(mode="json"))
