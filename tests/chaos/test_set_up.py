"""The set-up behind every command: its errors when something is missing, and its state after an interruption.

Real make, real virtual environments and real pip on a project of one empty package; no network.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

# each makes environments of its own, up to three times
pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).resolve().parents[2]
STAMP = ".venv/.ready-to-run"
UNREACHABLE = f"nothing-has-this-name==1.0 --hash=sha256:{'0' * 64}\n"

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny"
version = "1"
"""
BACKEND = """
import pathlib, zipfile

METADATA = "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n"
WHEEL = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"

def prepare_metadata_for_build_editable(folder, settings=None):
    info = pathlib.Path(folder, "tiny-1.dist-info")
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    return info.name

def build_editable(folder, settings=None, metadata=None):
    name = "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        wheel.writestr("tiny-1.dist-info/METADATA", METADATA)
        wheel.writestr("tiny-1.dist-info/WHEEL", WHEEL)
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    return name
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A clone-like folder, with a blank in its name, because people have those."""
    root = tmp_path / "a clone"
    for folder in ("scripts", "requirements"):
        (root / folder).mkdir(parents=True)
    for name in ("Makefile", "scripts/set_up.sh"):
        shutil.copy(ROOT / name, root / name)
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "backend.py").write_text(BACKEND)
    for lock in ("run", "dev"):
        (root / f"requirements/{lock}.txt").write_text("# nothing\n")
    return root


def test_a_missing_python_is_reported_in_one_line(project: Path) -> None:
    ended = set_up(project, PYTHON="python-that-is-not-here")
    assert_stopped(ended, because="python-that-is-not-here is missing; install Python 3.11")


def test_an_old_python_is_reported_in_one_line_with_its_version(project: Path) -> None:
    old = project / "old-python"
    # answers the two questions set-up asks as Python 3.9 does
    old.write_text('#!/bin/sh\ncase "$2" in *print*) echo 3.9 ;; *) exit 1 ;; esac\n')
    old.chmod(0o755)
    ended = set_up(project, PYTHON="./old-python")
    assert_stopped(ended, because="./old-python is Python 3.9 and farhand needs 3.11 or newer")


def test_a_python_without_its_venv_module_is_reported_in_one_line(project: Path) -> None:
    # as on Debian without python3-venv: venv is there, ensurepip is not
    (project / "ensurepip.py").write_text("raise ModuleNotFoundError(__name__)\n")
    ended = set_up(project, PYTHONPATH=str(project))
    assert_stopped(ended, because="no venv module; install it (Debian: apt install python3-venv)")


@pytest.mark.tools
def test_an_unreachable_index_is_reported_in_one_line_after_pips_own_words(project: Path) -> None:
    (project / "requirements/run.txt").write_text(UNREACHABLE)
    ended = set_up(project)
    assert ended.returncode == 1
    assert "nothing-has-this-name" in ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("set-up stopped: pip could not install requirements/run.txt")
    assert "check the network" in last


@pytest.mark.tools
def test_a_failed_set_up_is_repeated_and_a_finished_one_only_when_its_inputs_changed(project: Path) -> None:
    lock = project / "requirements/run.txt"
    lock.write_text(UNREACHABLE)
    assert make(project, STAMP).returncode != 0
    assert not (project / STAMP).exists()

    lock.write_text("# nothing\n")
    assert "set-up: done in" in make(project, STAMP).stdout

    again = make(project, STAMP)
    assert (again.returncode, "set-up" in again.stdout) == (0, False)

    later = time.time() + 60
    os.utime(project / "pyproject.toml", (later, later))
    assert "set-up: done in" in make(project, STAMP).stdout


@pytest.mark.tools
def test_a_set_up_killed_half_way_leaves_no_stamp_and_is_repaired_by_the_next(project: Path) -> None:
    # a group of its own: what dies is make with everything it started
    running = subprocess.Popen(
        ["make", STAMP], cwd=project, env=offline(), stdout=subprocess.DEVNULL, start_new_session=True
    )
    wait_until((project / ".venv/bin/python").exists)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait(timeout=30)
    assert not (project / STAMP).exists()

    ended = make(project, STAMP)
    assert ended.returncode == 0, ended.stderr
    assert (project / STAMP).exists()


def set_up(project: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(project, "scripts/set_up.sh", "run", **variables)


def make(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(project, "make", *arguments)


def run(project: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=project,
        env=offline() | variables,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def offline() -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "MAKE", "MFLAGS"))
    }
    settings = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PYTHON": sys.executable, "VENV": ".venv"}
    return kept | settings


def assert_stopped(ended: subprocess.CompletedProcess[str], *, because: str) -> None:
    assert ended.returncode == 1
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("set-up stopped: ")
    assert because in line


def wait_until(fact: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 30
    while not fact():
        assert time.monotonic() < give_up, "it never became true"
        time.sleep(0.01)
