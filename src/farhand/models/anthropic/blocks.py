"""One block of Anthropic's stream from its first word to its last, as model events.

A text, a thought and a call are each read in their own way; what else there is goes back as it came. Must not
know which blocks came before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from farhand.models.anthropic.request import PROVIDER
from farhand.models.base import (
    CallDone,
    CallStart,
    InputDelta,
    ModelEvent,
    ReasoningDelta,
    ReasoningDone,
    TextDelta,
)
from farhand.models.telling import echo_by

if TYPE_CHECKING:
    from anthropic.types import RawContentBlockDelta, TextBlock, ThinkingBlock, ToolUseBlock


class Block(Protocol):
    def begin(self) -> Iterator[ModelEvent]: ...

    def hear(self, delta: RawContentBlockDelta) -> Iterator[ModelEvent]: ...

    def end(self) -> Iterator[ModelEvent]: ...


def echoed(block: dict[str, object]) -> ReasoningDone:
    """To be sent back to the provider unchanged."""
    return ReasoningDone(echo_by(PROVIDER, block))


class Words:
    """A text. Blanks wait for the first word: without one, it is as if the block had never been."""

    def __init__(self, block: TextBlock) -> None:
        self._block = block
        self._said: list[str] = []
        self._citations: list[object] = [each.to_dict(mode="json") for each in block.citations or ()]
        self._has_words = False

    @property
    def plain(self) -> dict[str, object] | None:
        """As the provider has it; None without words, and with sources, which are kept anyway."""
        return self._whole() if self._has_words and not self._citations else None

    def begin(self) -> Iterator[ModelEvent]:
        # compatible servers leave out what is empty
        return self._say(self._block.text or "")

    def hear(self, delta: RawContentBlockDelta) -> Iterator[ModelEvent]:
        if delta.type == "text_delta":
            yield from self._say(delta.text)
        elif delta.type == "citations_delta":
            self._citations.append(delta.citation.to_dict(mode="json"))

    def end(self) -> Iterator[ModelEvent]:
        if self._has_words and self._citations:
            yield echoed(self._whole())

    def _say(self, text: str) -> Iterator[ModelEvent]:
        self._said.append(text)
        if self._has_words:
            yield TextDelta(text)
        elif text.strip():
            self._has_words = True
            yield TextDelta("".join(self._said))

    def _whole(self) -> dict[str, object]:
        whole = self._block.to_dict(mode="json") | {"text": "".join(self._said)}
        return {**whole, "citations": self._citations} if self._citations else whole


class Thought:
    """Without its signature it was cut off, and would be refused: then it is not kept."""

    def __init__(self, block: ThinkingBlock) -> None:
        self._block = block
        # compatible servers leave out what is empty
        self._said = [block.thinking or ""]
        self._signature = block.signature

    def begin(self) -> Iterator[ModelEvent]:
        return iter(())

    def hear(self, delta: RawContentBlockDelta) -> Iterator[ModelEvent]:
        if delta.type == "thinking_delta":
            self._said.append(delta.thinking)
            yield ReasoningDelta(delta.thinking)
        elif delta.type == "signature_delta":
            self._signature = delta.signature

    def end(self) -> Iterator[ModelEvent]:
        if self._signature:
            whole = {"thinking": "".join(self._said), "signature": self._signature}
            yield echoed(self._block.to_dict(mode="json") | whole)


class Calling:
    """A call of one of our tools, the `index`th of this answer."""

    def __init__(self, block: ToolUseBlock, index: int, name: str) -> None:
        self._block = block
        self._index = index
        self._name = name
        self._input: list[str] = []

    def begin(self) -> Iterator[ModelEvent]:
        yield CallStart(self._index, self._name, self._block.id or None)

    def hear(self, delta: RawContentBlockDelta) -> Iterator[ModelEvent]:
        if delta.type == "input_json_delta":
            self._input.append(delta.partial_json)
            yield InputDelta(self._index, delta.partial_json)

    def end(self) -> Iterator[ModelEvent]:
        yield CallDone(self._index, "".join(self._input))


class Foreign:
    """What is not ours, such as a call of the provider's own tools; an input comes in pieces here too."""

    def __init__(self, block: dict[str, object]) -> None:
        self._block = block
        self._input: list[str] = []

    def begin(self) -> Iterator[ModelEvent]:
        return iter(())

    def hear(self, delta: RawContentBlockDelta) -> Iterator[ModelEvent]:
        if delta.type == "input_json_delta":
            self._input.append(delta.partial_json)
        return iter(())

    def end(self) -> Iterator[ModelEvent]:
        try:
            yield echoed({**self._block, "input": json.loads("".join(self._input))})
        except ValueError:
            # there was none, or it was cut
            yield echoed(self._block)
