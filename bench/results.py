"""Saves and publishes a run: `bench/results.json`, the chart, the table of speed.md, a line in the README.

It knows how figures are written, not how they are measured.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bench.chart import draw
from bench.machine import ROOT
from bench.table import Line

README = ROOT / "README.md"
SPEED = ROOT / "docs" / "explanation" / "speed.md"
RESULTS = Path(__file__).parent / "results.json"
CHART = RESULTS.with_suffix(".svg")
BEGIN, END = "<!-- bench -->", "<!-- /bench -->"
QUIET = 1.0
"""The highest load average of the last minute under which a published figure may be measured."""


def save_results(
    lines: Sequence[Line], about: dict[str, str], by_part: Sequence[tuple[str, float]] = ()
) -> None:
    """Saves the results and their chart, whatever the load of the machine: they contain it."""
    results = {"about": about, "lines": [line.plain() for line in lines], "parts": dict(by_part)}
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    title = f"{about['date']}, commit {about['commit']}, {about['machine']}, load {about['load before']}"
    CHART.write_text(draw(lines, by_part, title))


def load_results() -> tuple[list[Line], dict[str, str]]:
    """The lines of the last complete run, and its circumstances."""
    results = json.loads(RESULTS.read_text())
    return [Line.of(line) for line in results["lines"]], results["about"]


def why_not_published(about: dict[str, str]) -> str | None:
    """The reason why these figures must not be published, if there is one."""
    if (why := why_no_commit(about)) is not None:
        return why
    load = about["load before"].split()[0]
    try:
        is_quiet = float(load) <= QUIET
    except ValueError:
        return f"the load of this machine is unknown ({about['load before']})"
    return None if is_quiet else f"the load of the machine was {load} before the run, more than {QUIET:g}"


def why_no_commit(about: dict[str, str]) -> str | None:
    """The reason why the measured code cannot be identified, if there is one."""
    is_commit = about["commit"] != "unknown" and not about["commit"].endswith("-dirty")
    return None if is_commit else f"the tree is not a commit ({about['commit']})"


def publish(lines: Sequence[Line], about: dict[str, str]) -> None:
    """Writes the table into the speed page and one line into the README; neither if one has no place for
    it."""
    for page in (SPEED, README):
        _split(page)
    replace_block(SPEED, block(lines, about))
    replace_block(README, summary(lines, about))


def replace_block(page: Path, text: str) -> None:
    """Replaces the text between the marks of this page."""
    before, after = _split(page)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def _split(page: Path) -> tuple[str, str]:
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise LookupError(f"{page.name} has no place for the figures: {BEGIN} … {END} is missing")
    return before, after


def block(lines: Sequence[Line], about: dict[str, str]) -> str:
    rows = ["| | what | target | measured | verdict |", "|---|---|---|---|---|"]
    for line in lines:
        cells = (line.number, line.what, line.target, line.measured, line.verdict)
        rows.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    note = (
        f"{measured_on(about)} `make bench` prints this table again; [chart](../../bench/results.svg), [raw"
        " results](../../bench/results.json)."
    )
    return "\n".join([*rows, "", note])


def summary(lines: Sequence[Line], about: dict[str, str]) -> str:
    """One line: durable round trips compared with the references, and how many targets are reached."""
    ratios = [
        f"{line.measured} those of {line.what.partition(' against ')[2]}"
        for line in lines
        if line.number in {"P1", "P2"} and line.ok is not None
    ]
    verdicts = [line.ok for line in lines if line.ok is not None]
    compared = f"Durable round trips per second are {', '.join(ratios)}. " if ratios else ""
    return (
        f"{compared}{sum(verdicts)} of {len(verdicts)} targets are reached (`make bench`, {about['date']},"
        f" commit `{about['commit']}`)."
    )


def measured_on(about: dict[str, str]) -> str:
    """One sentence: when, where, and the load of the machine before and during the run."""
    return (
        f"Measured on {about['date']}, {about['machine']}, Python {about['python']}, commit"
        f" `{about['commit']}`, load before the run {about['load before']}; other processes used"
        f" {about.get('others', 'an unknown share')} of the machine."
    )
