"""The one small streaming interface that every provider is adapted to.

A model yields deltas, then `CallDone` for each call whose input is complete, then exactly one `Stop`. A
provider that fails raises `ModelFault`. `index` distinguishes the calls of one step: ids of providers may
repeat or be missing, so they are only carried along to be sent back.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from farhand.core.run import Usage
from farhand.core.thread import File, Message
from farhand.core.tool import Tool
from farhand.errors import Misuse


class TextDelta(Struct, frozen=True):
    """A piece of the answer: `TextDelta("Hello ")`, then `TextDelta("world.")`."""

    text: str


class ReasoningDelta(Struct, frozen=True):
    """A piece of the model's reasoning: `ReasoningDelta("The user wants the weather.")`."""

    text: str


class ReasoningDone(Struct, frozen=True):
    """An item of the provider, reasoning or other, to be sent back to it unchanged.

    Tag it with the provider, so that no other one gets it: `ReasoningDone({"acme": {"signature": "…"}})`.
    """

    echo: object


class CallStart(Struct, frozen=True):
    """The model begins to call a tool: `CallStart(0, "get_weather", "call_abc")`."""

    index: int
    tool: str
    model_call_id: str | None = None


class InputDelta(Struct, frozen=True):
    """A piece of a call's input as JSON text: `InputDelta(0, '{"location": ')`."""

    index: int
    text: str


class CallDone(Struct, frozen=True):
    """The input of a call is complete: `CallDone(0, '{"location": "Oslo"}')`.

    `input` is the JSON text as the model wrote it, which may be invalid.
    """

    index: int
    input: str


StopReason: TypeAlias = Literal["end", "calls", "length", "refusal", "pause", "other"]
"""Why an answer ended."""


class Stop(Struct, frozen=True):
    """The end of an answer: `Stop("end", Usage(input_tokens=20, output_tokens=5))`.

    The calls of the step are executed only after `Stop("calls")`.
    """

    reason: StopReason
    usage: Usage = Usage()


ModelEvent: TypeAlias = TextDelta | ReasoningDelta | ReasoningDone | CallStart | InputDelta | CallDone | Stop
"""What a model yields."""


class Image(Struct, frozen=True):
    """An image of a prompt: `Image("image/png", data, "chart.png")`."""

    media_type: str
    data: bytes
    name: str = ""


class Prompt(Struct, frozen=True):
    """What a model is asked with. Each call in `messages` is followed by its result.

    ```python
    from farhand.messages import Text, UserMessage
    from farhand.models import Prompt

    prompt = Prompt((UserMessage("m1", (Text("Hello"),)),), instructions="Be brief.")
    ```
    """

    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    instructions: str = ""
    thread_id: str = ""
    images: Mapping[str, Image] = {}
    """By ref: the images that messages refer to, in a file or in a result, and that can be shown."""
    files: Mapping[str, File | None] = {}
    """By ref: what is known of the files; None for one that does not exist or belongs to another owner."""


class Model(Protocol):
    """What an agent needs of a model; write a class like this one to add your own.

    ```python
    from collections.abc import AsyncGenerator

    from farhand import Agent
    from farhand.models import ModelEvent, Prompt, Stop, TextDelta


    class Echo:
        name = "echo"

        async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
            yield TextDelta(f"You sent {len(prompt.messages)} messages.")
            yield Stop("end")


    agent = Agent(Echo())
    ```
    """

    name: str

    def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        """Yields one answer. It is closed if reading ends early, so that no connection stays open."""
        ...


class NoModel:
    """The model of an app that was created from a toolbox: it is never asked."""

    name = "none"

    def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        raise Misuse("This app has no model.")


@runtime_checkable
class ClosableModel(Protocol):
    """A model that keeps connections open: `await model.close()`. It may be used again after that."""

    async def close(self) -> None: ...


@runtime_checkable
class StatefulModel(Protocol):
    """A model whose provider stores the conversation as well, and waits there for the results of its calls.

    When a run ends while the provider waits, the agent calls `await model.leave(prompt)`.
    """

    async def leave(self, prompt: Prompt) -> None:
        """Called if the results that the provider waits for will never be sent."""
        ...
