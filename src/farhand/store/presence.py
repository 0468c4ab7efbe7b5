"""What a store that several processes share knows of the streams of registered clients."""

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
    """A registered client without a stream, and for how long by now."""

    owner: Owner
    client_id: str
    seconds: float


class Streams(Protocol):
    """Which clients have their stream, in whichever process; judged by the store's clock."""

    async def arrive(self, owner: Owner, client_id: str, *, lease_sec: float) -> Seat:
        """The newest from now on, and known to be there for so long."""
        ...

    async def stay(self, seats: Sequence[Seat], *, lease_sec: float) -> list[Seat]:
        """They are still there; those that are not the newest any more are returned."""
        ...

    async def leave(self, seat: Seat) -> None:
        """Away from now on, if it was the newest."""
        ...

    async def expect(self, owner: Owner, client_id: str) -> None:
        """Away from now on, unless it is here."""
        ...

    async def is_here(self, owner: Owner, client_id: str) -> bool: ...

    async def absent(self) -> list[Absence]: ...
