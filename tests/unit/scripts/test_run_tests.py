"""Only tests marked `browser` or `chaos` are retried, and no storm that found a violation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts/run_tests.py"
# it starts pytest in folders of its own
pytestmark = pytest.mark.tools
NO_OTHER_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin,pytest_cov.plugin"}
"""Those of its options; loading the others takes longer than these tests."""
STEADY = "def test_passes(): pass\n"
BROKEN = "import pytest\n@pytest.mark.chaos\ndef test_fails(): assert False\n"
UNSTEADY = """
import pytest
from pathlib import Path

@pytest.mark.browser
def test_fails_once():
    seen = Path("seen")
    first = not seen.exists()
    seen.touch()
    assert not first
"""


STORM = """
import pytest
from pathlib import Path

@pytest.mark.chaos
@pytest.mark.storm
def test_storm(request):
    seen = Path("seen")
    first = not seen.exists()
    seen.touch()
    if first and {starved}:
        request.config.cache.set("farhand/starved", [request.node.nodeid])
    assert not first
"""


def outcome_of(folder: Path, text: str) -> tuple[int, str]:
    (folder / "test_it.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    browser: a\n    chaos: b\n    storm: c\n")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "-q"],
        cwd=folder,
        env={**os.environ, **NO_OTHER_PLUGINS, "RETRIED": str(folder / "retried.txt")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_tests_that_pass_are_run_once(tmp_path: Path) -> None:
    code, output = outcome_of(tmp_path, STEADY)
    assert code == 0
    assert "again" not in output


def test_a_browser_test_that_passes_at_the_second_try_is_named_in_the_last_line(tmp_path: Path) -> None:
    code, output = outcome_of(tmp_path, STEADY + UNSTEADY)
    assert code == 0
    assert output.splitlines()[-1] == "tests: retried: test_it.py::test_fails_once"
    assert (tmp_path / "retried.txt").read_text() == "test_it.py::test_fails_once\n"


def test_a_violation_that_a_storm_found_fails_the_run(tmp_path: Path) -> None:
    code, output = outcome_of(tmp_path, STEADY + STORM.format(starved=False))
    assert code == 1
    assert "running again" not in output


def test_a_storm_that_was_starved_is_run_again(tmp_path: Path) -> None:
    code, output = outcome_of(tmp_path, STEADY + STORM.format(starved=True))
    assert code == 0
    assert output.splitlines()[-1] == "tests: retried: test_it.py::test_storm"


def test_what_fails_twice_fails_the_run(tmp_path: Path) -> None:
    code, output = outcome_of(tmp_path, STEADY + BROKEN)
    assert code == 1
    assert "running again" in output


def test_a_test_without_a_mark_is_not_tried_again_and_nothing_beside_it(tmp_path: Path) -> None:
    code, output = outcome_of(tmp_path, UNSTEADY + "def test_other(): assert False\n")
    assert code == 1
    assert "running again" not in output


def test_many_failures_are_not_run_again(tmp_path: Path) -> None:
    text = "".join(BROKEN.replace("test_fails", f"test_fails_{number}") for number in range(4))
    code, output = outcome_of(tmp_path, text)
    assert code == 1
    assert "running again" not in output


def test_a_run_that_cannot_begin_fails(tmp_path: Path) -> None:
    code, _ = outcome_of(tmp_path, "import nowhere_to_be_found\n")
    assert code != 0
