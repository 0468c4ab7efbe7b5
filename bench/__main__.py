"""`python -m bench`: measures, prints the table, writes `bench/results.json` and draws `bench/results.svg`.

Without names, everything is measured; with names (`python -m bench p1 p3`) only those, and nothing is
written.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
import time
from importlib import import_module
from pathlib import Path

from bench import parts
from bench.machine import described
from bench.picture import draw
from bench.table import Effort, Line, printed

NUMBERS = ("p01", "p02", "p03", "p04", "p05", "p06", "p07", "p08", "p09", "p10", "p11", "p12")
QUICK = ("p01", "p03", "p04", "p05", "p06", "p07", "p09", "p12")
HOME = Path(__file__).parent


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m bench", description="Measures the figures we publish.")
    options.add_argument("numbers", nargs="*", help="p1 … p12; all of them if none is named")
    options.add_argument("--quick", action="store_true", help="shorter and smaller, in under two minutes")
    chosen = options.parse_args()
    names = [f"p{int(name.lower().removeprefix('p')):02}" for name in chosen.numbers]
    effort = Effort(rounds=3, seconds=1.0, scale=0.1) if chosen.quick else Effort()
    about = described()
    begun = time.monotonic()
    lines = measure(names or list(QUICK if chosen.quick else NUMBERS), effort)
    about |= {
        "configuration": "authentication hook, limits (those of one client raised), schema checks, journal"
        " and feed on; SQLite with synchronous=FULL where durable; one process and one core for the server,"
        " the load on the other",
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "took": f"{time.monotonic() - begun:.0f} s, {effort.rounds} rounds of {effort.seconds:g} s",
    }
    print(printed(lines))
    print("\n" + "\n".join(f"{name}: {value}" for name, value in about.items()))
    if not names and not chosen.quick:
        keep(lines, about, parts.measure(effort))


def measure(names: list[str], effort: Effort) -> list[Line]:
    lines: list[Line] = []
    for name in names:
        if not (HOME / f"{name}.py").exists():
            sys.exit(f"There is no figure '{name}'; there are {', '.join(NUMBERS)}.")
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        found = import_module(f"bench.{name}").measure(effort)
        lines += found if isinstance(found, list) else [found]
    return lines


def keep(lines: list[Line], about: dict[str, str], by_part: list[tuple[str, float]]) -> None:
    results = {"about": about, "lines": [line.plain() for line in lines], "parts": dict(by_part)}
    title = f"{about['date']}, commit {about['commit']}, {about['machine']}, Python {about['python']}"
    (HOME / "results.svg").write_text(draw(lines, by_part, title))
    (HOME / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
