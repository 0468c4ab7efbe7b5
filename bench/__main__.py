"""`python -m bench`: measures, prints the table, keeps it (`bench/results.py`).

Without names, everything is measured, and how it grows is played; with names (`python -m bench p1 p3`) only
those, and nothing is written. With `--against REVISION` the farhand of that revision and ours are measured in
turns.

scale, scale-keep, scale-kept   how it grows; the same, written down from a commit alone (its costs, and the
                                tables of docs/explanation/scale.md); the kept one played again
profile, counts                 in which functions trips, words and results spend their time; how many
                                functions and instructions a trip runs
wanted, log                     what one log is to be beside what it is; how large a log grows
publish                         writes the kept results into the speed page and the README, from any machine
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

from bench import comparison, costs, counts, logs, parts, targets
from bench.faults import FAULTS, in_words
from bench.results import keep, kept, publish, put, why_no_commit, why_not_published
from bench.machine import described
from bench.server_process import configurations
from bench.simulate_scale import tables, told
from bench.table import Effort, Line, busiest, judged, printed
from tests.chaos.machine import Others

NUMBERS = tuple(f"p{number:02}" for number in range(1, 16))
QUICK = ("p01", "p03", "p04", "p05", "p06", "p07", "p09", "p12")
SMALL = Effort(rounds=3, seconds=1.0, scale=0.1)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m bench", description="Measures the figures we publish.")
    options.add_argument(
        "numbers", nargs="*", help=f"p1 … p15, {', '.join(PLAYS)}; all figures if none is named"
    )
    options.add_argument("--quick", action="store_true", help="shorter and smaller, in under two minutes")
    options.add_argument(
        "--keep", action="store_true", help="publish the figures even from a busy machine or a changed tree"
    )
    options.add_argument(
        "--against", metavar="REVISION", help="compare with the farhand of this revision, in turns"
    )
    chosen = options.parse_args()
    effort = SMALL if chosen.quick else Effort()
    played = [name for name in chosen.numbers if name in PLAYS]
    for name in played:
        PLAYS[name](effort)
    names = [_name_of(number) for number in chosen.numbers if number not in PLAYS]
    if chosen.against:
        print(_compared(chosen.against, names, effort))
        return
    if names or (chosen.quick and not played):
        bench(names or list(QUICK), effort)
    elif not played:
        bench_all(in_any_case=chosen.keep)


def bench(names: list[str], effort: Effort) -> tuple[list[Line], dict[str, str]]:
    """These figures, measured and printed."""
    about, others = described(), Others()
    begun = time.monotonic()
    if effort == SMALL:
        print(_what_is_small(names), flush=True)
    lines = measure(names, effort)
    about |= {
        "load client": busiest(lines),
        "others": f"{others.share():.0%}",
        "date": _date(),
        "took": f"{time.monotonic() - begun:.0f} s, {effort.rounds} rounds of {effort.seconds:g} s",
    }
    print(printed(lines))
    print("\n" + "\n".join(f"{name}: {value}" for name, value in about.items()))
    return lines, about


def bench_all(*, in_any_case: bool) -> None:
    """Everything, and what it leaves; nothing that comes after the figures can lose them."""
    lines, about = bench(list(NUMBERS), Effort())
    keep(lines, about)
    why = None if in_any_case else why_not_published(about)
    if why is None:
        publish(lines, about)
        print("\nThe table is in docs/explanation/speed.md, the rest in bench/results.json and results.svg.")
    else:
        print(f"\nNothing was published: {why}. (--keep publishes anyway.)")
    try:
        keep(lines, about, parts.measure(Effort()))
    except FAULTS as fault:
        print(f"The time by part could not be measured: {in_words(fault)}")
    print("\nHow it grows, on PostgreSQL:\n", flush=True)
    grow(Effort())


def weigh(effort: Effort) -> None:
    print(logs.told(effort))


def want(_: Effort) -> None:
    print(targets.told())


def publish_kept(_: Effort) -> None:
    try:
        publish(*kept())
    except FileNotFoundError:
        sys.exit("There are no results yet; `make bench` measures them.")


def profile(effort: Effort) -> None:
    print(parts.profiled(effort))


def count(effort: Effort) -> None:
    try:
        print(counts.counted(effort))
    except FAULTS as fault:
        sys.exit(f"The counts cannot be told: {in_words(fault)}")


def grow(_: Effort) -> costs.Costs | None:
    """What the costs of this machine mean for many calls, or why that cannot be told here."""
    try:
        measured = costs.measured()
    except FAULTS as fault:
        print(f"How it grows cannot be told: {in_words(fault)}")
        return None
    print(tables(measured))
    return measured


def grow_and_keep(effort: Effort) -> None:
    """Only from a commit: the page names it."""
    about, others = described(), Others()
    if (why := why_no_commit(about)) is not None:
        sys.exit(f"Nothing was measured: {why}. Commit first; the costs are kept with their commit.")
    if (measured := grow(effort)) is None:
        return
    about |= {"database": costs.DATABASE, "date": _date(), "others": f"{others.share():.0%}"}
    costs.keep(measured, about)
    put(costs.PAGE, told(measured, about))
    print("\nThe costs are in bench/costs.json, the tables in docs/explanation/scale.md.")


def grow_as_kept(_: Effort) -> None:
    print(told(*costs.kept()))


def _compared(revision: str, names: list[str], effort: Effort) -> str:
    about = described()
    table = comparison.compare(revision, names or comparison.COMPARED, effort)
    return f"{table}\n\n{about['commit']}, {about['machine']}, load before {about['load before']}, {_date()}"


def _date() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


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
    configurations.clear()
    try:
        found = import_module(f"bench.{name}").measure(effort)
    except FAULTS as fault:
        return [Line(f"P{int(name[1:])}", "could not be measured", "", "–", None, in_words(fault))]
    on = "; ".join(dict.fromkeys(configurations))
    return [replace(judged(line), on=on) for line in (found if isinstance(found, list) else [found])]


def _what_is_small(names: list[str]) -> str:
    left_out = ", ".join(f"P{int(name[1:])}" for name in NUMBERS if name not in names)
    return (
        f"A quick look: left out are {left_out or 'none'}; rounds of {SMALL.seconds:g} s, and a tenth of the"
        " calls, streams and words of a whole run, the memory of parked calls in one round instead of three."
        " Nothing is written."
    )


PLAYS: dict[str, Callable[[Effort], object]] = {
    "scale": grow,
    "scale-keep": grow_and_keep,
    "scale-kept": grow_as_kept,
    "profile": profile,
    "counts": count,
    "wanted": want,
    "log": weigh,
    "publish": publish_kept,
}


if __name__ == "__main__":
    main()
