"""`ScriptedModel`: plays a script through the interface of every model.

It records what it was asked, refuses a history that a provider would refuse, and gives way to the loop
before every event, as a model on a wire does. What a script means is the business of its neighbours.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TypeAlias

import msgspec

from farhand.errors import BadSetting, FarhandError, ModelFault
from farhand.models.base import ModelEvent, Prompt, Stop
from farhand.models.scripted.moment import Moment, check_history, moment_of
from farhand.models.scripted.step import Cut, Fail, Item, Speech, Step, by_words, items_of

Answer: TypeAlias = Step | Awaitable[Step] | AsyncGenerator[Step, None]
Script: TypeAlias = Callable[[Moment], Answer]


class ScriptedModel:
    """A model whose every step is written down beforehand.

    Args:
        script: A function from a `Moment` to the next step (it may be async, or an async generator of
            items), or a list of steps and functions, played one per request.
        delay: Seconds before each delta of an item that names none.
        cut: How a text becomes deltas; `list` gives single characters.
        keep_prompts: How many of the newest requests `prompts` remembers.
    """

    def __init__(
        self,
        script: Script | Sequence[Step | Script],
        *,
        delay: float = 0.0,
        cut: Cut = by_words,
        keep_prompts: int = 100,
    ) -> None:
        self.name = "scripted"
        self._script = script if callable(script) else _InOrder(script)
        self._delay = delay
        self._cut = cut
        self._prompts: deque[Prompt] = deque(maxlen=keep_prompts)

    @classmethod
    def from_yaml(
        cls, source: str | Path, *, delay: float = 0.0, cut: Cut = by_words, keep_prompts: int = 100
    ) -> ScriptedModel:
        """From a file (a `Path`, or a `str` of one line) or from the YAML text itself."""
        # a script in Python needs no YAML reader, and loading one is most of what this package costs
        from farhand.models.scripted.reader import read_script  # noqa: PLC0415

        return cls(read_script(source), delay=delay, cut=cut, keep_prompts=keep_prompts)

    @property
    def prompts(self) -> list[Prompt]:
        """What the model was asked with, oldest first."""
        return list(self._prompts)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        self._prompts.append(_kept(prompt))
        check_history(prompt.messages)
        speech = Speech(self._cut)
        async with aclosing(self._items(prompt)) as items:
            async for item in items:
                delay = self._delay_of(item)
                for event in speech.events(item):
                    await asyncio.sleep(delay)
                    yield event
        yield speech.stop

    async def _items(self, prompt: Prompt) -> AsyncGenerator[Item, None]:
        async with aclosing(_steps(self._script, moment_of(prompt))) as steps:
            async for step in steps:
                for item in _checked(step):
                    yield item

    def _delay_of(self, item: Item) -> float:
        if isinstance(item, str | Fail | Stop) or item.delay is None:
            return self._delay
        return item.delay


class _InOrder:
    """A list of steps as a script: one per request, then a fault."""

    def __init__(self, steps: Sequence[Step | Script]) -> None:
        if not isinstance(steps, list | tuple):
            raise BadSetting(
                f"A scripted model cannot be made from a value of type {type(steps).__name__}.",
                hint="Give it a function or a list of steps.",
            )
        self._steps = tuple(step if callable(step) else items_of(step) for step in steps)
        self._played = 0

    def __call__(self, moment: Moment) -> Answer:
        if self._played == len(self._steps):
            raise ModelFault(
                f"The script is used up: it has {len(self._steps)} steps and the model was asked once more.",
                hint="Write down one step for each request, the answer after the last result included.",
            )
        step = self._steps[self._played]
        self._played += 1
        return step(moment) if callable(step) else step


async def _steps(script: Script, moment: Moment) -> AsyncGenerator[Step, None]:
    """What the script answers. A mistake in it is the model's fault, told in words its author can use."""
    async with aclosing(_played(script, moment)) as steps:
        while (step := await _next(steps)) is not _END:
            yield step


async def _played(script: Script, moment: Moment) -> AsyncGenerator[Step, None]:
    answer = script(moment)
    if not isinstance(answer, AsyncGenerator):
        yield await answer if isinstance(answer, Awaitable) else answer
        return
    async with aclosing(answer):
        async for step in answer:
            yield step


_END = Stop("end")
"""After the last step; told by its identity."""


async def _next(steps: AsyncGenerator[Step, None]) -> Step:
    try:
        return await anext(steps, _END)
    except FarhandError:
        raise
    # somebody else's function: it may raise anything
    except Exception as error:
        raise _broken_script(error) from error


def _broken_script(error: Exception) -> ModelFault:
    return ModelFault(
        f"The script raised {type(error).__name__}: {error}.", hint="Mend it, then say it again."
    )


def _checked(step: object) -> tuple[Item, ...]:
    try:
        return items_of(step)
    except BadSetting as error:
        # in the middle of a run it is the model that is broken, and the run has to end as with any other
        raise ModelFault(error.message, hint=error.hint) from error


def _kept(prompt: Prompt) -> Prompt:
    # whoever asked may go on writing to its list of messages
    return msgspec.structs.replace(prompt, messages=tuple(prompt.messages), tools=tuple(prompt.tools))
