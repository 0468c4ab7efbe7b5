"""Runs pytest, and runs the failed tests again if all of them are marked `browser` or `chaos`.

Those use real browsers, processes and databases, which can starve on a shared machine. Any other failure
fails the run, and so does a fault storm unless it noted under `STARVED` in pytest's cache that it could not
finish: each storm is different, so a second one says nothing about the violation that the first one found.
The names of tests that passed the second time are printed in the last line and appended to the file in the
environment variable `RETRIED`, if it is set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FEW = 3
"""With more failures than this, nothing is retried."""
FAILED = 1
NONE_COLLECTED = 5
MAY_BE_RETRIED = "browser or (chaos and not storm)"
STARVED = "farhand/starved"
"""Names of storms that ended early without a violation, as a list."""


def main(*options: str) -> int:
    with tempfile.TemporaryDirectory() as cache:
        pytest = [sys.executable, "-m", "pytest", *options, "-o", f"cache_dir={cache}"]
        code = _run(*pytest)
        failed = _names(Path(cache), "cache/lastfailed")
        judged = sorted(failed - _names(Path(cache), STARVED))
        if code != FAILED or not 0 < len(failed) <= FEW or not _may_be_retried(pytest, judged):
            return code
        print(f"tests: {len(failed)} failed; running again, alone:", *sorted(failed), sep="\n  ", flush=True)
        # their coverage is added to that of the others
        covered = ["--cov-append"] if any(option.startswith("--cov") for option in options) else []
        code = _run(*pytest, "-n", "0", "--last-failed", "--last-failed-no-failures", "none", *covered)
    if code == 0:
        _note(sorted(failed))
    return code


def _run(*command: str) -> int:
    return subprocess.run(command, check=False).returncode


def _names(cache: Path, key: str) -> set[str]:
    found = cache / "v" / key
    return set(json.loads(found.read_text())) if found.exists() else set()


def _may_be_retried(pytest: list[str], failed: list[str]) -> bool:
    """True if no failed test remains when those that may be retried are deselected."""
    if not failed:
        return True
    options = [option for option in pytest if not Path(option).is_dir()]
    others = [*options, "-n", "0", "--no-cov", "--collect-only", "-m", f"not ({MAY_BE_RETRIED})", *failed]
    return subprocess.run(others, check=False, capture_output=True).returncode == NONE_COLLECTED


def _note(names: list[str]) -> None:
    if os.environ.get("RETRIED"):
        with Path(os.environ["RETRIED"]).open("a") as file:
            file.writelines(f"{name}\n" for name in names)
    print("tests: retried:", ", ".join(names), flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
