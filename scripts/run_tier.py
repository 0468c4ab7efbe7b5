"""Runs one tier of checks and tests: `quick` while working, `most` before a commit, `test` for everything.

Owns which parts a tier has and which of them run at the same time; a part is a target of the Makefile. Parts
that mostly wait for browsers, deadlines or downloads run together with those that compute. The first lane
prints immediately, the others when one of their parts ends; times and retried tests come last.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMES = ROOT / ".cache" / "tier-times.json"
"""The duration of each tier when it last passed, in seconds."""

# stages follow each other; lanes of a stage run at the same time, the parts of a lane one after the other
TIERS: dict[str, list[list[list[str]]]] = {
    "quick": [[["tests-quick-unit"], ["tests-quick-stream"], ["tests-quick-faces"]]],
    "most": [[["check-python"], ["check-node", "ui"]], [["tests-most"], ["tests-ts-most"]]],
    "test": [
        [["check-python"], ["check-node", "ui"]],
        # the last two lanes often wait for downloads; the first uses every processor to the end
        [
            ["tests-covered", "tests"],
            ["tests-ts", "tests-copilotkit"],
            ["tests-frameworks", "tests-walk"],
        ],
        # storms wait for restarts half of the time: one process fits beside them, and more would starve them
        [["tests-chaos"], ["test-lowest"]],
    ],
}


def main(tier: str) -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        retried = Path(folder, "retried.txt")
        took = _run_stages(TIERS[tier], {**os.environ, "RETRIED": str(retried)})
        names = retried.read_text().split() if retried.exists() else []
    total = round(time.monotonic() - began)
    failed = [part for part, (code, _) in took.items() if code]
    for part, (code, seconds) in took.items():
        print(f"{part:18}{seconds:5.0f} s{'  FAILED' if code else ''}")
    print(f"make {tier}: {'failed: ' + ', '.join(failed) if failed else 'passed'} in {total} s")
    if names:
        print(f"retried: {', '.join(names)}")
    if not failed:
        _remember(tier, total)
    return 1 if failed else 0


def _run_stages(stages: list[list[list[str]]], environment: dict[str, str]) -> dict[str, tuple[int, float]]:
    """Code and seconds of each part that was started. After a failure no further stage begins."""
    took: dict[str, tuple[int, float]] = {}
    for lanes in stages:
        with ThreadPoolExecutor(len(lanes)) as pool:
            for number, lane in enumerate(lanes):
                pool.submit(_run_lane, lane, environment, took, is_live=number == 0)
        if any(code for code, _ in took.values()):
            break
    return took


def _run_lane(
    lane: list[str], environment: dict[str, str], took: dict[str, tuple[int, float]], *, is_live: bool
) -> None:
    for part in lane:
        began = time.monotonic()
        with tempfile.TemporaryFile("w+") as output:
            # the make from the caller's PATH
            ended = subprocess.run(
                ["make", "--no-print-directory", part],  # noqa: S607
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=None if is_live else output,
                stderr=None if is_live else subprocess.STDOUT,
                check=False,
            )
            took[part] = ended.returncode, time.monotonic() - began
            output.seek(0)
            print(output.read(), end="", flush=True)
        if ended.returncode:
            return


def _remember(tier: str, seconds: int) -> None:
    times: dict[str, int] = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    TIMES.parent.mkdir(exist_ok=True)
    TIMES.write_text(json.dumps({**times, tier: seconds}))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
