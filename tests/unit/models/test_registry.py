from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farhand import Agent
from farhand.errors import BadSetting
from farhand.models.registry import PROVIDERS, load_model
from tests.requirement import requirement

SETTINGS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "BACKBOARD_API_KEY",
    "ANTHROPIC_PROFILE",
    "ANTHROPIC_CONFIG_DIR",
)
NAMES = ("anthropic:claude-sonnet-5", "openai:gpt-6-astra", "openai-chat:llama3", "backboard:openai/gpt-4o")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for setting in SETTINGS:
        monkeypatch.delenv(setting, raising=False)
    # no profile of whoever runs the tests
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def _forgotten() -> Iterator[None]:
    """Adapters are loaded again within the test, and again after it."""
    loaded = {name: module for name, module in sys.modules.items() if name.startswith("farhand.models.")}
    for name in loaded:
        if name.split(".")[2] in {"anthropic", "openai", "backboard"}:
            del sys.modules[name]
    yield
    sys.modules.update(loaded)


@requirement("models:by-name")
@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_made_by_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "BACKBOARD_API_KEY"):
        monkeypatch.setenv(setting, "key")
    assert load_model(name).name == name
    assert Agent(model=name).spec.model.name == name


@requirement("models:by-name")
@pytest.mark.parametrize("name", ["gpt-4", "nobody:gpt-4", "openai:", ""])
def test_a_name_that_nobody_knows_is_answered_with_those_that_are_known(name: str) -> None:
    with pytest.raises(
        BadSetting, match="Known: anthropic:…, backboard:…, openai:…, openai-chat:…, scripted:…"
    ):
        load_model(name)
    assert sorted(PROVIDERS) == ["anthropic", "backboard", "openai", "openai-chat", "scripted"]


@requirement("models:by-name")
@pytest.mark.parametrize(
    ("name", "setting"),
    list(
        zip(
            NAMES, ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_API_KEY", "BACKBOARD_API_KEY"), strict=True
        )
    ),
)
def test_a_missing_key_is_one_line_that_says_what_to_set(name: str, setting: str) -> None:
    with pytest.raises(BadSetting) as missing:
        Agent(model=name)
    assert f"Set {setting}" in str(missing.value)
    assert "\n" not in str(missing.value)


@requirement("models:by-name")
def test_a_profile_that_cannot_be_read_is_a_bad_setting_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_PROFILE", "nobody")
    with pytest.raises(BadSetting, match=r"cannot be set up: .* Set ANTHROPIC_API_KEY"):
        Agent(model=NAMES[0])


@pytest.mark.parametrize(
    ("name", "library", "extra"),
    [
        (NAMES[0], "anthropic", "anthropic"),
        (NAMES[1], "openai", "openai"),
        (NAMES[2], "openai", "openai"),
        (NAMES[3], "backboard", "backboard"),
    ],
)
@pytest.mark.usefixtures("_forgotten")
def test_a_missing_library_is_one_line_that_says_what_to_install(
    name: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(BadSetting) as missing:
        Agent(model=name)
    assert f"pip install 'farhand[{extra}]'" in str(missing.value)
    assert "\n" not in str(missing.value)


@pytest.mark.parametrize("name", NAMES[1:3])
def test_a_server_of_ones_own_needs_no_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1")
    assert load_model(name).name == name


@pytest.mark.parametrize("name", ["openai-chat:llama3", "openai:gpt-6-astra"])
def test_an_agent_takes_the_address_of_a_model_by_its_name(name: str) -> None:
    assert Agent(model=name, base_url="http://127.0.0.1:1/v1").spec.model.name == name
    with pytest.raises(BadSetting, match="base_url 'nowhere' is not the address"):
        Agent(model=name, base_url="nowhere")


def test_an_address_for_what_has_none_says_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="A scripted model is a file"):
        Agent(model=f"scripted:{tmp_path}/talk.yaml", base_url="http://127.0.0.1:1/v1")
    made = load_model("openai-chat:llama3", base_url="http://127.0.0.1:1/v1")
    with pytest.raises(BadSetting, match=r"Pass it to the model: OpenAIChat\('llama3', base_url=…\)"):
        Agent(model=made, base_url="http://127.0.0.1:1/v1")
