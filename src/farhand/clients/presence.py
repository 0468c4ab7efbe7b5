"""Which clients have their stream in this process, and since when the others are absent.

That is enough for a store that only one process opens: after a restart every client is absent.
In a shared store each stream has a seat, and the store decides which clients are absent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TypeAlias

from farhand.clients.inbox import Inbox
from farhand.core.principal import Owner
from farhand.store.presence import Seat

ClientKey: TypeAlias = tuple[Owner, str]


class Presence:
    def __init__(self) -> None:
        self.changed = asyncio.Event()
        """Set whenever a client becomes absent."""
        self._here: dict[ClientKey, Inbox] = {}
        self._seats: dict[ClientKey, Seat] = {}
        self._left: list[Seat] = []
        self._absent_since: dict[ClientKey, float] = {}

    def __contains__(self, key: ClientKey) -> bool:
        return key in self._here

    def arrive(self, key: ClientKey, inbox: Inbox) -> None:
        """The newest stream wins: the older one ends."""
        before = self._here.get(key)
        if before is not None:
            before.supersede()
        self._here[key] = inbox
        self._absent_since.pop(key, None)

    def leave(self, key: ClientKey, inbox: Inbox) -> bool:
        """True if the client has no stream any more; a stream that was replaced does not count."""
        if self._here.get(key) is not inbox:
            return False
        del self._here[key]
        seat = self._seats.pop(key, None)
        if seat is not None:
            self._left.append(seat)
        return True

    def miss(self, key: ClientKey) -> None:
        """The client is absent from now on, unless it has a stream here."""
        if key not in self._here:
            self._absent_since[key] = loop_time()
            self.changed.set()

    def forget(self, key: ClientKey) -> None:
        """The client was removed: nobody waits for it any more."""
        self._absent_since.pop(key, None)

    def absent(self) -> Iterator[tuple[ClientKey, float]]:
        """The absent clients, each with the seconds of its absence."""
        moment = loop_time()
        for key, since in list(self._absent_since.items()):
            yield key, moment - since

    def wake(self, owner: Owner) -> None:
        """Has the owner's streams here check whether their client's tools have changed."""
        for (whose, _), inbox in self._here.items():
            if whose == owner:
                inbox.wake()

    def sit(self, seat: Seat, inbox: Inbox) -> None:
        """Keeps the stream's seat, unless the stream has ended or a newer one is here."""
        key = (seat.owner, seat.client_id)
        known = self._seats.get(key)
        if self._here.get(key) is not inbox:
            self._left.append(seat)
        elif known is None or known.number < seat.number:
            self._seats[key] = seat

    def seats(self) -> list[Seat]:
        return list(self._seats.values())

    def take_left(self) -> list[Seat]:
        """The seats that have become free since the last call."""
        left, self._left = self._left, []
        return left

    def supersede(self, seat: Seat) -> None:
        """A newer stream of the client has begun in another process."""
        key = (seat.owner, seat.client_id)
        if self._seats.get(key) == seat:
            del self._seats[key]
            self._here[key].supersede()

    def supersede_older(self, notification: str) -> None:
        """The same, from a notification of the other process."""
        newer = decode_seat(notification)
        mine = self._seats.get((newer.owner, newer.client_id))
        if mine is not None and mine.number < newer.number:
            self.supersede(mine)


def encode_seat(seat: Seat) -> str:
    return "\0".join((seat.owner.tenant, seat.owner.subject, seat.client_id, str(seat.number)))


def decode_seat(text: str) -> Seat:
    tenant, subject, client_id, number = text.split("\0")
    return Seat(Owner(tenant, subject), client_id, int(number))


def loop_time() -> float:
    return asyncio.get_running_loop().time()
