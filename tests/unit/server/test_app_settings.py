"""Which value of a setting applies to an app, and which source is printed at start."""

from __future__ import annotations

import logging
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI
from msgspec.structs import fields

from farhand import Agent, ClientTools, Limits, Principal, ScriptedModel, Settings, Timeouts, create_app
from farhand.errors import BadSetting
from farhand.server.app import App
from farhand.server.settings import load_settings
from farhand.store.open import open_store


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the settings file; the working folder is empty."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "config" / "farhand"
    folder.mkdir(parents=True)
    return folder


def agent() -> Agent:
    return Agent(ScriptedModel(lambda _: "Hello."))


def described(app: App) -> dict[str, str]:
    return dict(app.describe())


async def test_a_variable_reaches_an_app_that_any_server_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FARHAND_STORE", "sqlite:///named.db")
    app = create_app(agent())
    async with app.lifespan():
        assert described(app)["store"] == "sqlite:///named.db (FARHAND_STORE)"
    assert (tmp_path / "named.db").exists()
    assert not (tmp_path / "farhand.db").exists()


async def test_variables_and_the_file_reach_a_mounted_app(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config.toml").write_text('store = "memory:"\n[limits]\nchat_body = 900\n[timeouts]\nlease = 7\n')
    monkeypatch.setenv("FARHAND_TIMEOUTS__LEASE", "8")
    monkeypatch.setenv("FARHAND_ALLOW_HOST", "agent.example.org")
    hands = create_app(agent(), authenticate=lambda _: Principal("house", "ada"))
    host = FastAPI(lifespan=hands.lifespan)
    host.mount("/assistant", hands)
    transport = httpx2.ASGITransport(host)
    async with (
        hands.lifespan(),
        httpx2.AsyncClient(transport=transport, base_url="http://agent.example.org") as client,
    ):
        assert hands.settings.timeouts.lease == 8.0
        refused = await client.post("/assistant/api/chat", json={"id": "t", "messages": ["x" * 1000]})
        assert refused.status_code == 413
        values = described(hands)
        assert values["timeouts.lease"] == "8 (FARHAND_TIMEOUTS__LEASE)"
        assert values["limits.chat_body"] == f"900 ({home / 'config.toml'})"
        assert values["store"] == f"memory: ({home / 'config.toml'})"


async def test_an_argument_of_create_app_wins_even_if_it_equals_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FARHAND_STORE", "sqlite:///other.db")
    monkeypatch.setenv("FARHAND_INSPECTOR", "true")
    monkeypatch.setenv("FARHAND_ALLOW_HOST", "a.example")
    app = create_app(agent(), store="sqlite:///farhand.db", inspector=False, allow_hosts=[])
    async with app.lifespan():
        assert not app.shows_inspector
        assert app.values.allow_host == ()
        assert described(app)["store"] == "sqlite:///farhand.db (create_app; FARHAND_STORE is not used)"
    assert (tmp_path / "farhand.db").exists()
    assert not (tmp_path / "other.db").exists()


def test_an_option_wins_over_an_argument_of_create_app() -> None:
    given = Settings(timeouts=Timeouts(hold_for=30, lease=9))
    app = create_app(agent(), store="memory:", settings=given, allow_hosts=["a.example"])
    options = {"store": "sqlite:///typed.db", "hold_for": "5", "allow_host": ["b.example"]}
    app.configure(load_settings(options))
    assert (app.settings.timeouts.hold_for, app.settings.timeouts.lease) == (5.0, 9)
    assert described(app) == {
        "model": f"{app.agent.spec.model.name} (Agent)",
        "store": "sqlite:///typed.db (--store)",
        "allow_host": "a.example, b.example (create_app, --allow-host)",
        "timeouts.hold_for": "5 (--hold-for)",
        "timeouts.lease": "9 (create_app)",
    }


def test_settings_in_python_leave_all_others_to_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARHAND_TIMEOUTS__LEASE", "8")
    monkeypatch.setenv("FARHAND_LIMITS__TITLE", "99")
    monkeypatch.setenv("FARHAND_CLIENT_TOOLS__APPROVAL", "always")
    given = Settings(limits=Limits(title=77), timeouts=Timeouts(hold_for=1))
    app = create_app(agent(), settings=given, client_tools=ClientTools(approval=lambda *_: False))
    app.configure(load_settings({}))
    timeouts = app.settings.timeouts
    assert (timeouts.hold_for, timeouts.lease, app.settings.limits.title) == (1, 8.0, 77)
    assert callable(app.values.client_tools.approval)
    assert described(app)["client_tools.approval"].startswith("a function (create_app;")


def test_the_max_steps_of_an_agent_apply_unless_they_are_set_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = Agent(ScriptedModel(lambda _: "Hello."), max_steps=7)
    app = create_app(slow, store="memory:")
    app.configure(load_settings({}))
    assert app.settings.limits.max_steps == 7
    assert described(app)["limits.max_steps"] == "7 (Agent)"
    monkeypatch.setenv("FARHAND_LIMITS__MAX_STEPS", "50")
    other = create_app(slow, store="memory:")
    other.configure(load_settings({}))
    assert other.settings.limits.max_steps == 50


async def test_a_model_a_token_and_a_store_from_python_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "talk.yaml").write_text("rules:\n  - when: hello\n    steps:\n      - text: From the file.\n")
    monkeypatch.setenv("FARHAND_MODEL", "scripted:talk.yaml")
    monkeypatch.setenv("FARHAND_TOKEN", "of-the-environment")
    first, second = (
        create_app(agent(), store=await open_store("memory:")),
        create_app(agent(), store="memory:"),
    )
    second.auth.token = "set-by-the-program"
    for app in (first, second):
        app.configure(load_settings({}))
    assert (first.auth.token, second.auth.token) == ("of-the-environment", "set-by-the-program")
    assert "of-the-environment" not in str(first.describe())
    assert first.spec.model is not first.agent.spec.model
    assert described(first)["model"].endswith("(FARHAND_MODEL)")
    assert described(first)["store"] == "a Store object (create_app)"


async def test_a_bad_variable_keeps_the_app_from_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARHAND_STOER", "sqlite:///x.db")
    app = create_app(agent())
    with pytest.raises(BadSetting, match="Did you mean FARHAND_STORE"):
        await app.start()


async def test_a_mounted_app_logs_its_settings(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FARHAND_STORE", "memory:")
    monkeypatch.setenv("FARHAND_OPEN", "true")
    app = create_app(agent())
    with caplog.at_level(logging.INFO, "farhand.server"):
        async with app.lifespan():
            assert app.auth.open
    assert "store memory: (FARHAND_STORE)" in caplog.text
    assert "without the token" in caplog.text


def test_a_server_with_a_hook_is_never_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARHAND_OPEN", "true")
    app = create_app(agent(), store="memory:", authenticate=lambda _: None)
    with pytest.raises(BadSetting, match="FARHAND_OPEN: a server with an authenticate hook cannot be open"):
        app.configure(load_settings({}))


def test_what_an_unstarted_app_does_not_have_is_an_error() -> None:
    app = create_app(agent())
    for name in ("settings", "state", "service", "store_address"):
        with pytest.raises(BadSetting, match="has not started yet"):
            getattr(app, name)


def test_every_section_of_the_settings_can_be_described() -> None:
    """A new section or setting has words at a start."""
    shapes = load_settings({}).settings
    for section in fields(shapes):
        for setting in fields(getattr(shapes, section.name)):
            value = getattr(getattr(shapes, section.name), setting.name)
            app = create_app(agent(), store="memory:")
            app.configure(load_settings({section.name: {setting.name: value}}))
            assert f"{section.name}.{setting.name}" in described(app)
