"""`python -m bench`: measures, prints the table, writes `bench/results.json` and draws `bench/results.svg`.

Without names, everything is measured, and how it grows is played; with names (`python -m bench p1 p3`) only
those, and nothing is written. `scale` is how it grows; `scale-keep` keeps its costs, `scale-kept` plays them.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from bench import costs, parts
from bench.machine import described
from bench.picture import draw
from bench.simulate_scale import tables
from bench.table import Effort, Line, busiest, printed

NUMBERS = ("p01", "p02", "p03", "p04", "p05", "p06", "p07", "p08", "p09", "p10", "p11", "p12")
QUICK = ("p01", "p03", "p04", "p05", "p06", "p07", "p09", "p12")
HOME = Path(__file__).parent


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m bench", description="Measures the figures we publish.")
    options.add_argument("numbers", nargs="*", help="p1 … p12, scale; all if none is named")
    options.add_argument("--quick", action="store_true", help="shorter and smaller, in under two minutes")
    chosen = options.parse_args()
    played = [name for name in chosen.numbers if name in PLAYS]
    for name in played:
        PLAYS[name]()
    names = [_name_of(number) for number in chosen.numbers if number not in PLAYS]
    if not played or names:
        bench(names, is_quick=chosen.quick)


def bench(names: list[str], *, is_quick: bool) -> None:
    effort = Effort(rounds=3, seconds=1.0, scale=0.1) if is_quick else Effort()
    about = described()
    begun = time.monotonic()
    lines = measure(names or list(QUICK if is_quick else NUMBERS), effort)
    about |= {
        "configuration": "authentication hook, limits (those of one client raised), schema checks, journal"
        " and feed on; SQLite with synchronous=FULL where durable; one process and one core for the server,"
        " the load on the other",
        "load client": busiest(lines),
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "took": f"{time.monotonic() - begun:.0f} s, {effort.rounds} rounds of {effort.seconds:g} s",
    }
    print(printed(lines))
    print("\n" + "\n".join(f"{name}: {value}" for name, value in about.items()))
    if not names and not is_quick:
        keep(lines, about, parts.measure(effort))
        print("\nHow it grows, on PostgreSQL:\n")
        grow()


def grow() -> costs.Costs | None:
    """What the costs of this machine mean for many calls, or why that cannot be told here."""
    try:
        measured = costs.measured()
    except (FileNotFoundError, AssertionError) as fault:
        print(f"How it grows cannot be told: no PostgreSQL here ({fault}).")
        return None
    print(tables(measured))
    return measured


def grow_and_keep() -> None:
    about = described()
    if (measured := grow()) is not None:
        costs.keep(measured, about)


def grow_as_kept() -> None:
    print(tables(costs.kept()))


def _name_of(number: str) -> str:
    digits = number.lower().removeprefix("p")
    name = f"p{int(digits):02}" if digits.isdigit() else number
    if name not in NUMBERS:
        sys.exit(f"There is no figure '{number}'; there are {', '.join((*NUMBERS, *PLAYS))}.")
    return name


def measure(names: list[str], effort: Effort) -> list[Line]:
    lines: list[Line] = []
    for name in names:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        lines += _measured(name, effort)
    return lines


def _measured(name: str, effort: Effort) -> list[Line]:
    """One that fails is told as such, and the others are measured."""
    try:
        found = import_module(f"bench.{name}").measure(effort)
    except (RuntimeError, TimeoutError, subprocess.SubprocessError) as fault:
        number = f"P{int(name[1:])}"
        return [
            Line(number, "could not be measured", "", "–", None, f"{type(fault).__name__}: {fault}"[:300])
        ]
    return found if isinstance(found, list) else [found]


def keep(lines: list[Line], about: dict[str, str], by_part: list[tuple[str, float]]) -> None:
    results = {"about": about, "lines": [line.plain() for line in lines], "parts": dict(by_part)}
    title = f"{about['date']}, commit {about['commit']}, {about['machine']}, Python {about['python']}"
    (HOME / "results.svg").write_text(draw(lines, by_part, title))
    (HOME / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


PLAYS: dict[str, Callable[[], object]] = {
    "scale": grow,
    "scale-keep": grow_and_keep,
    "scale-kept": grow_as_kept,
}


if __name__ == "__main__":
    main()
