"""`farhand demo --model provider:…` as a real process, with the demo's tools and the provider's fake."""

from __future__ import annotations

from pathlib import Path

import pytest

from farhand.models.scripted import Ask, Moment, Step
from farhand.testing.fake_provider import FakeProvider
from tests.models.stage import Provider
from tests.process import farhand_process, run_farhand
from tests.requirement import requirement

MODELS = {
    "anthropic": "anthropic:claude-sonnet-5",
    "openai": "openai:gpt-6-astra",
    "openai-chat": "openai-chat:llama3",
    "backboard": "backboard:openai/gpt-4o",
}

# those of whoever runs the tests
NO_SETTINGS = dict.fromkeys(
    ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "",
)


def environment(fake: FakeProvider) -> dict[str, str]:
    settings = {
        f"{name}_{setting}": value
        for name in ("ANTHROPIC", "OPENAI", "BACKBOARD")
        for setting, value in (("API_KEY", "key"), ("BASE_URL", fake.url))
    }
    # a proxy of whoever runs the tests must not come between
    return {**settings, "NO_PROXY": "127.0.0.1"}


@requirement("demo:real-model")
async def test_the_demo_runs_with_a_real_provider_and_its_own_tools(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        if not moment.results:
            return Ask("get_current_weather", {"location": "Oslo"})
        weather = moment.results[0].output
        assert isinstance(weather, dict)
        return f"{weather['condition']} in {weather['location']}."

    async with provider.fake(script) as fake:
        model = MODELS[provider.name]
        async with farhand_process("demo", "--model", model, env=environment(fake)) as server:
            message = {
                "id": "m1",
                "role": "user",
                "parts": [{"type": "text", "text": "The weather in Oslo?"}],
            }
            async with server.client() as client:
                answered = await client.post("/api/chat", json={"id": "t1", "messages": [message]})
            assert answered.status_code == 200
            for word in ("Sunny ", "in ", "Oslo."):
                assert word in answered.text
            assert model in server.out
        offered = {tool.name for tool in fake.prompts[0].tools}
        assert {"get_current_weather", "delete_file", "open_url", "take_photo"} <= offered
        assert "You show what farhand can do" in fake.prompts[0].instructions
        assert fake.refused == []


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("anthropic:claude-sonnet-5", "Anthropic needs a key. Set ANTHROPIC_API_KEY."),
        ("openai:gpt-6-astra", "OpenAI needs a key. Set OPENAI_API_KEY"),
        ("claude", "There is no model 'claude'. Known: anthropic:…"),
    ],
)
@requirement("demo:real-model")
async def test_a_model_that_cannot_be_used_is_one_line_and_code_2(
    model: str, words: str, tmp_path: Path
) -> None:
    ended = await run_farhand("demo", "--model", model, env={**NO_SETTINGS, "HOME": str(tmp_path)})
    assert ended.code == 2
    assert words in ended.err
    assert len(ended.err.strip().splitlines()) == 1
