"""`python -m bench`: measures, prints the table, saves it (`bench/results.py`).

Without names, everything is measured, and growth is simulated; with names (`python -m bench p1 p3`) only
those figures are measured, and nothing is saved. With `--against REVISION`, the farhand of that revision and
ours are measured in alternating rounds.

scale, scale-keep, scale-kept   simulates growth; also saves the costs and the tables of
                                docs/explanation/scale.md (from a commit only); repeats the saved simulation
profile, counts                 the functions in which trips, words and results spend their time; how many
                                functions and instructions a trip runs
targets, log                    counted targets of the event log and their values; how large a log grows
publish                         writes the saved results into the speed page and the README, from any machine
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
from bench.faults import FAULTS, describe_fault
from bench.machine import describe_machine
from bench.results import load_results, publish, replace_block, save_results, why_no_commit, why_not_published
from bench.server_process import configurations
from bench.simulate_scale import page_text, tables
from bench.table import Effort, Line, busiest, format_lines, judge
from tests.chaos.machine import Others

NUMBERS = tuple(f"p{number:02}" for number in range(1, 16))
QUICK = ("p01", "p03", "p04", "p05", "p06", "p07", "p09", "p12")
SMALL = Effort(rounds=3, seconds=1.0, scale=0.1)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m bench", description="Measures the figures we publish.")
    options.add_argument(
        "numbers", nargs="*", help=f"p1 … p15, {', '.join(COMMANDS)}; all figures if none is named"
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
    commands = [name for name in chosen.numbers if name in COMMANDS]
    for name in commands:
        COMMANDS[name](effort)
    names = [_name_of(number) for number in chosen.numbers if number not in COMMANDS]
    if chosen.against:
        print(_compare(chosen.against, names, effort))
        return
    if names or (chosen.quick and not commands):
        bench(names or list(QUICK), effort)
    elif not commands:
        bench_all(in_any_case=chosen.keep)


def bench(names: list[str], effort: Effort) -> tuple[list[Line], dict[str, str]]:
    """Measures and prints these figures."""
    about, others = describe_machine(), Others()
    begun = time.monotonic()
    if effort == SMALL:
        print(_describe_quick_run(names), flush=True)
    lines = measure(names, effort)
    about |= {
        "load client": busiest(lines),
        "others": f"{others.share():.0%}",
        "date": _date(),
        "took": f"{time.monotonic() - begun:.0f} s, {effort.rounds} rounds of {effort.seconds:g} s",
    }
    print(format_lines(lines))
    print("\n" + "\n".join(f"{name}: {value}" for name, value in about.items()))
    return lines, about


def bench_all(*, in_any_case: bool) -> None:
    """Measures everything and saves it. The figures are saved first, so a later failure cannot lose them."""
    lines, about = bench(list(NUMBERS), Effort())
    save_results(lines, about)
    why = None if in_any_case else why_not_published(about)
    if why is None:
        publish(lines, about)
        print("\nThe table is in docs/explanation/speed.md, the rest in bench/results.json and results.svg.")
    else:
        print(f"\nNothing was published: {why}. (--keep publishes anyway.)")
    try:
        save_results(lines, about, parts.measure(Effort()))
    except FAULTS as fault:
        print(f"The time by part could not be measured: {describe_fault(fault)}")
    print("\nSimulated growth, on PostgreSQL:\n", flush=True)
    simulate_growth(Effort())


def print_log_sizes(effort: Effort) -> None:
    print(logs.report_sizes(effort))


def print_targets(_: Effort) -> None:
    print(targets.report_targets())


def publish_saved(_: Effort) -> None:
    try:
        publish(*load_results())
    except FileNotFoundError:
        sys.exit("There are no results yet; `make bench` measures them.")


def print_profile(effort: Effort) -> None:
    print(parts.report_profile(effort))


def print_counts(effort: Effort) -> None:
    try:
        print(counts.report_counts(effort))
    except FAULTS as fault:
        sys.exit(f"The counts could not be measured: {describe_fault(fault)}")


def simulate_growth(_: Effort) -> costs.Costs | None:
    """Prints what the costs of this machine mean for many calls; None if they could not be measured."""
    try:
        measured = costs.measure_costs()
    except FAULTS as fault:
        print(f"The costs could not be measured: {describe_fault(fault)}")
        return None
    print(tables(measured))
    return measured


def simulate_and_save(effort: Effort) -> None:
    """Only from a commit, because the page names it."""
    about, others = describe_machine(), Others()
    if (why := why_no_commit(about)) is not None:
        sys.exit(f"Nothing was measured: {why}. Commit first; the costs are saved with their commit.")
    if (measured := simulate_growth(effort)) is None:
        return
    about |= {"database": costs.DATABASE, "date": _date(), "others": f"{others.share():.0%}"}
    costs.save_costs(measured, about)
    replace_block(costs.PAGE, page_text(measured, about))
    print("\nThe costs are in bench/costs.json, the tables in docs/explanation/scale.md.")


def simulate_saved(_: Effort) -> None:
    print(page_text(*costs.load_costs()))


def _compare(revision: str, names: list[str], effort: Effort) -> str:
    about = describe_machine()
    table = comparison.compare(revision, names or comparison.COMPARED, effort)
    return f"{table}\n\n{about['commit']}, {about['machine']}, load before {about['load before']}, {_date()}"


def _date() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _name_of(number: str) -> str:
    digits = number.lower().removeprefix("p")
    name = f"p{int(digits):02}" if digits.isdigit() else number
    if name not in NUMBERS:
        sys.exit(f"There is no figure '{number}'; there are {', '.join((*NUMBERS, *COMMANDS))}.")
    return name


def measure(names: list[str], effort: Effort) -> list[Line]:
    lines: list[Line] = []
    for name in names:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        lines += _measure_one(name, effort)
    return lines


def _measure_one(name: str, effort: Effort) -> list[Line]:
    """A figure that fails becomes a line that says so, and the others are measured."""
    configurations.clear()
    try:
        found = import_module(f"bench.{name}").measure(effort)
    except FAULTS as fault:
        return [Line(f"P{int(name[1:])}", "could not be measured", "", "–", None, describe_fault(fault))]
    on = "; ".join(dict.fromkeys(configurations))
    return [replace(judge(line), on=on) for line in (found if isinstance(found, list) else [found])]


def _describe_quick_run(names: list[str]) -> str:
    left_out = ", ".join(f"P{int(name[1:])}" for name in NUMBERS if name not in names)
    return (
        f"Quick run; left out are {left_out or 'none'}; rounds of {SMALL.seconds:g} s with a tenth of the"
        " calls, streams and words; the memory of parked calls in one round instead of three. Nothing is"
        " saved."
    )


COMMANDS: dict[str, Callable[[Effort], object]] = {
    "scale": simulate_growth,
    "scale-keep": simulate_and_save,
    "scale-kept": simulate_saved,
    "profile": print_profile,
    "counts": print_counts,
    "targets": print_targets,
    "log": print_log_sizes,
    "publish": publish_saved,
}


if __name__ == "__main__":
    main()
