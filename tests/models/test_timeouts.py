"""Providers that fall silent: no run waits longer than its timeout."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest

from farhand.core.thread import Text, UserMessage
from farhand.errors import BadSetting, ModelFault
from farhand.models.anthropic import Anthropic
from farhand.models.backboard import Backboard
from farhand.models.base import Model, Prompt
from farhand.models.openai import OpenAI, OpenAIChat
from farhand.models.scripted import Moment, Say, Step
from tests.models.stage import PROVIDERS, Provider, said

pytestmark = pytest.mark.usefixtures("http_client")
HELLO = UserMessage("m1", (Text("hello"),))
MAKERS: dict[str, Callable[..., Model]] = {
    "anthropic": Anthropic,
    "openai": OpenAI,
    "openai-chat": OpenAIChat,
    "backboard": Backboard,
}
by_provider = pytest.mark.parametrize(
    ("provider", "make"),
    [(provider, MAKERS[provider.name]) for provider in PROVIDERS],
    ids=list(MAKERS),
)


@by_provider
@pytest.mark.parametrize("words", [[], ["Once ", "upon ", "a "]], ids=["at once", "in mid-answer"])
async def test_a_silent_provider_is_not_waited_for(
    provider: Provider, make: Callable[..., Model], words: list[str]
) -> None:
    never = asyncio.Event()

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield Say(words)
        await never.wait()

    async with provider.fake(script) as fake:
        model = make("openai/m", api_key="key", base_url=fake.url, timeout_sec=0.5, max_retries=0)
        with pytest.raises(ModelFault, match="was cut off" if words else "could not be reached"):
            await said(model, Prompt([HELLO]))


@by_provider
def test_a_time_that_is_none_is_told_when_the_model_is_made(
    provider: Provider, make: Callable[..., Model]
) -> None:
    with pytest.raises(BadSetting, match="timeout_sec"):
        make("openai/m", api_key="key", timeout_sec=0)
