"""Which clients have their stream, and since when the others have not. Known to this process alone:
after a restart everybody is absent from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TypeAlias

from farhand.clients.inbox import Inbox
from farhand.core.principal import Owner

Key: TypeAlias = tuple[Owner, str]


class Presence:
    def __init__(self) -> None:
        self.changed = asyncio.Event()
        """Set whenever somebody became absent."""
        self._here: dict[Key, Inbox] = {}
        self._absent_since: dict[Key, float] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._here

    def arrive(self, key: Key, inbox: Inbox) -> None:
        """The newest stream wins: the one before ends."""
        before = self._here.get(key)
        if before is not None:
            before.supersede()
        self._here[key] = inbox
        self._absent_since.pop(key, None)

    def leave(self, key: Key, inbox: Inbox) -> bool:
        """True if nobody listens any more; one that was superseded leaves nobody behind."""
        if self._here.get(key) is not inbox:
            return False
        del self._here[key]
        return True

    def miss(self, key: Key) -> None:
        """Absent from now on, unless it is here."""
        if key not in self._here:
            self._absent_since[key] = now()
            self.changed.set()

    def forget(self, key: Key) -> None:
        """No longer waited for."""
        self._absent_since.pop(key, None)

    def absent(self) -> Iterator[tuple[Key, float]]:
        """Everybody who is waited for, and for how many seconds by now."""
        moment = now()
        for key, since in list(self._absent_since.items()):
            yield key, moment - since


def now() -> float:
    return asyncio.get_running_loop().time()
