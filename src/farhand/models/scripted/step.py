"""The words of one scripted step, and the model events they become. Knows no history and no time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, assert_never

from msgspec import Struct

from farhand.errors import BadSetting, ModelFault
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


class Say(Struct, frozen=True):
    """Text. A sequence of strings is said in exactly these deltas; `delay` is in seconds before each."""

    text: str | Sequence[str]
    delay: float | None = None


class Think(Struct, frozen=True):
    """Reasoning. `echo` stands for the provider's own item, which it wants back unchanged."""

    text: str | Sequence[str]
    delay: float | None = None
    echo: object = None


class Ask(Struct, frozen=True):
    """A call. An `input` that is a `str` is sent as it stands: JSON text, good or bad."""

    tool: str
    # the struct makes a fresh one for each Ask
    input: object = {}
    id: str | None = None
    delay: float | None = None


class Begin(Struct, frozen=True):
    """A call that is begun and never completed, as when the model runs out of tokens."""

    tool: str
    input: str = ""
    id: str | None = None
    delay: float | None = None


class Fail(Struct, frozen=True):
    """The provider breaks here."""

    message: str
    hint: str = ""


Item: TypeAlias = str | Say | Think | Ask | Begin | Fail | Stop
Step: TypeAlias = Item | Sequence[Item]
Cut: TypeAlias = Callable[[str], Iterable[str]]

_ITEMS = (str, Say, Think, Ask, Begin, Fail, Stop)
_WORD = re.compile(r"\S+\s*|\s+")


def by_words(text: str) -> list[str]:
    """The deltas of a text unless told otherwise: a word each, with the blanks after it."""
    return _WORD.findall(text)


def items_of(step: object) -> tuple[Item, ...]:
    """The step's items in order; anything that is not a step is a `BadSetting`."""
    if isinstance(step, _ITEMS):
        return (step,)
    if not isinstance(step, list | tuple):
        raise BadSetting(
            f"A step of a scripted model cannot be {_named(step)}.",
            hint="Use a str, Say, Think, Ask, Begin, Fail or Stop, or a list of them.",
        )
    for item in step:
        if not isinstance(item, _ITEMS):
            raise BadSetting(f"A step of a scripted model cannot hold {_named(item)}.")
    if any(isinstance(item, Stop) for item in step[:-1]):
        raise BadSetting("A Stop ends a step of a scripted model, so it comes last.")
    return tuple(step)


class Speech:
    """One step while it is spoken: numbers its calls and knows how it has to end."""

    def __init__(self, cut: Cut) -> None:
        self._cut = cut
        self._calls = 0
        self._reason: StopReason = "end"
        self._stop: Stop | None = None

    def events(self, item: Item) -> Iterator[ModelEvent]:
        """What the item becomes, in order. A `Stop` becomes nothing yet: it is told last."""
        match item:
            case str() | Say():
                yield from map(TextDelta, self._pieces(item if isinstance(item, str) else item.text))
            case Think():
                yield from map(ReasoningDelta, self._pieces(item.text))
                if item.echo is not None:
                    yield ReasoningDone(item.echo)
            case Ask() | Begin():
                yield from self._call(item)
            case Fail():
                raise ModelFault(item.message, hint=item.hint)
            case Stop():
                self._stop = item
            case _:
                assert_never(item)

    @property
    def stop(self) -> Stop:
        return self._stop or Stop(self._reason)

    def _call(self, item: Ask | Begin) -> Iterator[ModelEvent]:
        index, self._calls = self._calls, self._calls + 1
        yield CallStart(index, item.tool, item.id)
        text = item.input if isinstance(item.input, str) else _json(item)
        for piece in self._pieces(text):
            yield InputDelta(index, piece)
        if isinstance(item, Begin):
            self._reason = "length"
            return
        yield CallDone(index, text)
        if self._reason == "end":
            self._reason = "calls"

    def _pieces(self, text: str | Sequence[str]) -> Iterable[str]:
        return self._cut(text) if isinstance(text, str) else text


def _json(item: Ask | Begin) -> str:
    # with blanks between, so that an input is cut into deltas at its words, too
    try:
        return json.dumps(item.input, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ModelFault(
            f"The script asks for {item.tool} with an input JSON cannot hold: {error}."
        ) from error


def _named(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
