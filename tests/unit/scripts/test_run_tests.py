"""What fails is run once more, alone; `make test` relies on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts/run_tests.py"
STEADY = "def test_passes(): pass\n"
BROKEN = "def test_fails(): assert False\n"
UNSTEADY = """
from pathlib import Path

def test_fails_once():
    seen = Path("seen")
    first = not seen.exists()
    seen.touch()
    assert not first
"""


def outcome_of(folder: Path, text: str) -> tuple[int, str]:
    (folder / "test_it.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "pytest", "-q"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_steady_run_is_run_once(tmp_path: Path) -> None:
    code, output = outcome_of(tmp_path, STEADY)
    assert code == 0
    assert "once more" not in output


def test_what_fails_once_is_named_as_unsteady(tmp_path: Path) -> None:
    code, output = outcome_of(tmp_path, STEADY + UNSTEADY)
    assert code == 0
    assert "UNSTEADY" in output
    assert "test_it.py::test_fails_once" in output


@pytest.mark.parametrize("text", [BROKEN, STEADY + BROKEN], ids=["alone", "among others"])
def test_what_fails_twice_fails_the_run(tmp_path: Path, text: str) -> None:
    code, output = outcome_of(tmp_path, text)
    assert code == 1
    assert "once more" in output


def test_many_failures_are_not_run_again(tmp_path: Path) -> None:
    code, output = outcome_of(tmp_path, "".join(f"def test_fails_{n}(): assert False\n" for n in range(4)))
    assert code == 1
    assert "once more" not in output


def test_a_run_that_cannot_begin_fails(tmp_path: Path) -> None:
    code, _ = outcome_of(tmp_path, "import nowhere_to_be_found\n")
    assert code != 0
