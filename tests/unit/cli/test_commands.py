"""The command line before anything is served."""

from __future__ import annotations

import sys
from importlib.metadata import version

import pytest

from farhand.cli import main
from farhand.cli.console import print_error
from farhand.cli.options import ServeOptions
from tests.requirement import requirement


def said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["farhand", *arguments])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, printed.out, printed.err


def test_the_version_is_the_packages(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said(capsys, monkeypatch, "--version") == (0, f"farhand {version('farhand')}\n", "")


@pytest.mark.parametrize("command", ["run", "demo"])
def test_help_names_every_option(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = said(capsys, monkeypatch, command, "--help")
    assert code == 0
    for name in ServeOptions.__dataclass_fields__:
        assert f"--{name.replace('_', '-')}" in out


@pytest.mark.parametrize(
    "command",
    ["run", "demo", "types", "purge", "rebuild", "doctor", "call", "tools", "runs", "inbox"]
    + [f"inbox {word}" for word in ("list", "answer", "approve", "deny")],
)
def test_every_command_has_help_of_its_own(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = said(capsys, monkeypatch, *command.split(), "--help")
    assert (code, err) == (0, "")
    assert f"Usage: farhand {command} [OPTIONS]" in out


@requirement("cli:one-line")
@pytest.mark.parametrize("name", ["NO_COLOR", "TERM"])
def test_what_a_terminal_would_obey_is_neither_repeated_nor_said(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "dumb")
    print_error("a title\x1b[31m that\nwants more")
    assert capsys.readouterr().err == "farhand: error: a title\ufffd[31m that wants more\n"


@requirement("cli:one-line")
def test_a_mistake_is_one_line_and_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = said(capsys, monkeypatch, "run", "nowhere:agent")
    assert (code, out) == (2, "")
    assert err == (
        "farhand: error: There is no module 'nowhere' here. Write module:agent or path/to/file.py:agent.\n"
    )


def test_a_store_of_no_kind_is_told_first_and_without_its_password(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = "postgresql+asyncpg://u:s3cret@h/x"
    for more in ([], ["--workers", "2"]):
        code, _, err = said(capsys, monkeypatch, "run", "tests.chaos.agents:agent", "--store", odd, *more)
        assert (code, err.count("\n")) == (2, 1)
        assert "'postgresql+asyncpg://u@h/x' is not a store address." in err


@requirement("cli:one-line")
def test_an_app_that_workers_cannot_share_is_told_which_store_they_need(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = said(capsys, monkeypatch, "run", "tests.chaos.agents:app", "--workers", "2")
    assert (code, err.count("\n")) == (2, 1)
    assert "Name a database with --store postgresql://user@host/name" in err


@requirement("cli:one-line")
@pytest.mark.parametrize(
    ("option", "value", "answer"),
    [
        ("--port", "http", "--port: expected a whole number, got 'http'."),
        ("--allow-origin", "*", "'*' is not an origin."),
        ("--allow-host", "*", "'*' is not a host."),
        ("--model", "psychic", "There is no model 'psychic'."),
        ("--store", "redis://x", "'redis://x' is not a store address."),
        ("--store", "sqlite:////no/where/at/all.db", "'/no/where/at' of the store does not exist."),
        ("--token", "short", "The token is not valid."),
        ("--host", "0.0.0.0", "there is no authenticate hook."),
        (
            "--log-level",
            "loud",
            "--log-level: expected 'debug', 'info', 'warning', 'error' or 'critical', got",
        ),
        ("--log-format", "xml", "--log-format: expected 'text' or 'json', got 'xml'."),
        ("--config", "nowhere.toml", "There is no settings file 'nowhere.toml'."),
    ],
)
def test_a_value_that_cannot_be_is_one_line_and_code_2(
    option: str,
    value: str,
    answer: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if option != "--store":
        monkeypatch.setenv("FARHAND_STORE", "memory:")
    code, out, err = said(
        capsys, monkeypatch, "run", "tests.chaos.agents:agent", "--port", "0", option, value
    )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert answer in err


def test_an_unknown_option_is_a_mistake_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = said(capsys, monkeypatch, "demo", "--prot", "1")
    assert code == 2
    assert "--prot" in err


def test_what_was_not_said_is_left_to_others() -> None:
    assert ServeOptions().given() == {}
    options = ServeOptions(
        port="1", allow_origin=["http://a.example"], open=True, config="x.toml", verbose=True
    )
    assert options.given() == {
        "port": "1", "allow_origin": ["http://a.example"], "open": True, "log_level": "info",
    }  # fmt: skip
    assert ServeOptions(verbose=True, log_level="debug").given() == {"log_level": "debug"}
