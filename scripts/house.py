"""Prints figures about the readability of the source, each next to its target.

Owns which figures those are. Uses the counters of `bench` for a round trip; it changes nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp

from bench.server_process import run_alone, scratch
from scripts import check_names, check_private
from scripts.run_tier import TIMES

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "farhand"
SMALL = 60
FACE_FILES = {"shapes", "decode", "encode", "routes"}
"""A face that is a package has these four, however small; the smallest faces are modules."""


def main() -> None:
    rows = [("", "is", "wanted"), ("---", "---", "---"), *_rows()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")
    if "--list" in sys.argv:
        print("\nsmall modules with one importer:")
        print(*(f"  {line}" for line in small_modules(SOURCES)), sep="\n")


def _rows() -> Iterator[tuple[str, str, str]]:
    files = sorted(SOURCES.rglob("*.py"))
    lines = sum(_lines(file) for file in files)
    postgres = list((SOURCES / "store" / "postgres").glob("*.py"))
    yield "source files", f"{len(files)}", "≤ 230"
    yield "source lines", f"{lines:,}", "≤ 33,000"
    yield f"modules under {SMALL} lines with one importer", f"{len(small_modules(SOURCES))}", "≤ 15"
    yield "files of store/postgres", f"{len(postgres)}", "≤ 10"
    yield "public names that mean two or more things", f"{len(check_names.shared_names(ROOT))}", "≤ 10"
    yield "private parts of other libraries", f"{len(check_private.check(ROOT))}", "0"
    with scratch() as folder:
        trip = run_alone("bench.targets", f"sqlite:///{folder}/house.db")
    yield "modules entered by one held trip", f"{trip['modules']:.0f}", "≤ 50"
    yield "module switches of one held trip", f"{trip['switches']:.0f}", "≤ 250"
    yield from _tiers()


def small_modules(sources: Path) -> list[str]:
    """One line per module that is too small for its own file, and the module that it should be part of."""
    graph = grimp.build_graph("farhand", cache_dir=None)
    found = []
    for module in sorted(graph.modules):
        if module.split(".")[1:2] == ["faces"] and module.rpartition(".")[2] in FACE_FILES:
            continue
        file = sources.parent / Path(*module.split(".")).with_suffix(".py")
        importers = graph.find_modules_that_directly_import(module)
        if file.exists() and _lines(file) < SMALL and len(importers) == 1:
            found.append(f"{module}: {_lines(file)} lines, only for {min(importers)}")
    return found


def _tiers() -> Iterator[tuple[str, str, str]]:
    times: dict[str, int] = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    for tier, wanted in {"quick": "≤ 60 s", "most": "≤ 600 s", "test": "≤ 1500 s"}.items():
        yield f"make {tier}", f"{times[tier]} s" if tier in times else "not measured", wanted


def _lines(file: Path) -> int:
    return len(file.read_text().splitlines())


if __name__ == "__main__":
    main()
