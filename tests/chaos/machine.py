"""Measures how much processor time other programs used: distinguishes a late promise from a broken one."""

from __future__ import annotations

import os
import time
from pathlib import Path


class Others:
    """From its making on: the share of all processors that went to programs other than this test's own."""

    def __init__(self) -> None:
        self._began, self._all, self._own = time.monotonic(), _busy(), _own()

    def share(self) -> float:
        ticks = (time.monotonic() - self._began) * os.sysconf("SC_CLK_TCK") * (os.cpu_count() or 1)
        return max(0.0, (_busy() - self._all) - (_own() - self._own)) / max(1.0, ticks)


def _busy() -> int:
    """Ticks in which a processor worked, or was kept from it by another machine on the same one."""
    user, nice, system, _idle, _waiting, irq, softirq, steal, *_ = map(
        int, Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
    )
    return user + nice + system + irq + softirq + steal


def _own() -> int:
    """Ticks of this process, of all that it started, and of those among them that have ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            # it has ended meanwhile
            continue
        pid = int(status.parent.name)
        parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    return sum(count for pid, count in ticks.items() if _is_ours(pid, parents))


def _is_ours(pid: int, parents: dict[int, int]) -> bool:
    while pid > 1 and pid != os.getpid():
        pid = parents.get(pid, 0)
    return pid == os.getpid()
