"""The streams of registered clients, as a shared store knows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from farhand.core.principal import Owner


class Seat(Struct, frozen=True, gc=False):
    """One stream of a client among those of all processes; the highest number is the newest."""

    owner: Owner
    client_id: str
    number: int


class Absence(Struct, frozen=True, gc=False):
    """A registered client without a stream, and for how long so far."""

    owner: Owner
    client_id: str
    seconds: float


class Streams(Protocol):
    """Which clients have a stream, in any process; judged by the store's clock."""

    async def arrive(self, owner: Owner, client_id: str, *, lease_sec: float) -> Seat:
        """The newest stream from now on, valid for this many seconds."""
        ...

    async def renew_seats(self, seats: Sequence[Seat], *, lease_sec: float) -> list[Seat]:
        """Renews these seats. Returns the seats that were lost: a newer stream of their client has replaced
        them, or the client is gone."""
        ...

    async def leave(self, seat: Seat) -> None:
        """The client is away from now on, if this was its newest stream."""
        ...

    async def retire(self, seat: Seat) -> None:
        """Like `leave`, for a client that will not return: `is_retired` tells that from a lease that has
        expired."""
        ...

    async def is_retired(self, owner: Owner, client_id: str) -> bool: ...

    async def expect(self, owner: Owner, client_id: str) -> None:
        """The client is away from now on, unless it has a stream."""
        ...

    async def is_here(self, owner: Owner, client_id: str) -> bool: ...

    async def absent(self) -> list[Absence]: ...
