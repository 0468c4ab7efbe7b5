"""A build from a clone without the pages says so in one line, instead of leaving them out silently."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = "src/farhand/_ui/index.html"


# it builds packages
pytestmark = pytest.mark.tools


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a clone has that a build needs; the pages are not among it."""
    folder = tmp_path / "clone"
    for name in ("src", "scripts", "changes"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("_ui", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "CONTRIBUTING.md", ".gitignore"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def run(*command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("FARHAND_")}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd, env=env | variables, capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("target", ["sdist", "wheel"])
def test_a_build_without_the_pages_fails_in_one_line(clone: Path, target: str) -> None:
    ended = run("hatchling", "build", "-t", target, cwd=clone)
    assert ended.returncode != 0
    (line,) = [line for line in (ended.stdout + ended.stderr).splitlines() if "farhand" in line]
    assert "run `make ui` first" in line
    assert "FARHAND_WITHOUT_PAGES=1" in line
    assert "Traceback" not in ended.stdout + ended.stderr
    assert not list((clone / "dist").glob("*"))


def test_a_build_with_the_pages_has_them_and_can_be_built_again_from_its_source(clone: Path) -> None:
    page = clone / PAGE
    page.parent.mkdir()
    page.write_text("<!doctype html>")
    ended = run("hatchling", "build", cwd=clone)
    assert ended.returncode == 0, ended.stderr
    (source,), (wheel,) = (clone / "dist").glob("*.tar.gz"), (clone / "dist").glob("*.whl")
    assert "farhand/_ui/index.html" in zipfile.ZipFile(wheel).namelist()
    with tarfile.open(source) as archive:
        archive.extractall(clone / "unpacked", filter="data")
    (folder,) = (clone / "unpacked").iterdir()
    again = run("hatchling", "build", "-t", "wheel", cwd=folder)
    assert again.returncode == 0, again.stderr


def test_whoever_wants_no_pages_builds_without_them(clone: Path) -> None:
    ended = run("hatchling", "build", "-t", "wheel", cwd=clone, FARHAND_WITHOUT_PAGES="1")
    assert ended.returncode == 0, ended.stderr


def test_an_editable_install_needs_no_pages(clone: Path, tmp_path: Path) -> None:
    """As the README says: a newcomer without Node.js is not stopped."""
    target = ("--target", str(tmp_path / "installed"))
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    ended = run("pip", "install", "-q", *offline, *target, "-e", str(clone), cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr


def test_pip_shows_the_line_too(clone: Path, tmp_path: Path) -> None:
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
    ended = run("pip", "wheel", "-q", *offline, "-w", str(tmp_path / "wheels"), str(clone), cwd=tmp_path)
    assert ended.returncode != 0
    assert "run `make ui` first" in ended.stdout + ended.stderr
