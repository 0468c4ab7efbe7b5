"""`farhand demo --model provider:…` with the provider's fake, and what is refused before it serves."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest

from farhand.cli import main
from farhand.models.scripted import Ask, Moment, Step
from tests.faces.ui_stream.page import Page
from tests.fakes.provider import FakeProvider
from tests.models.stage import Provider
from tests.process import ROOT, farhand_process, run_farhand
from tests.requirement import requirement

MODELS = {
    "anthropic": "anthropic:claude-sonnet-5",
    "openai": "openai:gpt-6-astra",
    "openai-chat": "openai-chat:llama3",
    "backboard": "backboard:openai/gpt-4o",
}

# those of whoever runs the tests
NO_SETTINGS = dict.fromkeys(
    (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_PROFILE",
        "BACKBOARD_API_KEY",
        "BACKBOARD_BASE_URL",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
    ),
    "",
)
KEYS = {f"{name}_API_KEY": "key" for name in ("ANTHROPIC", "OPENAI", "BACKBOARD")}


def environment(fake: FakeProvider) -> dict[str, str]:
    settings = {
        f"{name}_{setting}": value
        for name in ("ANTHROPIC", "OPENAI", "BACKBOARD")
        for setting, value in (("API_KEY", "key"), ("BASE_URL", fake.url))
    }
    # a proxy of whoever runs the tests must not come between
    return {**settings, "NO_PROXY": "127.0.0.1"}


@pytest.mark.sweep
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


@requirement("models:images")
@pytest.mark.sweep
async def test_a_photo_that_a_user_uploads_reaches_the_provider(provider: Provider) -> None:
    def script(moment: Moment) -> Step:
        return "A fine photo." if moment.results else Ask("pick_file", {"prompt": "A photo"})

    photo = b"\x89PNG\r\n\x1a\nsea"
    async with provider.fake(script) as fake:
        model = MODELS[provider.name]
        async with (
            farhand_process("demo", "--model", model, env=environment(fake)) as server,
            server.client() as client,
        ):
            page = Page(client, "t1")
            turn = await page.say("Take my photo")
            headers = {"content-type": "image/png", "x-farhand": "1", "x-file-name": "sea.png"}
            kept = await client.post("/api/files", content=photo, headers=headers)
            assert kept.status_code == 201
            page.output(turn.of("tool-input-available")[0]["toolCallId"], kept.json())
            assert (await page.send()).text == "A fine photo."
        asked = str(fake.requests[-1].body)
        assert "sea.png: image/png, 11 bytes" in asked
        assert (base64.b64encode(photo).decode() in asked) == (provider.name != "backboard")
        assert fake.refused == []


NO_KEY = {
    "anthropic": "Anthropic requires a key. Set ANTHROPIC_API_KEY.",
    "openai": "OpenAI requires a key. Set OPENAI_API_KEY",
    "openai-chat": "OpenAI requires a key. Set OPENAI_API_KEY; for a server of your own, set OPENAI_BASE_URL",
    "backboard": "Backboard requires a key. Set BACKBOARD_API_KEY.",
}


Refused: TypeAlias = Callable[[str, Mapping[str, str]], str]


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Refused:
    """The one line that `farhand demo --model` ends with, in this process: it ends before it serves."""

    def ended(model: str, env: Mapping[str, str]) -> str:
        homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"), str(tmp_path))
        for name, value in {**NO_SETTINGS, **homes, **env}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["farhand", "demo", "--no-browser", "--port", "0", "--model", model])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        return line

    return ended


def test_a_missing_key_is_one_line_and_code_2(provider: Provider, refused: Refused) -> None:
    assert NO_KEY[provider.name] in refused(MODELS[provider.name], {})


@pytest.mark.sweep
async def test_a_missing_library_is_one_line_and_code_2(provider: Provider, tmp_path: Path) -> None:
    library = "openai" if provider.name == "openai-chat" else provider.name
    # found before the one that is installed
    (tmp_path / f"{library}.py").write_text("raise ModuleNotFoundError('not installed')")
    env = {**NO_SETTINGS, "HOME": str(tmp_path), "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    ended = await run_farhand("demo", "--model", MODELS[provider.name], env=env)
    assert ended.code == 2
    (line,) = ended.err.strip().splitlines()
    assert f"pip install 'farhand[{library}]'" in line


def test_a_malformed_address_is_one_line_and_code_2(provider: Provider, refused: Refused) -> None:
    addresses = {f"{name}_BASE_URL": "http://[::1" for name in ("ANTHROPIC", "OPENAI", "BACKBOARD")}
    words = refused(MODELS[provider.name], {**KEYS, **addresses})
    assert "_BASE_URL 'http://[::1' is not the address of a model server." in words


def test_a_proxy_that_cannot_be_used_is_one_line_and_code_2(provider: Provider, refused: Refused) -> None:
    words = refused(MODELS[provider.name], {**KEYS, "ALL_PROXY": "carrier-pigeon://loft:1"})
    assert "carrier-pigeon" in words


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("claude", "There is no model 'claude'. Known: anthropic:…"),
        ("anthropic: ", "' ' is not the name of a model. Example: anthropic:claude-sonnet-5."),
        ("openai:gpt 6", "'gpt 6' is not the name of a model."),
        ("openai-chat:a\nb", r"'a\nb' is not the name of a model."),
        ("backboard:gpt-4o", "'gpt-4o' is not a model of Backboard. Include the provider"),
    ],
)
def test_a_name_that_no_model_has_is_one_line_and_code_2(model: str, words: str, refused: Refused) -> None:
    assert words in refused(model, KEYS)
