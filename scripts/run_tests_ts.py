"""Runs vitest, and the files in which something failed once more. Owns how vitest is asked for that; must not
know any test.

A file as a whole: its tests share a server, and one of them alone would be another test.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from second_attempt import with_second_attempt

VITEST = "node_modules/.bin/vitest"


def main(options: list[str]) -> int:
    """In the folder of the vitest that is meant."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")

        def run() -> int:
            return vitest("--reporter=json", f"--outputFile.json={report}", *options)

        def run_again() -> int:
            # its tests still run together, as they are written to; no other file does
            return vitest("--no-file-parallelism", *options, *{file for file, _ in failed_in(report)})

        return with_second_attempt(run, lambda: [f"{file} > {name}" for file, name in failed_in(report)], run_again)


def vitest(*options: str) -> int:
    return subprocess.run([VITEST, "run", "--reporter=dot", *options], check=False).returncode


def failed_in(report: Path) -> list[tuple[str, str]]:
    """File and name of each test; a file that could not be read counts as one."""
    if not report.exists():
        return []
    found: list[tuple[str, str]] = []
    for file in json.loads(report.read_text())["testResults"]:
        names = [each["fullName"] for each in file["assertionResults"] if each["status"] == "failed"]
        if file["status"] == "failed":
            names = names or ["the whole file"]
        found += [(file["name"], name) for name in names]
    return sorted(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
