"""Compares the farhand of another revision with ours, in alternating rounds:
`python -m bench --against 377898a p1 p3`.

The other revision's sources are in a worktree that precedes the installed ones; libraries, references and
load are the same for both. So only farhand differs, on a machine in the same state. A revision that does not
support live chats gets an app that does.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from statistics import median

from bench.faults import FAULTS, describe_fault
from bench.machine import CACHE, ROOT
from bench.server_process import LENT, measured_in
from bench.table import Effort, Line

COMPARED = ("p01", "p02", "p03", "p04", "p06", "p07", "p09", "p10", "p11", "p13", "p14")
_NUMBER = re.compile(r"-?[\d,]*\.?\d+")


@dataclass
class _Both:
    """One line of a figure, with the values of each round."""

    line: Line
    before: list[float]
    now: list[float]
    spent_before: list[float]
    spent_now: list[float]


def compare(revision: str, names: Sequence[str], effort: Effort) -> str:
    """The table of these figures; both revisions are measured for the same number of rounds."""
    once = replace(effort, rounds=1)
    with worktree(revision) as tree:
        rows = [row for name in names for row in _rows(name, tree, once, effort.rounds)]
    head = (
        "",
        "what",
        f"at {revision}",
        "now",
        "now against then",
        "processor time of farhand, then and now",
    )
    return _markdown([head, *rows])


def _rows(name: str, tree: Path, once: Effort, rounds: int) -> list[tuple[str, ...]]:
    print(f"comparing {name} …", file=sys.stderr, flush=True)
    found: dict[str, _Both] = {}
    try:
        for number in range(rounds):
            # the order alternates, since the first one finds the machine as the other left it
            sides = [(tree, True), (ROOT, False)]
            for place, is_before in sides if number % 2 == 0 else reversed(sides):
                _measure(name, place, once, found, is_before=is_before)
    except FAULTS as fault:
        return [(f"P{int(name[1:])}", "could not be compared", "–", "–", "–", describe_fault(fault))]
    return [_row(each) for each in found.values()]


def _measure(name: str, tree: Path, once: Effort, found: dict[str, _Both], *, is_before: bool) -> None:
    with measured_in(tree):
        lines = import_module(f"bench.{name}").measure(once)
    for line in lines if isinstance(lines, list) else [lines]:
        _note(found, line, is_before=is_before)


def _note(found: dict[str, _Both], line: Line, *, is_before: bool) -> None:
    both = found.setdefault(line.what, _Both(line, [], [], [], []))
    number = _NUMBER.search(line.measured)
    farhand = line.values.get("farhand", {})
    # for a figure that is not a time, such as memory, `each` is in bytes
    spent = farhand["each"] if "cpu" in farhand else None
    if number is not None:
        (both.before if is_before else both.now).append(float(number[0].replace(",", "")))
    if spent is not None:
        (both.spent_before if is_before else both.spent_now).append(spent)


def _row(both: _Both) -> tuple[str, ...]:
    unit = _NUMBER.sub("", both.line.measured, count=1).strip()
    cells = [_format(both.before, unit), _format(both.now, unit), _ratio(both.before, both.now)]
    spent = _ratio(both.spent_before, both.spent_now)
    if both.spent_before and both.spent_now:
        then, now = median(both.spent_before), median(both.spent_now)
        spent = f"{then * 1e6:,.0f} → {now * 1e6:,.0f} µs ({spent})"
    return (both.line.number, both.line.what, *cells, spent)


def _format(values: list[float], unit: str) -> str:
    if not values:
        return "–"
    return f"{median(values):g} {unit} ({', '.join(f'{value:g}' for value in values)})"


def _ratio(before: list[float], now: list[float]) -> str:
    return f"{median(now) / median(before):.2f}x" if before and now and median(before) else "–"


@contextmanager
def worktree(revision: str) -> Iterator[Path]:
    """The tree of this revision. It is kept, since creating it again costs more than the disk space."""
    found = subprocess.run(
        ["git", "rev-parse", "--short=12", f"{revision}^{{commit}}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        raise LookupError(f"there is no revision '{revision}' here")
    tree = CACHE / "revisions" / found.stdout.strip()
    if not (tree / "src").exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["git", "worktree", "add", "--detach", "--force", str(tree), revision],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
    if not (tree / "bench/words.py").exists():
        shutil.copy(ROOT / "bench/words.py", tree / "bench/words.py")
        shutil.copy(ROOT / "bench/apps/older.py", tree / LENT)
    yield tree


def _markdown(rows: Sequence[tuple[str, ...]]) -> str:
    head, *others = rows
    lines = [head, tuple("---" for _ in head), *others]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
