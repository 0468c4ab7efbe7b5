"""Listens to one step of the model, tells readers as it goes, and collects what was said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from farhand.agent.journal import RunLog
from farhand.clock import Clock
from farhand.core.event import CallBegun, InputAdded, ModelDelayed, ReasoningAdded, TextAdded
from farhand.core.thread import Asked, Part, Reasoning, Text
from farhand.errors import ModelFault
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
from farhand.models.delays import Hearing


class Wish:
    """A call as the model writes it. `input` is None until the model has written all of it; `understood` is
    what was made of it then, as far as possible."""

    def __init__(self, call_id: str, start: CallStart) -> None:
        self.call_id = call_id
        self.tool = whole(start.tool)
        self.model_call_id = (
            start.model_call_id if start.model_call_id is None else whole(start.model_call_id)
        )
        self.input: str | None = None
        self.understood: object = None


class _Block:
    """Consecutive text or reasoning."""

    def __init__(self, number: int, *, reasoning: bool) -> None:
        self.number = number
        self.reasoning = reasoning
        self.pieces: list[str] = []
        self.echo: object = None


class Listener:
    def __init__(self, log: RunLog, clock: Clock) -> None:
        self.wishes: dict[int, Wish] = {}
        self._log = log
        self._clock = clock
        self._blocks: list[_Block | Wish] = []
        self._speaking: _Block | None = None
        """What the next word belongs to, if it is of the same kind."""
        self._stop: Stop | None = None

    async def listen(self, model: Model, prompt: Prompt) -> Stop:
        with Hearing(self._hear_delay):
            stream = model.stream(prompt)
            try:
                async for event in stream:
                    self._HEARING[type(event)](self, event)
            except BaseException:
                # one that came to its end has nothing left to close
                await stream.aclose()
                raise
        if self._stop is None:
            raise ModelFault(
                "The model's answer broke off.",
                hint="Send the message again.",
                public="The model's answer broke off. Send the message again.",
            )
        return self._stop

    def parts(self) -> tuple[Part, ...]:
        """What was said, in its order."""
        return tuple(map(_part, self._blocks))

    def _hear_delay(self, sentence: str) -> None:
        self._log.say(ModelDelayed(sentence))

    def _hear_words(self, event: TextDelta | ReasoningDelta) -> None:
        if not event.text:
            return
        text = event.text if event.text.isascii() else whole(event.text)
        reasoning = type(event) is ReasoningDelta
        block = self._speaking
        if block is None or block.reasoning is not reasoning:
            block = self._block(reasoning=reasoning)
        block.pieces.append(text)
        self._log.say_word(ReasoningAdded if reasoning else TextAdded, block.number, text)

    def _hear_echo(self, event: ReasoningDone) -> None:
        self._block(reasoning=True).echo = event.echo
        # a finished reasoning item is closed: what follows it is another one
        self._speaking = None

    def _hear_wish(self, event: CallStart) -> None:
        wish = Wish(self._clock.fresh("call"), event)
        self.wishes[event.index] = wish
        self._blocks.append(wish)
        self._speaking = None
        self._log.say(CallBegun(wish.call_id, wish.tool))

    def _hear_input(self, event: InputDelta) -> None:
        wish = self.wishes[event.index]
        if event.text:
            text = event.text if event.text.isascii() else whole(event.text)
            self._log.say(InputAdded(wish.call_id, text))

    def _hear_whole_input(self, event: CallDone) -> None:
        self.wishes[event.index].input = event.input

    def _hear_stop(self, event: Stop) -> None:
        self._stop = event

    def _block(self, *, reasoning: bool) -> _Block:
        if self._speaking is not None and self._speaking.reasoning is reasoning:
            return self._speaking
        block = self._speaking = _Block(len(self._blocks), reasoning=reasoning)
        self._blocks.append(block)
        return block

    # Any: each of them takes its own kind of event, and the key says which
    _HEARING: ClassVar[dict[type[ModelEvent], Callable[[Listener, Any], None]]] = {
        TextDelta: _hear_words,
        ReasoningDelta: _hear_words,
        ReasoningDone: _hear_echo,
        CallStart: _hear_wish,
        InputDelta: _hear_input,
        CallDone: _hear_whole_input,
        Stop: _hear_stop,
    }
    """What is made of each event of a model."""


def whole(text: str) -> str:
    """The text without halves of characters: some models send them; no store and no wire can hold them."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _part(block: _Block | Wish) -> Part:
    if isinstance(block, Wish):
        return Asked(block.call_id, block.tool, block.understood, block.model_call_id)
    text = "".join(block.pieces)
    return Reasoning(text, block.echo) if block.reasoning else Text(text)
