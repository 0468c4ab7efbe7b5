"""The fixture of every law: an open store, a clock that the law controls, and sample records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from farhand.clock import Clock
from farhand.core.approval import Approval
from farhand.core.call import Call, Phase
from farhand.core.call_state import moved
from farhand.core.decide import calls as rules
from farhand.core.file import StoredFile
from farhand.core.outcome import Success
from farhand.core.principal import Owner
from farhand.core.run import Run, RunState
from farhand.core.tool import Executor, Tool
from farhand.store.base import Append, Appended, AppendResult, CallFilter, Store, ThreadRow
from farhand.testing.clock import FakeClock

ANN = Owner("acme", "ann")
BOB = Owner("acme", "bob")
EVE = Owner("evil", "ann")
LEASE_SEC = 15.0
WITHIN_SEC = 30.0
"""A generous bound: a law that hangs is a failure."""

OPEN_URL = Tool(
    name="open_url",
    description="Open a page.",
    input_schema={"type": "object", "properties": {"url": {"type": "string"}}},
    executor=Executor.FRONTEND,
)


class Laws:
    """The base of all laws. Override `open_store`."""

    async def open_store(self, clock: Clock) -> Store:
        """A new, empty store that judges deadlines by this clock."""
        raise NotImplementedError

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[StoreFixture]:
        clock = FakeClock()
        async with asyncio.timeout(WITHIN_SEC):
            fixture = StoreFixture(await self.open_store(clock), clock)
            try:
                yield fixture
            finally:
                await fixture.store.close()


class StoreFixture:
    """An open store. Versions of threads are counted here, so that a law names one only where it matters."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self._versions: dict[tuple[Owner, str], int] = {}
        self._open: dict[tuple[Owner, str], set[str]] = {}

    async def append(
        self, thread_id: str = "t1", body: bytes = b"[1]", *, owner: Owner = ANN, **more: object
    ) -> None:
        """An append that must succeed."""
        result = await self.try_append(thread_id, body, owner=owner, **more)
        assert result == Appended(), f"refused: {result}"

    async def try_append(
        self, thread_id: str = "t1", body: bytes = b"[1]", *, owner: Owner = ANN, **more: object
    ) -> AppendResult:
        [result] = await self.append_all(self.new_append(thread_id, body, owner=owner, **more))
        return result

    async def append_all(self, *appends: Append) -> list[AppendResult]:
        results = await self.store.append(appends)
        for append, result in zip(appends, results, strict=True):
            if isinstance(result, Appended) and append.body:
                self._versions[append.owner, append.thread_id] = append.version + 1
                self._open[append.owner, append.thread_id] = self._open_after(append)
        return results

    async def cover(
        self, snapshot: bytes, version: int, thread_id: str = "t1", *, owner: Owner = ANN
    ) -> None:
        """Stores a snapshot of the thread at this version."""
        row, *_ = (await self.store.load(owner, thread_id, after=version - 1)).rows
        await self.store.put_snapshot(owner, thread_id, version, snapshot, at=row.at)

    async def delete(self, thread_id: str = "t1", owner: Owner = ANN) -> None:
        assert await self.store.delete(owner, thread_id, self.version(thread_id, owner))
        del self._versions[owner, thread_id]
        self._open.pop((owner, thread_id), None)

    def version(self, thread_id: str = "t1", owner: Owner = ANN) -> int:
        return self._versions.get((owner, thread_id), 0)

    def new_append(
        self, thread_id: str = "t1", body: bytes = b"[1]", *, owner: Owner = ANN, **more: object
    ) -> Append:
        append = Append(
            owner=owner,
            thread_id=thread_id,
            version=self.version(thread_id, owner),
            at=self.clock.now(),
            body=body,
            thread=self.new_row(),
        )
        append = replace(append, **more)
        if append.thread is None:
            return append
        return replace(append, thread=replace(append.thread, open_calls=len(self._open_after(append))))

    def _open_after(self, append: Append) -> set[str]:
        """The calls of the thread that are open after this append."""
        before = self._open.get((append.owner, append.thread_id), set())
        now_open = {call.call_id for call in append.calls if call.phase is not Phase.SETTLED}
        return (before - {call.call_id for call in append.calls}) | now_open

    def new_row(self, **changes: object) -> ThreadRow:
        now = self.clock.now()
        return replace(ThreadRow(title="Hello", created_at=now, updated_at=now), **changes)

    def running(self, run_id: str = "run_1", **changes: object) -> ThreadRow:
        """A thread with an active run."""
        return replace(
            self.new_row(run_id=run_id, run_state=RunState.RUNNING),
            **changes,
        )

    def parked(self, run_id: str = "run_1", **changes: object) -> ThreadRow:
        """A thread whose run waits for an answer and is held by no worker."""
        waiting = self.running(run_id, run_state=RunState.WAITING, is_parked=True)
        return replace(waiting, **changes)

    def new_run(self, run_id: str = "run_1", **changes: object) -> Run:
        run = Run(run_id=run_id, owner=ANN, thread_id="t1", started_at=self.clock.now())
        return replace(run, **changes)

    def new_call(self, call_id: str = "call_1", **changes: object) -> Call:
        """A far call that waits for its result."""
        now = self.clock.now()
        call = Call(
            call_id=call_id,
            owner=ANN,
            thread_id="t1",
            run_id="run_1",
            tool="open_url",
            tool_version=OPEN_URL.version,
            executor=Executor.FRONTEND,
            input={"url": "https://example.org"},
            opened_at=now,
            phase=Phase.READY,
            deadline=now + 60.0,
        )
        call = replace(call, **changes)
        is_asking = call.approval is not None and call.approval.answer is None
        return replace(call, phase=Phase.ASKING) if is_asking else call

    def new_approval(self, approval_id: str = "apr_1") -> Approval:
        return Approval(approval_id=approval_id, digest="of tool and input")

    def settled(self, call: Call, output: object = "done") -> Call:
        return moved(call, rules.settled(call, Success(output)), self.clock.now())

    def new_file(self, owner: Owner = ANN) -> StoredFile:
        ref = self.clock.fresh("blob")
        return StoredFile(owner=owner, ref=ref, name="ü.png", media_type="image/png", created_at=1000.0)

    async def put_file(self, *pieces: bytes, owner: Owner = ANN) -> StoredFile:
        """A complete file, in these pieces."""
        file = self.new_file(owner)
        assert await self.store.files.put(file, 0, pieces, is_last=True)
        return file

    async def open_ids(self, *, limit: int = 1000, **which: object) -> list[str]:
        """The ids of open calls."""
        # the filters have various types, which the signature of `CallFilter` names
        found = await self.store.open_calls(CallFilter(**which), limit=limit)  # type: ignore[arg-type]
        return [each.call.call_id for each in found]

    async def claimable_ids(
        self, *, limit: int = 9, skip: tuple[str, ...] = (), reserve_sec: float = 0.0
    ) -> list[str]:
        found = await self.store.claimable(limit=limit, skip=skip, reserve_sec=reserve_sec)
        return [each.thread_id for each in found]
