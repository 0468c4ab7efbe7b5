"""Which runs are read in other processes, as those say: a held run that nobody reads need not be held.

Each process tells what is read there when that begins and ends, and now and then all of it again. What a
process said that was not heard of for a while is not believed.
"""

from __future__ import annotations

import asyncio

from farhand.clock import SystemClock
from farhand.eventlog.pubsub import Broker, unread_topic

READING = "reading"
LOOK_SEC = 1.0
TOLD_SEC = 6.0
"""For so long it is believed that a run is read; it is told again three times within it."""
AT_ONCE = 100
"""Runs in one notification."""


class RemoteReaders:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._name = SystemClock().fresh("rdr")
        self._until: dict[str, dict[str, float]] = {}
        """For each process: until when its runs are believed to be read."""
        broker.is_read_elsewhere = self.has

    def has(self, run_id: str) -> bool:
        if not self._until:
            return False
        now = _now()
        return any(runs.get(run_id, 0.0) > now for runs in self._until.values())

    def hear(self, item: str) -> None:
        who, *runs = item.split("\0")
        if who == self._name:
            return
        now = _now()
        known = self._until.setdefault(who, {})
        for run_id in [run_id for run_id, until in known.items() if until <= now]:
            del known[run_id]
        for name in runs:
            if name.startswith("-"):
                known.pop(name[1:], None)
                self._broker.publish(unread_topic(name[1:]), None)
            else:
                known[name] = now + TOLD_SEC

    async def serve(self) -> None:
        told: set[str] = set()
        again = 0
        while True:
            read = set(self._broker.read_here())
            again = (again + 1) % 2
            begun = read if again == 0 else read - told
            self._tell([*begun, *(f"-{run_id}" for run_id in told - read)])
            told = read
            await asyncio.sleep(LOOK_SEC)

    def _tell(self, runs: list[str]) -> None:
        for start in range(0, len(runs), AT_ONCE):
            self._broker.notify_others(READING, "\0".join([self._name, *runs[start : start + AT_ONCE]]))


def _now() -> float:
    return asyncio.get_running_loop().time()
