"""Each example of a bridge runs as it is and asserts what it shows; its user adds five lines at most."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirement import requirement

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(
    path.stem
    for path in (ROOT / "examples/bridges").glob("*.py")
    if "\nasync def main() -> None:" in path.read_text()
)
# it is killed and started again by a test of its own
KILLED = {"dbos_workflow"}


@requirement("bridges:five-lines")
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in KILLED])
def test_an_example_runs_and_shows_what_it_asserts(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", f"examples.bridges.{name}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-2:] == [
        "a person approves: pay {'amount': 3}",
        "the tool ran: paid 3 euros",
    ]


@requirement("bridges:five-lines")
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in KILLED])
def test_far_hands_take_five_lines_at_most(name: str) -> None:
    text = (ROOT / f"examples/bridges/{name}.py").read_text()
    assert 1 <= len(re.findall(r"  # \+", text)) <= 5
