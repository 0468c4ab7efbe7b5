from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from scripts.lock import (
    wanted_as_oldest_server,
    wanted_for_frameworks,
    wanted_of_group,
    wanted_to_develop,
    wanted_to_run,
)

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = ("run", "dev", "frameworks", "oldest-server")
PINNED = re.compile(r"([a-z0-9.-]+)==[^ ;]+( ;[^\\]+)?( \\\n {4}--hash=sha256:[0-9a-f]{64})+\n")


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_pinned_and_hashed_packages_and_nothing_else(name: str) -> None:
    header, _, packages = lock(name).partition("\n")
    assert header.startswith("# ")
    assert PINNED.sub("", packages) == ""


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("run", wanted_to_run(PROJECT)),
        ("dev", wanted_to_develop(PROJECT)),
        ("frameworks", wanted_for_frameworks(PROJECT)),
        ("oldest-server", wanted_as_oldest_server(PROJECT)),
    ],
)
def test_a_lock_covers_what_the_project_asks_for(name: str, wanted: list[str]) -> None:
    assert {plain_name(line) for line in wanted} - pinned(name).keys() == set()


def test_the_demo_and_the_tests_run_the_same_versions() -> None:
    assert pinned("run").items() <= pinned("dev").items()


def test_the_oldest_server_is_another_minor_version_than_the_one_of_the_tests() -> None:
    [wanted] = wanted_as_oldest_server(PROJECT)
    oldest = pinned("oldest-server")["uvicorn"]
    assert oldest.startswith(wanted.removeprefix("uvicorn==").removesuffix("*"))
    assert oldest.split(".")[:2] != pinned("dev")["uvicorn"].split(".")[:2]


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
