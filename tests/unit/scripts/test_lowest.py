from __future__ import annotations

from pathlib import Path

import pytest

from scripts.lowest import IGNORED, LEFT_OUT, TESTS, floors

ROOT = Path(__file__).resolve().parents[3]


def test_the_floor_of_every_library_is_taken_and_extras_stay(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text(
        '[project]\ndependencies = ["one>=1.2,<2"]\n[project.optional-dependencies]\n'
        'more = ["two[fast]>=3.4.5,<4"]\ntesting = ["three>=5,<6"]\n'
    )
    assert floors(project) == ["one==1.2", "two[fast]==3.4.5"]


def test_a_library_without_a_floor_is_an_error(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\ndependencies = ["one<2"]\n[project.optional-dependencies]\n')
    with pytest.raises(AssertionError, match="one<2 has no floor"):
        floors(project)


def test_the_project_has_a_floor_for_everything() -> None:
    assert len(floors(ROOT / "pyproject.toml")) >= 15


def test_what_is_left_out_are_marks(pytestconfig: pytest.Config) -> None:
    known = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert set(LEFT_OUT.split(" or ")) <= known


def test_the_tests_that_are_run_and_ignored_are_there() -> None:
    assert [path for path in (*TESTS, *IGNORED) if not (ROOT / path).exists()] == []
