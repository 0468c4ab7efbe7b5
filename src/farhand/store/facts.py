"""What can be said of a store without opening it, for whoever wants to know what is wrong."""

from __future__ import annotations

from msgspec import Struct


class StoreFacts(Struct, frozen=True):
    """`problem` is None if it can be used; `behind` is the time of this machine less that of the store."""

    what: str
    version: int | None = None
    latest: int = 0
    behind: float | None = None
    problem: str | None = None
    in_use_by: str | None = None
