"""What a law starts from: a store, a clock that stands still, and things to put into the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from farhand.clock import Clock
from farhand.core import call as table
from farhand.core.approval import Approval
from farhand.core.call import Call, Phase, new_call
from farhand.core.event import RunParked, TextAdded
from farhand.core.outcome import Cancelled, Success, digest
from farhand.core.principal import Owner
from farhand.core.run import Run, RunState
from farhand.core.thread import Text, Thread, UserMessage
from farhand.core.tool import Executor, Tool
from farhand.store.base import (
    Commit,
    Committed,
    InsertCall,
    InsertMessage,
    InsertRun,
    InsertThread,
    ParkRun,
    Stale,
    Store,
    SwapCall,
    When,
    Why,
    Write,
    WriteRun,
)
from farhand.testing.clock import FakeClock

ANN = Owner("acme", "ann")
BOB = Owner("acme", "bob")
LEASE_SEC = 15.0
WITHIN_SEC = 30.0
"""A generous bound: a law that hangs is broken, too."""

OPEN_URL = Tool(
    name="open_url",
    description="Open a page.",
    input_schema={"type": "object", "properties": {"url": {"type": "string"}}},
    executor=Executor.FRONTEND,
)


class Laws:
    """The base of every law: say how your store is opened."""

    async def open_store(self, clock: Clock) -> Store:
        """A new, empty store that judges deadlines by this clock."""
        raise NotImplementedError

    @asynccontextmanager
    async def given(self) -> AsyncIterator[Given]:
        clock = FakeClock()
        async with asyncio.timeout(WITHIN_SEC):
            given = Given(await self.open_store(clock), clock)
            try:
                yield given
            finally:
                await given.store.close()


class Given:
    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock

    async def write(self, *writes: Write) -> Committed:
        return committed(await self.store.commit(*writes))

    async def refuse(self, *writes: Write) -> Why:
        """Why nothing of this was written."""
        commit = await self.store.commit(*writes)
        assert isinstance(commit, Stale), "a guard that does not hold was not noticed"
        return commit.why

    async def thread(self, thread_id: str = "t1", owner: Owner = ANN) -> Thread:
        thread = self.new_thread(thread_id, owner)
        await self.write(InsertThread(thread))
        return thread

    async def run(self, thread_id: str = "t1", **changes: object) -> Run:
        """A run that somebody holds, in a thread of its own unless one is named."""
        run = self.new_run(thread_id, **changes)
        return (await self.write(InsertThread(self.new_thread(thread_id)), InsertRun(run))).runs[run.run_id]

    async def call(self, run: Run | None = None, **changes: object) -> Call:
        """A far call that waits for its result."""
        call = self.new_call(run, **changes)
        await self.write(InsertCall(call, OPEN_URL))
        return call

    async def settle(self, call: Call, when: When = When.ANY_TIME) -> Commit:
        return await self.store.commit(SwapCall(call, self.settled(call), when))

    async def park(self, run: Run) -> Run:
        return (await self.write(ParkRun(run.run_id, run.fence, RunParked()))).runs[run.run_id]

    async def end(self, run: Run) -> Run:
        """With one last event."""
        bye = WriteRun(run_id=run.run_id, fence=run.fence, state=RunState.DONE, events=(TextAdded(0, "bye"),))
        return (await self.write(bye)).runs[run.run_id]

    async def message(self, message_id: str, thread_id: str = "t1") -> UserMessage:
        message = user_message(message_id)
        await self.write(InsertMessage(ANN, thread_id, message))
        return message

    async def stored_run(self, run: Run) -> Run:
        stored = await self.store.get_run(run.owner, run.run_id)
        assert stored is not None
        return stored

    async def stored_call(self, call: Call) -> Call:
        stored = await self.store.get_call(call.owner, call.call_id)
        assert stored is not None
        return stored

    def new_thread(self, thread_id: str, owner: Owner = ANN) -> Thread:
        now = self.clock.now()
        return Thread(owner=owner, thread_id=thread_id, created_at=now, updated_at=now)

    def new_run(self, thread_id: str = "t1", **changes: object) -> Run:
        now = self.clock.now()
        run = Run(
            run_id=self.clock.fresh("run"),
            owner=ANN,
            thread_id=thread_id,
            lease_until=now + LEASE_SEC,
            started_at=now,
        )
        return replace(run, **changes)

    def new_call(self, run: Run | None = None, **changes: object) -> Call:
        call = Call(
            call_id=self.clock.fresh("call"),
            owner=ANN if run is None else run.owner,
            thread_id="t1" if run is None else run.thread_id,
            run_id=None if run is None else run.run_id,
            tool="open_url",
            tool_version=OPEN_URL.version,
            executor=Executor.FRONTEND,
            input={"url": "https://example.org"},
            opened_at=self.clock.now(),
            phase=Phase.READY,
            deadline=self.clock.now() + 60.0,
        )
        return new_call(replace(call, **changes))

    def asking(self) -> Approval:
        return Approval(approval_id=self.clock.fresh("apr"), digest="of tool and input")

    def settled(self, call: Call, output: object = "done") -> Call:
        outcome = Success(output)
        after = table.settle(call, outcome, sent=digest(outcome), at=self.clock.now())
        assert after is not None
        return after

    def stopped(self, call: Call) -> Call:
        outcome = Cancelled("stopped by the user")
        after = table.settle(call, outcome, sent=digest(outcome), at=self.clock.now())
        assert after is not None
        return after


def committed(commit: Commit) -> Committed:
    assert isinstance(commit, Committed), f"refused: {commit}"
    return commit


def user_message(message_id: str, text: str = "hello") -> UserMessage:
    return UserMessage(message_id, (Text(text),))
