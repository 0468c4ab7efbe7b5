from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from farhand.core.thread import File, UserMessage
from farhand.errors import ModelFault
from farhand.models.base import Image, ModelEvent, Prompt, Stop, TextDelta
from farhand.models.error_messages import ProviderError, model_fault
from farhand.models.image_fallback import ImageFallback

OLD, NEW = (f"blob_{digit * 32}" for digit in "12")
PHOTO = Image("image/png", b"png")


class Provider:
    """Refuses images, in its own words, until it is told to see."""

    def __init__(self, status: int, words: str, *, always: bool = False, late: bool = False) -> None:
        self.asked: list[set[str]] = []
        self.fault = model_fault(
            ProviderError(provider="Acme", model="a-1", key_setting="KEY", status=status, words=words)
        )
        self.only: str | None = None
        """The one image that it refuses; without it all."""
        self.always = always
        self.late = late

    async def ask(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        self.asked.append(set(prompt.images))
        if self.late:
            yield TextDelta("I ")
        if self.always or (prompt.images and (self.only is None or self.only in prompt.images)):
            raise self.fault
        yield Stop("end")


async def ask(seeing: ImageFallback, provider: Provider, *refs: str) -> list[ModelEvent]:
    sent = [UserMessage(ref, (File(ref, "a.png", "image/png", 3),)) for ref in refs]
    prompt = Prompt(sent, images=dict.fromkeys(refs, PHOTO))
    return [event async for event in seeing.stream(prompt, provider.ask)]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Image does not match the provided media type"),
        (400, "at most 0 image(s) may be provided"),
        (400, "llama3 is not a multimodal model"),
        (413, "Request exceeds the maximum size"),
    ],
)
async def test_images_that_are_refused_are_left_out_then_and_later(status: int, words: str) -> None:
    seeing, provider = ImageFallback(), Provider(status, words)
    assert await ask(seeing, provider, OLD) == [Stop("end")]
    assert await ask(seeing, provider, OLD) == [Stop("end")]
    assert provider.asked == [{OLD}, set(), set()]


async def test_after_a_restart_refused_images_are_tried_again_and_then_left_out_again() -> None:
    provider = Provider(400, "no image please")
    await ask(ImageFallback(), provider, OLD)
    after_restart = ImageFallback()
    assert await ask(after_restart, provider, OLD) == [Stop("end")]
    assert await ask(after_restart, provider, OLD) == [Stop("end")]
    assert provider.asked == [{OLD}, set(), {OLD}, set(), set()]


async def test_a_new_image_is_tried_once() -> None:
    seeing, provider = ImageFallback(), Provider(400, "no image please")
    await ask(seeing, provider, OLD)
    await ask(seeing, provider, OLD, NEW)
    assert provider.asked == [{OLD}, set(), {NEW}, set()]


@pytest.mark.parametrize(
    "provider",
    [Provider(400, "messages.1: no result"), Provider(429, "image limit"), Provider(400, "image", late=True)],
    ids=["about something else", "a passing trouble", "in mid-answer"],
)
async def test_other_trouble_stays_what_it_is(provider: Provider) -> None:
    seeing = ImageFallback()
    with pytest.raises(ModelFault):
        await ask(seeing, provider, OLD)
    assert provider.asked == [{OLD}]


async def test_images_are_innocent_if_it_does_not_go_without_them_either() -> None:
    seeing, provider = ImageFallback(), Provider(400, "tools.0 draw_image: bad schema", always=True)
    with pytest.raises(ModelFault):
        await ask(seeing, provider, OLD)
    provider.always = False
    await ask(seeing, provider, OLD)
    assert provider.asked == [{OLD}, set(), {OLD}, set()]


@pytest.mark.parametrize("status", [500, 501])
async def test_a_server_that_broke_may_see_the_same_image_another_time(status: int) -> None:
    seeing, provider = ImageFallback(), Provider(status, "image input is not supported")
    for _ in range(2):
        assert await ask(seeing, provider, OLD) == [Stop("end")]
    assert provider.asked == [{OLD}, set(), {OLD}, set()]


async def test_one_refused_image_does_not_cost_those_before_it() -> None:
    seeing, provider = ImageFallback(), Provider(400, "Could not process image")
    provider.only = NEW
    for _ in range(2):
        assert await ask(seeing, provider, OLD, NEW) == [Stop("end")]
    assert provider.asked == [{OLD, NEW}, {OLD}, {OLD}]


async def test_a_model_without_eyes_is_shown_none_of_them() -> None:
    seeing, provider = ImageFallback(), Provider(400, "no image please")
    for _ in range(2):
        assert await ask(seeing, provider, OLD, NEW) == [Stop("end")]
    assert provider.asked == [{OLD, NEW}, {OLD}, set(), set()]
