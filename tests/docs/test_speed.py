"""What the README tells of speed is what a whole run measured, on a machine that was fit for it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from bench import __main__ as program
from bench import costs, counts, kept, p07, p10, parts
from bench.faults import in_words
from bench.picture import draw
from bench.table import Effort, Line, judged, printed
from tests.process import ROOT
from tests.requirement import requirement

QUIET = {
    "commit": "abc1234",
    "machine": "a machine, 2 cores",
    "python": "3.11.7",
    "load before": "0.40 1.80 2.00",
    "date": "2026-11-16 06:00 UTC",
    "others": "3%",
}
REACHED = Line("P9", "latency", "≤ 2x", "1.23x", True, values={"farhand": {"seconds": 1.0, "client": 0.2}})
MISSED = Line("P1", "trips | durable", "≥ 2x trips/s", "1.40x", False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, file in {"README": "README.md", "RESULTS": "results.json", "PICTURE": "results.svg"}.items():
        monkeypatch.setattr(kept, name, tmp_path / file)
    (tmp_path / "README.md").write_text("before\n<!-- bench -->\nnothing\n<!-- /bench -->\nafter\n")
    return tmp_path


@requirement("speed:published")
def test_the_readme_has_one_place_for_the_table_and_says_how_to_print_it_again() -> None:
    text = (ROOT / "README.md").read_text()
    assert text.count(kept.BEGIN) == text.count(kept.END) == 1
    assert "make bench" in text.partition(kept.BEGIN)[2].partition(kept.END)[0]


@requirement("speed:published")
def test_whatever_the_readme_says_was_missed_has_its_reason_and_what_it_would_take() -> None:
    table = (ROOT / "README.md").read_text().partition(kept.BEGIN)[2].partition(kept.END)[0]
    missed = set(re.findall(r"^\| (P\d+) \|.*\| missed \|$", table, re.MULTILINE))
    page = (ROOT / "docs" / "explanation" / "speed.md").read_text()
    # number, reason, what it would take
    told = set(re.findall(r"^\| (P\d+) \| [^|]+[^| ] \| [^|]+[^| ] \|$", page, re.MULTILINE))
    assert missed <= told


@requirement("speed:published")
def test_what_was_measured_replaces_what_stood_there_and_nothing_else(home: Path) -> None:
    kept.publish([MISSED], QUIET)
    kept.publish([REACHED], QUIET)
    text = (home / "README.md").read_text()
    assert text.startswith("before\n<!-- bench -->\n| | what |")
    assert text.endswith("\n<!-- /bench -->\nafter\n")
    assert "| P9 | latency | ≤ 2x | 1.23x | reached |" in text
    assert "P1" not in text
    assert all(value in text for value in QUIET.values())


@requirement("speed:published")
def test_a_readme_without_the_place_is_left_alone(home: Path) -> None:
    (home / "README.md").write_text("before <!-- bench -->")
    with pytest.raises(LookupError, match="no place for the table"):
        kept.publish([REACHED], QUIET)
    assert (home / "README.md").read_text() == "before <!-- bench -->"


@requirement("speed:published")
@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({}, None),
        ({"load before": "1.00 9.00 9.00"}, None),
        ({"load before": "1.01 0.00 0.00"}, "the load of the machine was 1.01"),
        ({"commit": "abc1234-dirty"}, "not a commit as it stands"),
        ({"commit": "unknown"}, "not a commit as it stands"),
        ({"load before": "unknown"}, "does not tell its load"),
    ],
)
def test_only_a_commit_on_a_quiet_machine_is_published(about: dict[str, str], why: str | None) -> None:
    told = kept.why_not_published(QUIET | about)
    assert told is None if why is None else why in str(told)


@requirement("speed:published")
@pytest.mark.parametrize(
    ("load", "in_any_case"), [("0.10 0 0", False), ("7.00 7 7", False), ("7.00 7 7", True)]
)
def test_a_whole_run_keeps_its_figures_though_what_comes_after_fails(
    home: Path, monkeypatch: pytest.MonkeyPatch, load: str, *, in_any_case: bool
) -> None:
    def fail(*_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "taskset")

    monkeypatch.setattr(program, "measure", lambda names, effort: [REACHED, MISSED])
    monkeypatch.setattr(program, "described", lambda: QUIET | {"load before": load})
    monkeypatch.setattr(parts, "measure", fail)
    monkeypatch.setattr(costs, "measured", fail)
    program.bench_all(in_any_case=in_any_case)
    lines, about = kept.kept()
    assert lines == [REACHED, MISSED]
    assert about["load before"] == load
    assert (home / "results.svg").read_text().startswith("<svg ")
    is_published = "| P9 |" in (home / "README.md").read_text()
    assert is_published == (in_any_case or load.startswith("0"))


@requirement("speed:judged")
def test_a_load_client_without_time_to_spare_has_measured_nothing() -> None:
    busy = Line("P3", "trips", "≥ 0.4x", "0.5x", True, values={"bare": {"seconds": 2.0, "client": 1.8}})
    told = judged(busy)
    assert told.ok is None
    assert told.verdict == "not measured (load client busy)"
    assert judged(REACHED) == REACHED
    assert "not measured (load client busy)" in printed([told])


@requirement("speed:judged")
def test_a_machine_that_lacks_a_tool_is_told_so_and_the_other_figures_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        def measure(self, effort: object) -> Line:
            subprocess.run(["no-such-tool-anywhere"], check=True)
            raise AssertionError("it was found")

    class Whole:
        def measure(self, effort: object) -> Line:
            return REACHED

    found = {"bench.p01": Broken(), "bench.p09": Whole()}
    monkeypatch.setattr(program, "import_module", found.__getitem__)
    broken, whole = program.measure(["p01", "p09"], program.SMALL)
    assert broken.verdict == "not measured"
    assert broken.detail == "'no-such-tool-anywhere' is missing here"
    assert whole.measured == "1.23x"


@requirement("speed:judged")
def test_a_system_that_cannot_tell_its_cores_is_named_in_words() -> None:
    fault = AttributeError("module 'os' has no attribute 'sched_getaffinity'")
    assert in_words(fault).startswith("this system cannot tell what is needed")


@requirement("speed:judged")
def test_a_quick_look_says_what_it_leaves_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "measure", lambda names, effort: [REACHED])
    program.bench(list(program.QUICK), program.SMALL)
    told = capsys.readouterr().out
    assert "left out are P2, P8, P10, P11;" in told
    assert "a tenth of the calls" in told


@requirement("speed:judged")
def test_a_figure_without_a_verdict_has_no_bar_in_the_picture() -> None:
    unmeasured = Line("P2", "against a peer", "", "–", None)
    drawn = draw([unmeasured], [], "nothing")
    assert "– ()" not in drawn
    assert drawn.count("<rect") == 1, "the paper alone"
    assert ">not measured<" in drawn


@requirement("speed:judged")
def test_without_a_database_the_figure_says_so_and_a_fault_of_the_measurement_is_none_of_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> list[Line]:
        raise AssertionError("a value is missing")

    def absent() -> nullcontext[None]:
        raise AssertionError("initdb is missing")

    monkeypatch.setattr(p10, "running_cluster", absent)
    [line] = p10.measure(program.SMALL)
    assert line.detail == "no PostgreSQL here: initdb is missing"
    monkeypatch.setattr(p10, "running_cluster", nullcontext)
    monkeypatch.setattr(p10, "_measure", fail)
    with pytest.raises(AssertionError, match="a value is missing"):
        p10.measure(program.SMALL)


@requirement("speed:counts")
def test_the_counts_of_a_trip_are_printed_again_by_one_command() -> None:
    # in a process of its own: it traces, as the measuring of coverage does
    command = [sys.executable, "-m", "bench", "--quick", "counts"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    entered, bytecode, left_out = ran.stdout.splitlines()[1:]
    functions = re.fullmatch(
        r"functions entered, in memory +([\d,]+) of farhand, ([\d,]+) of others", entered
    )
    instructions = re.fullmatch(r"bytecode instructions, in memory +([\d,]+)", bytecode)
    assert functions is not None, ran.stdout
    assert instructions is not None, ran.stdout
    assert 0 < int(functions[1]) < int(instructions[1].replace(",", ""))
    assert left_out == "Left out: machine instructions."


@requirement("speed:counts")
def test_without_valgrind_the_counts_say_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_trips(store: str, trips: int, count: object) -> None:
        """Tracing is tested above."""

    monkeypatch.setattr(counts, "make_trips", no_trips)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert counts.counted(Effort()).splitlines()[-1] == counts.NO_VALGRIND


@requirement("speed:judged")
def test_the_memory_of_parked_calls_has_rounds_only_where_it_has_a_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parked: list[list[int]] = []

    def look(counts: list[int]) -> dict[str, float]:
        parked.append(counts)
        return {str(count): 0.0 for count in counts} | {"growth": 1.0}

    monkeypatch.setattr(p07, "_parked", look)
    whole = p07._memory(Effort())
    assert (whole.ok, len(parked)) == (True, 3)
    parked.clear()
    small = p07._memory(program.SMALL)
    assert (small.ok, len(parked)) == (None, 1)
    assert "one round, no verdict" in small.detail
