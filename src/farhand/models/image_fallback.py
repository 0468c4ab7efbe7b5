"""Sends a request again without images that the provider refused, and every later request as well.

Some models do not accept images, and some images have errors that only the provider detects. Neither may
spoil a thread, whose history keeps them. What was refused is not stored: it depends on the model, and
changing the model needs a restart anyway. It must not know the request format of any provider.
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
from farhand.models.error_messages import RequestRefused

SendPrompt: TypeAlias = Callable[[Prompt], AsyncGenerator[ModelEvent, None]]

_MARKS = ("image", "multimodal", "multi-modal", "vision")
_MAX_REFUSED = 10_000


class ImageFallback:
    """One for each model, for as long as the model exists."""

    def __init__(self) -> None:
        self._refused: dict[str, None] = {}

    async def stream(self, prompt: Prompt, ask: SendPrompt) -> AsyncGenerator[ModelEvent, None]:
        """The answer to the prompt with its images; if refused, without the newest ones, then without any."""
        first, events = await self._begin(prompt, ask)
        async with aclosing(events):
            if first is not None:
                yield first
            async for event in events:
                yield event

    async def _begin(
        self, prompt: Prompt, ask: SendPrompt
    ) -> tuple[ModelEvent | None, AsyncGenerator[ModelEvent, None]]:
        """The answer with its first event: until then, the request can be sent in another form."""
        taken = {ref: image for ref, image in prompt.images.items() if ref not in self._refused}
        temporary = False
        for images in _tries(prompt, taken):
            events = ask(replace(prompt, images=images))
            try:
                first = await anext(events, None)
            except RequestRefused as refused:
                if not images or not _is_about_images(refused):
                    raise
                # a server with an internal error may accept the same image later
                temporary = temporary or _is_temporary(refused)
                continue
            if not temporary:
                # the omitted images, if any, were the reason: without them it works
                self._remember(taken.keys() - images.keys())
            return first, events
        raise AssertionError("without images it works, or the error is not about images")

    def _remember(self, refs: Iterable[str]) -> None:
        self._refused.update(dict.fromkeys(refs))
        while len(self._refused) > _MAX_REFUSED:
            del self._refused[next(iter(self._refused))]


def _tries(prompt: Prompt, taken: Mapping[str, Image]) -> Iterator[Mapping[str, Image]]:
    """One bad image must not remove those that the provider accepted before."""
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
    words = refused.provider_message.lower()
    # a request that is too large consists mostly of images
    return refused.status == 413 or any(mark in words for mark in _MARKS)


def _is_temporary(refused: RequestRefused) -> bool:
    return refused.status is not None and refused.status >= 500
