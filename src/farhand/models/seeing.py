"""Images that a provider would not take: the request is sent again without them, and so is every later one.

Some models have no eyes, and some images have faults that only the provider sees. Neither may spoil a thread,
whose history has them for ever. It must not know how any provider spells a request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing

from msgspec.structs import replace

from farhand.models.base import ModelEvent, Prompt
from farhand.models.faults import RequestRefused

_MARKS = ("image", "multimodal", "multi-modal", "vision")
_REMEMBERED = 10_000


class Seeing:
    """One for a model, for as long as it lives."""

    def __init__(self) -> None:
        self._refused: dict[str, None] = {}

    async def stream(
        self, prompt: Prompt, ask: Callable[[Prompt], AsyncGenerator[ModelEvent, None]]
    ) -> AsyncGenerator[ModelEvent, None]:
        """What is asked for with the images; if they are refused, without them."""
        shown = self._shown(prompt)
        begun = False
        try:
            async with aclosing(ask(shown)) as events:
                async for event in events:
                    begun = True
                    yield event
                return
        except RequestRefused as refused:
            if begun or not shown.images or not _is_about_images(refused):
                raise
        async with aclosing(ask(replace(prompt, images={}))) as events:
            async for event in events:
                if not begun:
                    # it was the images: without them it goes
                    self._remember(shown.images)
                begun = True
                yield event

    def _shown(self, prompt: Prompt) -> Prompt:
        if self._refused.keys().isdisjoint(prompt.images):
            return prompt
        taken = {ref: image for ref, image in prompt.images.items() if ref not in self._refused}
        return replace(prompt, images=taken)

    def _remember(self, refs: Iterable[str]) -> None:
        self._refused.update(dict.fromkeys(refs))
        while len(self._refused) > _REMEMBERED:
            del self._refused[next(iter(self._refused))]


def _is_about_images(refused: RequestRefused) -> bool:
    words = refused.words.lower()
    # a request that is too large is mostly images
    return refused.status == 413 or any(mark in words for mark in _MARKS)
