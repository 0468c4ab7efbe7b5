from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from scripts import run_tier

ROOT = Path(__file__).resolve().parents[3]
NEEDS_COPILOTKIT = re.compile(r"from tests\.browser\.copilotkit import|examples\.copilotkit")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a Makefile of its own; the tier `short` has two stages, the first with two lanes."""
    monkeypatch.setattr(run_tier, "ROOT", tmp_path)
    monkeypatch.setattr(run_tier, "TIMES", tmp_path / ".cache" / "times.json")
    monkeypatch.setitem(run_tier.TIERS, "short", [[["one"], ["two", "three"]], [["four"]]])
    return tmp_path


@pytest.mark.parametrize("tier", run_tier.TIERS)
def test_every_part_of_a_tier_is_a_target_of_the_makefile(tier: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    parts = [part for lanes in run_tier.TIERS[tier] for lane in lanes for part in lane]
    assert set(parts) <= set(targets)


def test_a_whole_run_has_every_part_of_the_smaller_one() -> None:
    smaller, whole = (
        {part for lanes in run_tier.TIERS[tier] for lane in lanes for part in lane}
        for tier in ("most", "test")
    )
    # what they run is in the other three
    assert smaller - {"tests-most", "tests-ts-most"} | {"tests-covered", "tests", "tests-ts"} <= whole


def test_what_only_a_whole_run_has_are_marks(pytestconfig: pytest.Config) -> None:
    [left_out] = re.findall(r"^whole_only := (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    known = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert set(left_out.split(" or ")) <= known


def test_nothing_waits_for_the_packages_of_copilotkit_but_the_tests_that_need_them() -> None:
    makefile = (ROOT / "Makefile").read_text()
    needing = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if NEEDS_COPILOTKIT.search(path.read_text())
    }
    assert set(re.findall(r"^copilotkit_tests := (.*)$", makefile, flags=re.MULTILINE)[0].split()) == needing
    assert re.findall(r"^([a-z-]+):.*\$\(copilotkit_ready\)", makefile, flags=re.MULTILINE) == [
        "tests-copilotkit"
    ]


def test_a_tier_that_passes_prints_its_parts_and_is_remembered(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tree / "Makefile").write_text("one two three four:\n\t@echo ran $@\n")
    assert run_tier.main("short") == 0
    printed = capfd.readouterr().out
    assert all(f"ran {part}" in printed for part in ("one", "two", "three", "four"))
    assert "make short: passed in" in printed
    assert '"short": ' in run_tier.TIMES.read_text()


def test_a_part_that_fails_ends_its_lane_and_no_further_stage_begins(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tree / "Makefile").write_text("one three four:\n\t@echo ran $@\ntwo:\n\t@false\n")
    assert run_tier.main("short") == 1
    printed = capfd.readouterr().out
    assert "ran one" in printed
    assert "ran three" not in printed
    assert "ran four" not in printed
    assert "make short: failed: two in" in printed
    assert not run_tier.TIMES.exists()


def test_retried_tests_are_named_in_the_last_line(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tree / "Makefile").write_text("one two three:\n\t@true\nfour:\n\t@echo test_it.py::test >>$(RETRIED)\n")
    assert run_tier.main("short") == 0
    assert capfd.readouterr().out.splitlines()[-1] == "retried: test_it.py::test"


def test_what_a_part_computed_is_told_apart_from_what_ran_beside_it(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    busy = "import time\nwhile time.process_time() < 0.6: pass"
    (tree / "busy.py").write_text(busy)
    (tree / "Makefile").write_text(f"one:\n\t@{sys.executable} busy.py\ntwo three four:\n\t@true\n")
    assert run_tier.main("short") == 0
    printed = capfd.readouterr().out
    computed = {
        part: int(seconds)
        for part, seconds in re.findall(r"^(\w+) +\d+ s +(\d+) s computed$", printed, flags=re.MULTILINE)
    }
    assert computed.keys() == {"one", "two", "three", "four"}
    assert computed["one"] >= 1
    assert computed["two"] == 0


@pytest.mark.parametrize(
    ("counted", "told"),
    [
        ("cpu 1 2 3 4 5 6 7 800 9\ncpu0 0\n", "; 1 s were taken by other machines"),
        # an old kernel
        ("cpu 1 2 3 4\n", ""),
        # another system
        (None, ""),
    ],
)
def test_time_given_to_other_machines_is_told_where_it_is_counted(
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    counted: str | None,
    told: str,
) -> None:
    monkeypatch.setattr(run_tier, "PROCESSORS", tree / "stat")
    if counted is not None:
        (tree / "stat").write_text(counted)
    (tree / "Makefile").write_text("one two three four:\n\t@true\n")
    assert run_tier.main("short") == 0
    last = capfd.readouterr().out.splitlines()[-1]
    assert re.sub(r"[\d,]+ s", "1 s", last) == f"make short: passed in 1 s (processors used 1 s{told})"


def test_time_given_to_others_during_the_run_is_what_counts(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    monkeypatch.setattr(run_tier, "PROCESSORS", tree / "stat")
    (tree / "stat").write_text(f"cpu 1 2 3 4 5 6 7 {5 * ticks} 9\n")
    later = f"cpu 1 2 3 4 5 6 7 {785 * ticks} 9"
    (tree / "Makefile").write_text(f"one two three:\n\t@true\nfour:\n\t@echo {later} >stat\n")
    assert run_tier.main("short") == 0
    assert "; 780 s were taken by other machines" in capfd.readouterr().out
