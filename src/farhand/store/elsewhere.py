"""Which topics are watched in other processes, as those have said.

A process tells when a watch begins and when it ends, and now and then all of them again; between that it only
says that it is there. What a process that is not heard of any more has said is not believed.
"""

from __future__ import annotations

import asyncio

HERE_SEC = 6.0
"""For how long a process is believed to be there: it says so every two seconds."""
TOLD_SEC = 90.0
"""For how long it is believed that a topic is watched: that is told again three times within it."""
AT_MOST = 100_000
"""Beyond so many topics of one process, those that are not told any more are forgotten."""


class Elsewhere:
    def __init__(self) -> None:
        self._here: dict[str, float] = {}
        self._topics: dict[str, dict[str, float]] = {}

    def is_here(self, who: str) -> None:
        """This process was heard of."""
        now = _now()
        self._here[who] = now + HERE_SEC
        for gone in [each for each, until in self._here.items() if until + TOLD_SEC < now]:
            del self._here[gone]
            self._topics.pop(gone, None)

    def begun(self, who: str, topic: str) -> None:
        now = _now()
        topics = self._topics.setdefault(who, {})
        if len(topics) > AT_MOST:
            self._topics[who] = topics = {each: until for each, until in topics.items() if until > now}
        topics[topic] = now + TOLD_SEC

    def ended(self, who: str, topic: str) -> None:
        self._topics.get(who, {}).pop(topic, None)

    def has(self, topic: str) -> bool:
        """Whether somebody watches it in a process that is there."""
        if not self._topics:
            return False
        now = _now()
        return any(
            topics.get(topic, 0.0) > now and self._here.get(who, 0.0) > now
            for who, topics in self._topics.items()
        )


def _now() -> float:
    return asyncio.get_running_loop().time()
