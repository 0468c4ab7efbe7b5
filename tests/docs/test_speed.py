"""The published figures of speed come from a complete run on an idle machine."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from bench import __main__ as program
from bench import comparison, costs, counts, logs, p07, p10, parts, results, server_process
from bench.chart import draw
from bench.faults import describe_fault
from bench.table import Effort, Line, format_lines, judge
from tests.process import ROOT

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
    files = {"README": "README.md", "SPEED": "speed.md", "RESULTS": "results.json", "CHART": "results.svg"}
    for name, file in files.items():
        monkeypatch.setattr(results, name, tmp_path / file)
    for page in ("README.md", "speed.md"):
        (tmp_path / page).write_text("before\n<!-- bench -->\nnothing\n<!-- /bench -->\nafter\n")
    return tmp_path


@pytest.mark.parametrize("page", [results.SPEED, results.README], ids=lambda page: page.name)
def test_each_page_has_one_place_for_the_figures_and_names_the_command_that_prints_them(page: Path) -> None:
    text = page.read_text()
    assert text.count(results.BEGIN) == text.count(results.END) == 1
    assert "make bench" in text.partition(results.BEGIN)[2].partition(results.END)[0]


def test_every_missed_target_has_its_reason_and_what_it_would_take() -> None:
    page = results.SPEED.read_text()
    missed = set(re.findall(r"^\| (P\d+) \|.*\| missed \|$", page, re.MULTILINE))
    # number, reason, what it would take
    explained = set(re.findall(r"^\| (P\d+) \| [^|]+[^| ] \| [^|]+[^| ] \|$", page, re.MULTILINE))
    assert missed <= explained


def test_new_figures_replace_the_old_ones_and_nothing_else(home: Path) -> None:
    results.publish([MISSED], QUIET)
    results.publish([REACHED], QUIET)
    text = (home / "speed.md").read_text()
    assert text.startswith("before\n<!-- bench -->\n| | what |")
    assert text.endswith("\n<!-- /bench -->\nafter\n")
    assert "| P9 | latency | ≤ 2x | 1.23x | reached |" in text
    assert "P1" not in text
    assert all(value in text for value in QUIET.values())


def test_the_readme_gets_one_line_with_the_ratios_and_how_many_targets_are_reached(home: Path) -> None:
    durable = Line("P1", "durable round trip, 64 users, against FastAPI + futures", "≥ 1x", "1.40x", True)
    results.publish([durable, REACHED, MISSED], QUIET)
    line = (home / "README.md").read_text().splitlines()[2]
    assert line.startswith("Durable round trips per second are 1.40x those of FastAPI + futures")
    assert "2 of 3 targets are reached" in line


@pytest.mark.parametrize("page", ["README.md", "speed.md"])
def test_without_a_place_on_both_pages_nothing_is_written(home: Path, page: str) -> None:
    (home / page).write_text("before <!-- bench -->")
    before = [file.read_text() for file in (home / "README.md", home / "speed.md")]
    with pytest.raises(LookupError, match="no place for the figures"):
        results.publish([REACHED], QUIET)
    assert [file.read_text() for file in (home / "README.md", home / "speed.md")] == before


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({}, None),
        ({"load before": "1.00 9.00 9.00"}, None),
        ({"load before": "1.01 0.00 0.00"}, "the load of the machine was 1.01"),
        ({"commit": "abc1234-dirty"}, "the tree is not a commit"),
        ({"commit": "unknown"}, "the tree is not a commit"),
        ({"load before": "unknown"}, "load of this machine is unknown"),
    ],
)
def test_figures_are_published_only_from_a_commit_on_an_idle_machine(
    about: dict[str, str], why: str | None
) -> None:
    told = results.why_not_published(QUIET | about)
    assert told is None if why is None else why in str(told)


@pytest.mark.parametrize(
    ("load", "in_any_case"), [("0.10 0 0", False), ("7.00 7 7", False), ("7.00 7 7", True)]
)
def test_a_whole_run_keeps_its_figures_if_a_later_measurement_fails(
    home: Path, monkeypatch: pytest.MonkeyPatch, load: str, *, in_any_case: bool
) -> None:
    def fail(*_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "taskset")

    monkeypatch.setattr(program, "measure", lambda names, effort: [REACHED, MISSED])
    monkeypatch.setattr(program, "describe_machine", lambda: QUIET | {"load before": load})
    monkeypatch.setattr(parts, "measure", fail)
    monkeypatch.setattr(costs, "measure_costs", fail)
    program.bench_all(in_any_case=in_any_case)
    lines, about = results.load_results()
    assert lines == [REACHED, MISSED]
    assert about["load before"] == load
    assert (home / "results.svg").read_text().startswith("<svg ")
    is_published = "| P9 |" in (home / "speed.md").read_text()
    assert is_published == (in_any_case or load.startswith("0"))


def test_a_busy_load_client_leaves_the_figure_without_a_verdict() -> None:
    busy = Line("P3", "trips", "≥ 0.4x", "0.5x", True, values={"bare": {"seconds": 2.0, "client": 1.8}})
    told = judge(busy)
    assert told.ok is None
    assert told.verdict == "not measured (load client busy)"
    assert judge(REACHED) == REACHED
    assert "not measured (load client busy)" in format_lines([told])


def test_a_missing_tool_is_named_and_the_other_figures_are_measured(
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


def test_a_system_without_the_affinity_of_cores_gets_a_sentence() -> None:
    fault = AttributeError("module 'os' has no attribute 'sched_getaffinity'")
    assert describe_fault(fault).startswith("this system does not provide what is needed")


def test_a_quick_run_says_what_it_leaves_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "measure", lambda names, effort: [REACHED])
    program.bench(list(program.QUICK), program.SMALL)
    told = capsys.readouterr().out
    assert "left out are P2, P8, P10, P11, P13, P14, P15;" in told
    assert "a tenth of the calls" in told


def test_a_figure_without_a_verdict_has_no_bar_in_the_picture() -> None:
    unmeasured = Line("P2", "against a peer", "", "–", None)
    drawn = draw([unmeasured], [], "nothing")
    assert "– ()" not in drawn
    assert drawn.count("<rect") == 1, "the paper alone"
    assert ">not measured<" in drawn


def test_a_missing_database_is_reported_and_a_fault_of_the_measurement_is_raised(
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


def test_one_command_prints_the_counts_of_a_trip() -> None:
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
    assert 0 < int(functions[1].replace(",", "")) < int(instructions[1].replace(",", ""))
    assert left_out == "Left out: machine instructions."


def test_without_valgrind_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_trips(store: str, trips: int, count: object) -> None:
        """Tracing is tested above."""

    monkeypatch.setattr(counts, "make_trips", no_trips)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert counts.report_counts(Effort()).splitlines()[-1] == counts.NO_VALGRIND


def test_the_memory_of_parked_calls_has_a_verdict_only_with_full_caches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parked: list[list[int]] = []

    def look(counts: list[int]) -> dict[str, float]:
        parked.append(counts)
        return {str(count): 0.0 for count in counts} | {"growth": 1.0}

    monkeypatch.setattr(p07, "_parked", look)
    whole = p07._memory(Effort())
    assert (whole.ok, parked[0][-2:]) == (True, [p07.FILLED, p07.PARKED])
    small = p07._memory(program.SMALL)
    assert (small.ok, len(parked)) == (None, 2)
    assert "one round, no verdict" in small.detail


def test_another_revision_is_measured_in_alternating_rounds_beside_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[bool] = []

    class Figure:
        def measure(self, effort: Effort) -> Line:
            is_ours = server_process.home.get() == ROOT
            measured.append(is_ours)
            each = 0.001 if is_ours else 0.002
            return Line(
                "P1",
                "trips",
                "≥ 1.7x",
                "3.0x" if is_ours else "1.5x",
                True,
                values={"farhand": {"each": each, "cpu": 1.0}},
            )

    monkeypatch.setattr(comparison, "worktree", lambda revision: nullcontext(tmp_path))
    monkeypatch.setattr(comparison, "import_module", lambda name: Figure())
    told = comparison.compare("abc1234", ["p01"], Effort(rounds=3)).splitlines()[-1]
    assert measured == [False, True, True, False, False, True]
    assert told == (
        "| P1 | trips | 1.5 x (1.5, 1.5, 1.5) | 3 x (3, 3, 3) | 2.00x | 2,000 → 1,000 µs (0.50x) |"
    )


def test_an_unknown_revision_is_named() -> None:
    with pytest.raises(LookupError, match="no revision 'nowhere'"), comparison.worktree("nowhere"):
        pass


def test_the_targets_of_the_log_are_printed_beside_what_was_counted() -> None:
    command = [sys.executable, "-m", "bench", "targets"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    rows = [line.split(" | ") for line in ran.stdout.splitlines()]
    names = [row[0].removeprefix("| ") for row in rows]
    assert "its waits for the disk" in names
    assert "AI SDK answer: store reads, SQLite" in names
    assert all(len(row) == 3 for row in rows)


def test_the_log_of_a_day_is_smaller_after_retention(tmp_path: Path) -> None:
    file = tmp_path / "day.db"
    asyncio.run(logs.day(str(file), "20"))
    before = logs.sizes(file)
    asyncio.run(logs.purge(str(file)))
    after = logs.sizes(file)
    assert after["in use"] < before["in use"]
