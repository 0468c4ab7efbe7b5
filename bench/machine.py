"""Reads cores, processor time and memory from the system. It knows no server and no figure."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".cache" / "bench"


def cores() -> tuple[int, int]:
    """The core of the server and the core of the load; the same if there is only one."""
    free = sorted(os.sched_getaffinity(0))
    return free[-1], free[0]


def pin(core: int) -> None:
    os.sched_setaffinity(0, {core})


def cpu_of(pid: int, *, thread: int | None = None) -> float:
    """Seconds of processor time that all threads of this process have used, or this one of them."""
    if thread is not None:
        return int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0]) / 1e9
    # the clock id of another process, as clock_getcpuclockid(3) computes it: ticks of 10 ms are too coarse
    return time.clock_gettime((~pid << 3) | 2)


def cpu_of_children(pid: int) -> float:
    """Of all running children of this process; one that ends between two readings is not counted."""
    used = 0.0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):
            used += cpu_of(int(child))
    return used


def own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Meter:
    """Processor time and wall time between two readings; `database` is the parent of its processes."""

    def __init__(self, pids: Iterable[int], database: int | None = None) -> None:
        self._pids = list(pids)
        self._database = database
        self._before = self._look()

    def read(self) -> dict[str, float]:
        return {name: value - self._before[name] for name, value in self._look().items()}

    def _look(self) -> dict[str, float]:
        served = sum(cpu_of(pid) for pid in self._pids)
        look = {"seconds": time.perf_counter(), "client": own_cpu(), "cpu": served}
        return look if self._database is None else look | {"database": cpu_of_children(self._database)}


def memory_of(pid: int) -> int:
    """Bytes of memory that this process holds."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"process {pid} has no memory")


def allow_many_files() -> int:
    """How many files, and so connections, this process may open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def describe_machine() -> dict[str, str]:
    return {
        "commit": _commit(),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "python": f"{platform.python_version()} on {platform.system()} {platform.release()}",
        "load before": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def _commit() -> str:
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    for line in file.read_text().splitlines() if file.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
