"""Which clients have their stream in this process, and since when the others have not.

In a store that only one process opens, that is all there is to know: after a restart everybody is absent from
then on. In one that others share, each stream has a seat there, and the store judges who is absent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TypeAlias

from farhand.clients.inbox import Inbox
from farhand.core.principal import Owner
from farhand.store.streams import Seat

Key: TypeAlias = tuple[Owner, str]


class Presence:
    def __init__(self) -> None:
        self.changed = asyncio.Event()
        """Set whenever somebody became absent."""
        self._here: dict[Key, Inbox] = {}
        self._seats: dict[Key, Seat] = {}
        self._left: list[Seat] = []
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
        seat = self._seats.pop(key, None)
        if seat is not None:
            self._left.append(seat)
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

    def rouse(self, owner: Owner) -> None:
        """What this owner's clients offer has changed: those who listen here look whether it is theirs."""
        for (whose, _), inbox in self._here.items():
            if whose == owner:
                inbox.rouse()

    def sit(self, seat: Seat, inbox: Inbox) -> None:
        """The stream's seat among those of all processes; in vain if it has ended, or a newer one is here."""
        key = (seat.owner, seat.client_id)
        known = self._seats.get(key)
        if self._here.get(key) is not inbox:
            self._left.append(seat)
        elif known is None or known.number < seat.number:
            self._seats[key] = seat

    def seats(self) -> list[Seat]:
        return list(self._seats.values())

    def take_left(self) -> list[Seat]:
        """The seats that became free since the last time."""
        left, self._left = self._left, []
        return left

    def supersede(self, seat: Seat) -> None:
        """A newer stream has begun in another process."""
        key = (seat.owner, seat.client_id)
        if self._seats.get(key) == seat:
            del self._seats[key]
            self._here[key].supersede()

    def outnumber(self, told: str) -> None:
        """The same, as another process tells it."""
        newer = seat_in(told)
        mine = self._seats.get((newer.owner, newer.client_id))
        if mine is not None and mine.number < newer.number:
            self.supersede(mine)


def told_of(seat: Seat) -> str:
    return "\0".join((seat.owner.tenant, seat.owner.subject, seat.client_id, str(seat.number)))


def seat_in(told: str) -> Seat:
    tenant, subject, client_id, number = told.split("\0")
    return Seat(Owner(tenant, subject), client_id, int(number))


def now() -> float:
    return asyncio.get_running_loop().time()
