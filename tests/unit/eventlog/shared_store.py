"""A store of several workers, the log of one of them, and commands on a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from farhand.core.call import ProgramRequest
from farhand.core.decide.decision import Decision
from farhand.core.decide.opening import opened
from farhand.core.event import Event, ThreadCreated, ThreadRenamed
from farhand.core.state import ThreadState
from farhand.errors import StoreDown
from farhand.eventlog.batch import Changes, Command
from farhand.eventlog.thread_cache import Key
from farhand.eventlog.threads import Threads
from farhand.store.base import Append, AppendResult, Store
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from tests.unit.core.thread_builder import TIMEOUTS, asks_for


class SharedStore(MemoryStore):
    """One that several workers use; it can be held up, and it can be down."""

    is_shared = True

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.free = asyncio.Event()
        self.free.set()
        self.appending = asyncio.Event()
        self.is_down = False
        self.appended: list[Sequence[Append]] = []

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        self.appending.set()
        await self.free.wait()
        if self.is_down:
            raise StoreDown("The store is not responding.")
        self.appended.append(appends)
        return await super().append(appends)


class RecordingThreads(Threads):
    """Keeps what subscribers would be told."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.events: list[tuple[str, tuple[Event, ...], bool]] = []
        self.losses: list[str] = []
        self.rollbacks: list[Changes] = []
        self.follows = True

    def on_committed(self, key: Key, changes: Changes, at: float, *, is_own: bool) -> None:
        self.events.append((key[1], tuple(changes.events), is_own))

    def on_lost(self, key: Key) -> None:
        self.losses.append(key[1])

    def on_rolled_back(self, key: Key, changes: Changes) -> None:
        self.rollbacks.append(changes)

    def is_followed(self, thread: ThreadState) -> bool:
        return self.follows


def rename(title: str) -> Command[None]:
    def rename(thread: ThreadState, now: float) -> Decision[None]:
        new = () if thread.exists else (ThreadCreated(),)
        return Decision(None, (*new, ThreadRenamed(title)))

    return rename


def open_call(call_id: str = "call_1", *, request_id: str | None = None) -> Command[None]:
    opening = replace(asks_for(call_id, direct=True), request=ProgramRequest(request_id))

    def command(thread: ThreadState, now: float) -> Decision[None]:
        new = () if thread.exists else (ThreadCreated("t"),)
        event = opened(thread, opening, now=now, timeouts=TIMEOUTS)
        return Decision(None, (*new, event), tools=(opening.tool,))

    return command
