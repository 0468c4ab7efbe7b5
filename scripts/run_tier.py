"""Runs one tier of checks and tests: `quick` while working, `most` before a commit, `test` for everything.

Owns which parts a tier has and which of them run at the same time; a part is a target of the Makefile. Parts
that mostly wait for browsers, deadlines or downloads run together with those that compute, and the longest
lane has enough processes to keep all processors busy when the others have ended. The first lane
prints immediately, the others when one of their parts ends; times and retried tests come last. Beside the
time that passed stands what the processors computed, and what a shared machine gave to others meanwhile.
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
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TIMES = ROOT / ".cache" / "tier-times.json"
"""The duration of each tier when it last passed, in seconds."""
PROCESSORS = Path("/proc/stat")
"""Where Linux tells what the processors did, in ticks."""
STOLEN = 8
"""The field of its first line that counts what a virtual machine wanted and others got."""


class Used(NamedTuple):
    """What a part came to."""

    code: int
    seconds: float
    computed: float
    """Seconds of all processors, with those of every process that the part waited for."""


# stages follow each other; lanes of a stage run at the same time, the parts of a lane one after the other
TIERS: dict[str, list[list[list[str]]]] = {
    "quick": [[["tests-quick-unit"], ["tests-quick-stream"], ["tests-quick-faces"]]],
    "most": [[["check-python"], ["check-node", "ui"]], [["tests-most"], ["tests-ts-most"]]],
    "test": [
        [["check-python"], ["check-node", "ui"]],
        # the second lane ends first; the other has more processes than processors, and uses them to the end
        [["tests-covered", "tests"], ["tests-ts", "tests-frameworks", "tests-copilotkit"]],
        # storms wait for restarts half of the time: one process fits beside them to the end, and more would
        # starve them
        [["tests-chaos"], ["test-lowest", "tests-walk"]],
    ],
}


def main(tier: str) -> int:
    began, stolen = time.monotonic(), _stolen()
    with tempfile.TemporaryDirectory() as folder:
        retried = Path(folder, "retried.txt")
        took = _run_stages(TIERS[tier], {**os.environ, "RETRIED": str(retried)})
        names = retried.read_text().split() if retried.exists() else []
    total = round(time.monotonic() - began)
    failed = [part for part, used in took.items() if used.code]
    for part, used in took.items():
        times = f"{used.seconds:5.0f} s{used.computed:7.0f} s computed"
        print(f"{part:18}{times}{'  FAILED' if used.code else ''}")
    told = f"processors used {sum(used.computed for used in took.values()):,.0f} s"
    if stolen is not None:
        told += f"; {(_stolen() or 0) - stolen:,.0f} s were taken by other machines"
    print(f"make {tier}: {'failed: ' + ', '.join(failed) if failed else 'passed'} in {total} s ({told})")
    if names:
        print(f"retried: {', '.join(names)}")
    if not failed:
        _remember(tier, total)
    return 1 if failed else 0


def _run_stages(stages: list[list[list[str]]], environment: dict[str, str]) -> dict[str, Used]:
    """What each part that was started came to. After a failure no further stage begins."""
    took: dict[str, Used] = {}
    for lanes in stages:
        with ThreadPoolExecutor(len(lanes)) as pool:
            for number, lane in enumerate(lanes):
                pool.submit(_run_lane, lane, environment, took, is_live=number == 0)
        if any(used.code for used in took.values()):
            break
    return took


def _run_lane(lane: list[str], environment: dict[str, str], took: dict[str, Used], *, is_live: bool) -> None:
    for part in lane:
        with tempfile.TemporaryFile("w+") as output:
            took[part] = _run_part(part, environment, output=None if is_live else output.fileno())
            output.seek(0)
            print(output.read(), end="", flush=True)
        if took[part].code:
            return


def _run_part(part: str, environment: dict[str, str], *, output: int | None) -> Used:
    began = time.monotonic()
    # the make from the caller's PATH
    process = subprocess.Popen(
        ["make", "--no-print-directory", part],  # noqa: S607
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
    )
    # of this process alone: other lanes run meanwhile
    _, status, computed = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Used(process.returncode, time.monotonic() - began, computed.ru_utime + computed.ru_stime)


def _stolen() -> float | None:
    """Seconds that our processors had work and were given to others; None where nobody counts them."""
    if not PROCESSORS.exists():
        return None
    fields = PROCESSORS.read_text().partition("\n")[0].split()
    return int(fields[STOLEN]) / os.sysconf("SC_CLK_TCK") if len(fields) > STOLEN else None


def _remember(tier: str, seconds: int) -> None:
    times: dict[str, int] = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    TIMES.parent.mkdir(exist_ok=True)
    TIMES.write_text(json.dumps({**times, tier: seconds}))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
