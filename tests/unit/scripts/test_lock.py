from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from scripts.lock import wanted_of_group, wanted_to_develop, wanted_to_run
from tests.requirement import requirement

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = ("run", "dev")
PINNED = re.compile(r"([a-z0-9.-]+)==[^ ;]+( ;[^\\]+)?( \\\n {4}--hash=sha256:[0-9a-f]{64})+\n")


@requirement("repository:locks")
@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_pinned_and_hashed_packages_and_nothing_else(name: str) -> None:
    header, _, packages = lock(name).partition("\n")
    assert header.startswith("# ")
    assert PINNED.sub("", packages) == ""


@requirement("repository:locks")
@pytest.mark.parametrize(
    ("name", "wanted"), [("run", wanted_to_run(PROJECT)), ("dev", wanted_to_develop(PROJECT))]
)
def test_a_lock_covers_what_the_project_asks_for(name: str, wanted: list[str]) -> None:
    assert {plain_name(line) for line in wanted} - pinned(name).keys() == set()


@requirement("repository:locks")
def test_the_demo_and_the_tests_run_the_same_versions() -> None:
    assert pinned("run").items() <= pinned("dev").items()


def test_a_group_brings_the_groups_it_includes() -> None:
    project = {"dependency-groups": {"all": [{"include-group": "some"}, "b>=2"], "some": ["a>=1"]}}
    assert wanted_of_group(project, "all") == ["a>=1", "b>=2"]


def lock(name: str) -> str:
    return (ROOT / f"requirements/{name}.txt").read_text()


def pinned(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", lock(name), flags=re.MULTILINE))


def plain_name(line: str) -> str:
    written = re.match(r"[A-Za-z0-9._-]+", line)
    assert written is not None
    return re.sub(r"[-_.]+", "-", written[0]).lower()
