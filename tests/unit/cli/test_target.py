"""The targets that `farhand run` accepts, and its errors for all others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farhand.agent.agent import Agent
from farhand.cli.target import load_target
from farhand.errors import BadSetting
from farhand.server.app import App
from tests.requirement import requirement

GOOD = """
from sibling import words
from farhand import Agent, ScriptedModel, create_app

class box:
    inner = Agent(ScriptedModel([words]))

agent = box.inner
app = create_app(agent, store="memory:")
words = "not an agent"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where farhand was started: with a program of the user's in it. What it imports is forgotten again."""
    (tmp_path / "program.py").write_text(GOOD)
    (tmp_path / "sibling.py").write_text("words = 'hello'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def refusal(target: str) -> str:
    with pytest.raises(BadSetting) as refused:
        load_target(target)
    return str(refused.value)


@requirement("cli:target")
@pytest.mark.parametrize(
    "target",
    [
        "program:agent",
        "program",
        "program:box.inner",
        "program.py:agent",
        "./program.py",
        "program.py:box.inner",
    ],
)
def test_an_agent_is_found_in_a_module_or_a_file(target: str) -> None:
    assert isinstance(load_target(target), Agent)


@requirement("cli:target")
def test_an_app_is_found_as_well() -> None:
    assert isinstance(load_target("program:app"), App)


@requirement("cli:target")
def test_a_file_finds_its_neighbours_wherever_farhand_was_started(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert isinstance(load_target(f"{folder}/program.py:agent"), Agent)


@requirement("cli:target")
def test_a_file_named_like_a_module_of_python_hides_nothing(folder: Path) -> None:
    import json

    (folder / "json.py").write_text(GOOD)
    assert isinstance(load_target("json.py:agent"), Agent)
    assert sys.modules["json"] is json


@requirement("cli:one-line")
@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("nowhere:agent", "There is no module 'nowhere' here."),
        ("program.nowhere:agent", "There is no module 'program.nowhere' here."),
        ("nowhere.deeper:agent", "There is no module 'nowhere.deeper' here."),
        ("nowhere.py", "There is no file 'nowhere.py'."),
        ("./", "There is no file './'."),
        ("~no-such-user/a.py", "'~no-such-user/a.py' cannot be read: Could not determine home directory."),
        (f"{'long' * 100}.py", "cannot be read: File name too long."),
        ("program:agnet", "'program' has no 'agnet'. Did you mean program:agent?"),
        ("program:box.outer", "'program' has no 'box.outer'."),
        ("program:words", "'program:words' is not an Agent or an app of create_app but of type str."),
        ("sibling", "'sibling' has no 'agent'. Make one"),
        ("", "'' does not name an agent."),
        (":agent", "':agent' does not name an agent."),
        ("program:", "'program:' does not name an agent."),
        ("my-program:agent", "'my-program:agent' does not name an agent."),
        (".program:agent", "does not name an agent."),
        ("program:agent()", "does not name an agent."),
    ],
)
def test_what_cannot_be_found_is_one_sentence(target: str, answer: str) -> None:
    sentence = refusal(target)
    assert answer in sentence
    assert "\n" not in sentence


@requirement("cli:one-line")
@pytest.mark.parametrize(
    ("program", "answer"),
    [
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all' (broken.py:1)"),
        ("x = 1\nx.y", "AttributeError: 'int' object has no attribute 'y' (broken.py:2)"),
        ("x =", "SyntaxError: invalid syntax (broken.py:1)"),
        ("raise ValueError('two\\nlines')", "ValueError: two (broken.py:1)"),
        ("raise SystemExit(3)", "SystemExit: 3 (broken.py:1)"),
        ("import json\n\njson.loads('{')", "JSONDecodeError: Expecting property name"),
        (
            "from farhand import tool\n\n@tool\ndef bare(x): ...\n",
            "(broken.py:3)",
        ),
        ("from farhand import Agent\nAgent('psychic')", "There is no model 'psychic'"),
    ],
)
def test_a_program_that_fails_is_one_sentence_with_the_place_in_it(
    program: str, answer: str, folder: Path
) -> None:
    (folder / "broken.py").write_text(program)
    for target in ("broken:agent", "broken.py:agent"):
        sentence = refusal(target)
        assert answer in sentence
        assert "cannot be imported" in sentence


def test_a_folder_that_was_deleted_has_no_modules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "gone").mkdir()
    monkeypatch.chdir(folder / "gone")
    (folder / "gone").rmdir()
    assert "There is no module 'nowhere' here." in refusal("nowhere:agent")


def test_an_interrupt_while_importing_is_an_interrupt(folder: Path) -> None:
    (folder / "slow.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load_target("slow:agent")
