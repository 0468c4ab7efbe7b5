"""The demo opens a browser only where there is a display."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from farhand.cli import run
from farhand.cli.options import ServeOptions
from farhand.cli.run import open_browser, opener_for, serve_demo
from farhand.errors import BadSetting

DESK = {"DISPLAY": ":0"}


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """With openers that note what they were asked to open."""
    for name in ("xdg-open", "open"):
        program = tmp_path / name
        program.write_text(
            f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/opened.new\nmv {tmp_path}/opened.new {tmp_path}/opened\n'
        )
        program.chmod(0o700)
    return tmp_path


@pytest.mark.parametrize("starter", ["make", "shell"])
def test_a_demo_whose_port_is_taken_names_the_options_that_can_be_typed(
    starter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the tests keep their own
    monkeypatch.setattr("farhand.cli.serve.configure_logging", lambda **_: None)
    monkeypatch.delenv("MAKELEVEL", raising=False)
    if starter == "make":
        monkeypatch.setenv("MAKELEVEL", "1")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        options = ServeOptions(port=str(taken.getsockname()[1]), store="memory:")
        with pytest.raises(BadSetting) as refused:
            serve_demo(options, opens_browser=False)
    assert refused.value.hint.startswith("Choose another address with --host and --port.")
    assert ("PORT=9000" in refused.value.hint) == (starter == "make")


def test_an_opener_is_found_where_there_is_a_display(bin_folder: Path) -> None:
    path = {"PATH": str(bin_folder)}
    assert opener_for("linux", {**path, **DESK}) == str(bin_folder / "xdg-open")
    assert opener_for("linux", {**path, "WAYLAND_DISPLAY": "wayland-0"}) == str(bin_folder / "xdg-open")
    assert opener_for("darwin", path) == str(bin_folder / "open")


@pytest.mark.parametrize("more", [{}, {**DESK, "CI": "true"}, {**DESK, "SSH_CONNECTION": "a"}])
def test_nothing_is_opened_where_nobody_looks(bin_folder: Path, more: dict[str, str]) -> None:
    assert opener_for("linux", {"PATH": str(bin_folder), **more}) is None


def test_without_an_opener_there_is_none() -> None:
    assert opener_for("linux", {"PATH": "/nowhere", **DESK}) is None


def test_the_address_is_handed_to_the_opener_and_nobody_waits(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "opener_for", lambda *_: str(bin_folder / "xdg-open"))
    assert open_browser("http://127.0.0.1:1/?token=once")
    until = time.monotonic() + 30
    while not (bin_folder / "opened").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert (bin_folder / "opened").read_text() == "http://127.0.0.1:1/?token=once"


def test_an_opener_that_cannot_be_started_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "opener_for", lambda *_: "/nowhere/xdg-open")
    assert not open_browser("http://127.0.0.1:1/")
    monkeypatch.setattr(run, "opener_for", lambda *_: None)
    assert not open_browser("http://127.0.0.1:1/")
