"""The one small streaming interface every provider is turned into.

A model says deltas, then `CallDone` for each call whose input is complete, then exactly one `Stop`.
A provider that fails raises `ModelFault`. `index` tells the calls of one step apart: ids of providers
repeat or are missing, so they are only carried along to be echoed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from farhand.core.run import Usage
from farhand.core.thread import File, Message
from farhand.core.tool import Tool


class TextDelta(Struct, frozen=True):
    text: str


class ReasoningDelta(Struct, frozen=True):
    text: str


class ReasoningDone(Struct, frozen=True):
    """The provider's own item, reasoning or other, to be handed back unchanged."""

    echo: object


class CallStart(Struct, frozen=True):
    index: int
    tool: str
    model_call_id: str | None = None


class InputDelta(Struct, frozen=True):
    index: int
    text: str


class CallDone(Struct, frozen=True):
    """`input` is the JSON text as the model wrote it: it may be anything."""

    index: int
    input: str


StopReason: TypeAlias = Literal["end", "calls", "length", "refusal", "pause", "other"]


class Stop(Struct, frozen=True):
    """Only after `calls` are the calls of the step executed."""

    reason: StopReason
    usage: Usage = Usage()


ModelEvent: TypeAlias = TextDelta | ReasoningDelta | ReasoningDone | CallStart | InputDelta | CallDone | Stop


class Image(Struct, frozen=True):
    media_type: str
    data: bytes
    name: str = ""


class Prompt(Struct, frozen=True):
    """Everything a model is asked with. Each call in `messages` is followed by its result."""

    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    instructions: str = ""
    thread_id: str = ""
    images: Mapping[str, Image] = {}
    """By their ref: those that the messages refer to, in a file or in a result, and that can be shown."""
    files: Mapping[str, File | None] = {}
    """By their ref: what is known of them; None for a file that is not there, or not this owner's."""


class Model(Protocol):
    name: str

    def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        """Closed when it is left early, so that no connection stays behind."""
        ...


@runtime_checkable
class Connected(Protocol):
    """A model that keeps connections open. After `close` it may be asked again."""

    async def close(self) -> None: ...


@runtime_checkable
class Remembering(Protocol):
    """A model whose provider keeps the conversation, too, and waits there for the results of its calls."""

    async def leave(self, prompt: Prompt) -> None:
        """Told when a run ends though the model waits: it will not be asked with these results."""
        ...
