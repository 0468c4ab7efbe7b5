"""Runs pytest, and what failed of it once more. Owns how pytest is asked for that; must not know any test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from second_attempt import with_second_attempt

LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def main(options: list[str]) -> int:
    LAST_FAILED.unlink(missing_ok=True)
    return with_second_attempt(lambda: run(*options), failed, lambda: run(*alone(options)))


def run(*options: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *options], check=False).returncode


def failed() -> list[str]:
    return sorted(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []


def alone(options: list[str]) -> list[str]:
    """The same tests on one worker; what lines they cover is added to what the others covered."""
    counted = ["--cov-append"] if "--cov" in options else []
    return [*options, "-n", "0", "--last-failed", "--last-failed-no-failures", "none", *counted]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
