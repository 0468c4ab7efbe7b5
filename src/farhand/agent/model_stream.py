"""Reads one step from the model, passes it to the writer as it arrives, and collects it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from farhand.clock import Clock
from farhand.core.event import CallBegun, Echo, InputAdded, ModelDelayed, ReasoningAdded, TextAdded
from farhand.errors import ModelFault
from farhand.eventlog.writer import RunWriter
from farhand.models.base import (
    CallDone,
    CallStart,
    InputDelta,
    Model,
    ModelEvent,
    Prompt,
    ReasoningDelta,
    ReasoningDone,
    Stop,
    TextDelta,
)
from farhand.models.retry_after import DelayListener


class RequestedCall:
    """A call as the model writes it. `input` is None until it is complete."""

    def __init__(self, call_id: str, start: CallStart) -> None:
        self.call_id = call_id
        self.tool = whole(start.tool)
        self.model_call_id = (
            start.model_call_id if start.model_call_id is None else whole(start.model_call_id)
        )
        self.input: str | None = None


class _Block:
    """Consecutive text or reasoning."""

    def __init__(self, number: int, kind: type[TextAdded | ReasoningAdded]) -> None:
        self.number = number
        self.kind = kind
        self.echo: object = None


class StepCollector:
    def __init__(self, writer: RunWriter, clock: Clock) -> None:
        self.requested_calls: dict[int, RequestedCall] = {}
        self._writer = writer
        self._clock = clock
        self._blocks: list[_Block | RequestedCall] = []
        self._speaking: _Block | None = None
        """The block that the next delta belongs to, if it is of the same kind."""
        self._stop: Stop | None = None

    async def listen(self, model: Model, prompt: Prompt) -> Stop:
        with DelayListener(self._on_delay):
            stream = model.stream(prompt)
            try:
                async for event in stream:
                    self._HANDLERS[type(event)](self, event)
            except BaseException:
                # a stream that came to its end has nothing left to close
                await stream.aclose()
                raise
        if self._stop is None:
            raise ModelFault(
                "The model's answer was cut off.",
                hint="Send the message again.",
                public="The model's answer was cut off. Send the message again.",
            )
        return self._stop

    def echoes(self) -> tuple[Echo, ...]:
        """The provider's own reasoning items, each with the index of its block."""
        blocks = [block for block in self._blocks if isinstance(block, _Block)]
        return tuple([Echo(block.number, block.echo) for block in blocks if block.echo is not None])

    def _on_delay(self, sentence: str) -> None:
        self._writer.add(ModelDelayed(sentence))

    def _on_text(self, event: TextDelta) -> None:
        self._add_words(TextAdded, event.text)

    def _on_reasoning(self, event: ReasoningDelta) -> None:
        self._add_words(ReasoningAdded, event.text)

    def _add_words(self, kind: type[TextAdded | ReasoningAdded], text: str) -> None:
        if not text:
            return
        block = self._speaking
        if block is None or block.kind is not kind:
            block = self._block(kind)
        self._writer.add_words(kind, block.number, text if text.isascii() else whole(text))

    def _on_reasoning_done(self, event: ReasoningDone) -> None:
        self._block(ReasoningAdded).echo = event.echo
        # a finished reasoning item is closed: what follows is another one
        self._speaking = None

    def _on_call_start(self, event: CallStart) -> None:
        requested = RequestedCall(self._clock.fresh("call"), event)
        self.requested_calls[event.index] = requested
        self._blocks.append(requested)
        self._speaking = None
        self._writer.add(CallBegun(requested.call_id, requested.tool))

    def _on_input(self, event: InputDelta) -> None:
        requested = self.requested_calls[event.index]
        if event.text:
            text = event.text if event.text.isascii() else whole(event.text)
            self._writer.add_words(InputAdded, requested.call_id, text)

    def _on_call_done(self, event: CallDone) -> None:
        self.requested_calls[event.index].input = event.input

    def _on_stop(self, event: Stop) -> None:
        self._stop = event

    def _block(self, kind: type[TextAdded | ReasoningAdded]) -> _Block:
        if self._speaking is not None and self._speaking.kind is kind:
            return self._speaking
        block = self._speaking = _Block(len(self._blocks), kind)
        self._blocks.append(block)
        return block

    # Any: each method takes its own kind of event, and the key says which
    _HANDLERS: ClassVar[dict[type[ModelEvent], Callable[[StepCollector, Any], None]]] = {
        TextDelta: _on_text,
        ReasoningDelta: _on_reasoning,
        ReasoningDone: _on_reasoning_done,
        CallStart: _on_call_start,
        InputDelta: _on_input,
        CallDone: _on_call_done,
        Stop: _on_stop,
    }
    """The method for each event of a model."""


def whole(text: str) -> str:
    """The text without lone surrogates: some models send them, and no store or wire can hold them."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
