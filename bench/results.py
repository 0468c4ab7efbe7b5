"""What a whole run leaves: `bench/results.json`, the chart, the table of speed.md, a line in the README.

Knows how figures are written down, not how they are measured.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bench.machine import ROOT
from bench.chart import draw
from bench.table import Line

README = ROOT / "README.md"
SPEED = ROOT / "docs" / "explanation" / "speed.md"
RESULTS = Path(__file__).parent / "results.json"
PICTURE = RESULTS.with_suffix(".svg")
BEGIN, END = "<!-- bench -->", "<!-- /bench -->"
QUIET = 1.0
"""The load of the last minute that a figure to publish is measured under at most."""


def keep(lines: Sequence[Line], about: dict[str, str], by_part: Sequence[tuple[str, float]] = ()) -> None:
    """The results and their picture, whatever the machine was like: they say it themselves."""
    results = {"about": about, "lines": [line.plain() for line in lines], "parts": dict(by_part)}
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    title = f"{about['date']}, commit {about['commit']}, {about['machine']}, load {about['load before']}"
    PICTURE.write_text(draw(lines, by_part, title))


def kept() -> tuple[list[Line], dict[str, str]]:
    """The lines of the last whole run, and what they say of it."""
    results = json.loads(RESULTS.read_text())
    return [Line.of(line) for line in results["lines"]], results["about"]


def why_not_published(about: dict[str, str]) -> str | None:
    """One sentence, where these figures are none to publish."""
    if (why := why_no_commit(about)) is not None:
        return why
    load = about["load before"].split()[0]
    try:
        is_quiet = float(load) <= QUIET
    except ValueError:
        return f"this machine does not tell its load ({about['load before']})"
    return None if is_quiet else f"the load of the machine was {load} before the run, more than {QUIET:g}"


def why_no_commit(about: dict[str, str]) -> str | None:
    """One sentence, where nobody could come back to what was measured."""
    is_one = about["commit"] != "unknown" and not about["commit"].endswith("-dirty")
    return None if is_one else f"the tree is not a commit as it stands ({about['commit']})"


def publish(lines: Sequence[Line], about: dict[str, str]) -> None:
    """The table into the speed page, one line into the README; neither is written if one has no place."""
    for page in (SPEED, README):
        _split(page)
    put(SPEED, block(lines, about))
    put(README, summary(lines, about))


def put(page: Path, text: str) -> None:
    """Replaces what stands between the marks of this page."""
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
    said = (
        f"{measured_on(about)} `make bench` prints this table again; [chart](../../bench/results.svg), [raw"
        " results](../../bench/results.json)."
    )
    return "\n".join([*rows, "", said])


def summary(lines: Sequence[Line], about: dict[str, str]) -> str:
    """One line: durable round trips beside the others, and how many targets are reached."""
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
    """One sentence: when, where, and how quiet it was there before the run and during it."""
    return (
        f"Measured on {about['date']}, {about['machine']}, Python {about['python']}, commit"
        f" `{about['commit']}`, load before the run {about['load before']}; other processes used"
        f" {about.get('others', 'an unknown share')} of the machine."
    )
