"""Images that a provider would not take: the request is sent again without them, and so is every later one.

Some models have no eyes, and some images have faults that only the provider sees. Neither may spoil a thread,
whose history has them for ever. What was refused is not stored: it belongs to the model that was asked, and a
restart is how people change to one that sees. It must not know how any provider spells a request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import TypeAlias

from msgspec.structs import replace

from farhand.core.file import refs_in
from farhand.core.outcome import Success
from farhand.core.thread import File, Message, ResultsMessage, UserMessage
from farhand.models.base import Image, ModelEvent, Prompt
from farhand.models.faults import RequestRefused

Ask: TypeAlias = Callable[[Prompt], AsyncGenerator[ModelEvent, None]]

_MARKS = ("image", "multimodal", "multi-modal", "vision")
_REMEMBERED = 10_000


class Seeing:
    """One for a model, for as long as it lives."""

    def __init__(self) -> None:
        self._refused: dict[str, None] = {}

    async def stream(self, prompt: Prompt, ask: Ask) -> AsyncGenerator[ModelEvent, None]:
        """What is asked for with the images; if they are refused, without the newest, then without any."""
        first, events = await self._begin(prompt, ask)
        async with aclosing(events):
            if first is not None:
                yield first
            async for event in events:
                yield event

    async def _begin(
        self, prompt: Prompt, ask: Ask
    ) -> tuple[ModelEvent | None, AsyncGenerator[ModelEvent, None]]:
        """The answer with its first event: up to there it can be asked for in another way."""
        taken = {ref: image for ref, image in prompt.images.items() if ref not in self._refused}
        passing = False
        for shown in _tries(prompt, taken):
            events = ask(replace(prompt, images=shown))
            try:
                first = await anext(events, None)
            except RequestRefused as refused:
                if not shown or not _is_about_images(refused):
                    raise
                # a server that broke may see the same image another time
                passing = passing or _is_passing(refused)
                continue
            if not passing:
                # it was the images that are missing now, if any: without them it goes
                self._remember(taken.keys() - shown.keys())
            return first, events
        raise AssertionError("without any image it goes, or it is no matter of images")

    def _remember(self, refs: Iterable[str]) -> None:
        self._refused.update(dict.fromkeys(refs))
        while len(self._refused) > _REMEMBERED:
            del self._refused[next(iter(self._refused))]


def _tries(prompt: Prompt, taken: Mapping[str, Image]) -> Iterator[Mapping[str, Image]]:
    """One bad image must not cost those that the provider took before it."""
    yield taken
    newest = next((refs for each in reversed(prompt.messages) if (refs := _refs(each) & taken.keys())), set())
    older = {ref: image for ref, image in taken.items() if ref not in newest}
    if newest and older:
        yield older
    yield {}


def _refs(message: Message) -> set[str]:
    match message:
        case UserMessage(parts=parts):
            return {part.ref for part in parts if isinstance(part, File)}
        case ResultsMessage(results=results):
            outputs = (each.outcome.output for each in results if isinstance(each.outcome, Success))
            return {ref for output in outputs for ref in refs_in(output)}
        case _:
            return set()


def _is_about_images(refused: RequestRefused) -> bool:
    words = refused.words.lower()
    # a request that is too large is mostly images
    return refused.status == 413 or any(mark in words for mark in _MARKS)


def _is_passing(refused: RequestRefused) -> bool:
    return refused.status is not None and refused.status >= 500
