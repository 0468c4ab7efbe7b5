"""Runs pytest or vitest, and once more what failed. Owns what counts as failed; must not know any test.

Tests with real processes, browsers and databases can starve on a machine that others use, too. What fails a
second time, with the machine to itself, is broken; what does not is named as unsteady, to be looked at. More
than a few failures are no accident: then nothing is run again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

FEW = 3
FAILED = 1
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
VITEST = "node_modules/.bin/vitest"


def main(runner: str, *options: str) -> int:
    return {"pytest": run_pytest, "vitest": run_vitest}[runner](*options)


def run_pytest(*options: str) -> int:
    """Again: the same tests on one worker; what lines they cover is added to what the others covered."""
    pytest = [sys.executable, "-m", "pytest", *options]
    again = ["-n", "0", "--last-failed", "--last-failed-no-failures", "none"]
    counted = ["--cov-append"] if "--cov" in options else []
    LAST_FAILED.unlink(missing_ok=True)
    return _attempts(lambda: _run(*pytest), _failed_in_pytest, lambda: _run(*pytest, *again, *counted))


def run_vitest(*options: str) -> int:
    """Again: the whole files, no two at a time. The tests of a file share a server, so that one of them alone
    would be another test."""
    vitest = [VITEST, "run", "--reporter=dot", *options]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        told = ["--reporter=json", f"--outputFile.json={report}"]
        return _attempts(
            lambda: _run(*vitest, *told),
            lambda: [" > ".join(each) for each in _failed_in_vitest(report)],
            lambda: _run(*vitest, "--no-file-parallelism", *{file for file, _ in _failed_in_vitest(report)}),
        )


def _attempts(run: Callable[[], int], failed: Callable[[], list[str]], again: Callable[[], int]) -> int:
    code = run()
    names = failed()
    if code != FAILED or not 0 < len(names) <= FEW:
        return code
    print(f"tests: {len(names)} failed; run once more, alone:", *names, sep="\n  ", flush=True)
    code = again()
    if code == 0:
        print("tests: UNSTEADY, failed once and passed alone:", *names, sep="\n  ", flush=True)
    return code


def _run(*command: str) -> int:
    return subprocess.run(command, check=False).returncode


def _failed_in_pytest() -> list[str]:
    return sorted(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []


def _failed_in_vitest(report: Path) -> list[tuple[str, str]]:
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
    sys.exit(main(*sys.argv[1:]))
