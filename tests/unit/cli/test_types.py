"""`farhand types` on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from farhand.cli import main
from farhand.demo.agent import agent
from farhand.tools.typescript import frontend_types
from tests.requirement import requirement

TARGET = "farhand.demo.agent:agent"
EXPECTED = frontend_types(agent.spec.toolbox.tools())


def types(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    monkeypatch.setattr(sys, "argv", ["farhand", "types", *arguments])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@requirement("types:command")
def test_types_are_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert types(monkeypatch, TARGET) == 0
    assert capsys.readouterr().out == EXPECTED


@requirement("types:command")
def test_types_are_written_to_a_file_which_is_left_alone_when_it_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tools.ts"
    file.write_bytes(b"\xff is no text")
    assert types(monkeypatch, TARGET, "-o", str(file)) == 0
    assert file.read_text() == EXPECTED
    file.chmod(0o444)
    before = file.stat().st_mtime_ns
    assert types(monkeypatch, TARGET, "-o", str(file)) == 0
    assert file.stat().st_mtime_ns == before


@requirement("types:command")
def test_types_of_an_app_are_those_of_its_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "served.py"
    module.write_text(
        "from farhand import create_app\nfrom farhand.demo.agent import agent\napp = create_app(agent)\n"
    )
    assert types(monkeypatch, f"{module}:app") == 0
    assert capsys.readouterr().out == EXPECTED


@requirement("types:command")
def test_a_file_that_cannot_be_written_is_one_line_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert types(monkeypatch, TARGET, "-o", str(tmp_path / "nowhere" / "tools.ts")) == 2
    assert "cannot be written: No such file or directory." in capsys.readouterr().err.replace("\n", " ")
