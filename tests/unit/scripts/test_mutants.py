"""Every fault in the list can be planted. Only `make mutants` tries whether a test notices it."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from scripts.mutants import LIST, ROOT, Mutant, Verdict, faults_in, read_mutants

# some start a test run of their own
pytestmark = pytest.mark.timeout(300)

SOUND = Mutant(
    id="always-yes",
    promise="Only a yes is a yes",
    file="src/door.py",
    old="return said == 'yes'",
    new="return True",
    tests=["tests/test_door.py::test_a_no_is_a_no"],
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one promise and one test of it."""
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "src/door.py").write_text("def opens(said: str) -> bool:\n    return said == 'yes'\n")
    (tmp_path / "tests/test_door.py").write_text(
        "from door import opens\n\n\ndef test_a_no_is_a_no() -> None:\n    assert not opens('no')\n"
    )
    return tmp_path


def test_every_listed_fault_can_be_planted() -> None:
    mutants = read_mutants(LIST)
    assert len(mutants) >= 60
    assert list(faults_in(mutants, ROOT)) == []


def test_every_part_of_the_exactly_once_argument_is_broken_by_faults_of_the_list() -> None:
    parts = Counter(each.proof for each in read_mutants(LIST) if each.proof)
    assert parts.pop("lives") == 4
    assert parts.keys() == {"decide", "append", "takeover"}
    assert parts.total() >= 10
    assert min(parts.values()) >= 3


def test_a_fault_whose_code_has_moved_says_what_to_do(tree: Path) -> None:
    [fault] = faults_in([replace(SOUND, old="return said is 'yes'")], tree)
    assert fault.startswith("always-yes: its old text occurs 0 times in src/door.py, not once.")
    assert "Only a yes is a yes" in fault


def test_a_fault_in_a_file_that_is_gone_says_so(tree: Path) -> None:
    [fault] = faults_in([replace(SOUND, file="src/gone.py")], tree)
    assert "0 times in src/gone.py" in fault


def test_a_fault_in_two_places_is_none(tree: Path) -> None:
    [fault] = faults_in([replace(SOUND, old="s", new="t")], tree)
    assert "times in src/door.py, not once" in fault


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (replace(SOUND, new="return ("), "is no Python"),
        (replace(SOUND, tests=[]), "it names no test"),
        # pytest would run everything
        (replace(SOUND, tests=[""]), "there is no test without a name"),
        (replace(SOUND, tests=["tests"]), "there is no tests;"),
        (replace(SOUND, tests=["tests/test_gone.py"]), "there is no tests/test_gone.py"),
        (
            replace(SOUND, tests=["tests/test_door.py::test_gone"]),
            "there is no tests/test_door.py::test_gone",
        ),
    ],
)
def test_a_fault_that_would_tell_nothing_is_named(wrong: Mutant, said: str, tree: Path) -> None:
    [fault] = faults_in([wrong], tree)
    assert said in fault


def test_a_class_of_tests_may_be_named(tree: Path) -> None:
    laws = tree / "tests/test_laws.py"
    laws.write_text("class TestDoor(Laws):\n    pass\n")
    assert list(faults_in([replace(SOUND, tests=["tests/test_laws.py::TestDoor"])], tree)) == []
    [fault] = faults_in([replace(SOUND, tests=["tests/test_laws.py::TestWindow"])], tree)
    assert "there is no tests/test_laws.py::TestWindow" in fault


def test_two_faults_of_one_name_are_told(tree: Path) -> None:
    assert list(faults_in([SOUND, SOUND], tree)) == ["tests/mutants.toml: two mutants are called always-yes"]


@pytest.mark.tools
def test_tests_that_pass_let_a_fault_survive_and_those_that_fail_do_not(tree: Path) -> None:
    assert list(faults_in([SOUND], tree)) == []
    assert verdict(tree, *SOUND.tests) == Verdict.SURVIVED
    door = tree / "src/door.py"
    door.write_text(door.read_text().replace(SOUND.old, SOUND.new))
    assert verdict(tree, *SOUND.tests) == Verdict.KILLED


@pytest.mark.tools
def test_tests_that_cannot_run_are_no_verdict(tree: Path) -> None:
    assert verdict(tree, "tests/test_gone.py") == Verdict.NO_VERDICT


def verdict(tree: Path, *tests: str) -> str:
    """In a process without threads, as `make mutants` is one: it forks."""
    asking = (
        "import sys; from pathlib import Path; from scripts.mutants import run_tests;"
        " print(run_tests(Path(sys.argv[1]), sys.argv[2:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", asking, str(tree), *tests],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]
