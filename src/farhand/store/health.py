"""What can be found out about a store without opening it, for diagnosis."""

from __future__ import annotations

from msgspec import Struct

ROOM_BYTES = 1024 * 1024
"""What the disk must have free for new work: a large result and its events."""


class ServerLoad(Struct, frozen=True):
    """Of a database server: its connection limit, how many connections are open, and how full its
    notification queue is, from 0 to 1."""

    at_most: int
    connections: int
    queue: float


class StoreHealth(Struct, frozen=True):
    """`problem` is None if it can be used, else `hint` may say what to do; `behind` is the time of this
    machine minus that of the store; `free_bytes` is the free space of its disk, if it is a local one."""

    what: str
    version: int | None = None
    latest: int = 0
    behind: float | None = None
    problem: str | None = None
    in_use_by: str | None = None
    free_bytes: int | None = None
    hint: str = ""
    busy: ServerLoad | None = None
    unreadable: tuple[str, ...] = ()
    """Records that this version cannot read, such as `thread t1`."""
