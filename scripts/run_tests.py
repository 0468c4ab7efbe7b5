"""Runs pytest, and what failed of it once more, alone. Owns what counts as failed; must not know any test.

Tests with real processes, browsers and databases can starve on a machine that others use, too. What fails a
second time, with the machine to itself, is broken; what does not is named as unsteady, to be looked at. More
than a few failures are no accident: then nothing is run again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FEW = 3
FAILED = 1
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main(options: list[str]) -> int:
    LAST_FAILED.unlink(missing_ok=True)
    code = run(*options)
    names = failed()
    if code != FAILED or not 0 < len(names) <= FEW:
        return code
    print(f"tests: {len(names)} failed; run once more, alone:", *names, sep="\n  ", flush=True)
    code = run(*again(options))
    if code == 0:
        print("tests: UNSTEADY, failed once and passed alone:", *names, sep="\n  ", flush=True)
    return code


def run(*options: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *options], check=False).returncode


def failed() -> list[str]:
    return sorted(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []


def again(options: list[str]) -> list[str]:
    """The same tests on one worker; what lines they cover is added to what the others covered."""
    counted = ["--cov-append"] if "--cov" in options else []
    return [*options, "-n", "0", "--last-failed", "--last-failed-no-failures", "none", *counted]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
