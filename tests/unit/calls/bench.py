"""A desk with a store behind it, and short words for what the tests of calls do all the time."""

from __future__ import annotations

from msgspec.structs import replace

from farhand.calls.desk import Desk
from farhand.calls.opening import Opening
from farhand.core.approval import Answer
from farhand.core.call import Call
from farhand.core.event import Event, RunParked
from farhand.core.outcome import Outcome
from farhand.core.principal import Owner
from farhand.core.result import Receipt, Result
from farhand.core.run import Run
from farhand.core.settings import Patience
from farhand.core.thread import Thread
from farhand.core.tool import Executor, Tool
from farhand.store.base import ClaimRun, Committed, Due, InsertRun, InsertThread, ParkRun, Store
from farhand.testing import FakeClock

ANN = Owner("acme", "ann")
BOB = Owner("acme", "bob")
THREAD = "t1"
YES = Answer(approved=True)
NO = Answer(approved=False, reason="too dear")

OPEN_URL = Tool(
    name="open_url",
    description="Opens a page.",
    input_schema={
        "type": "object",
        "properties": {"url": {"type": "string"}},
        "required": ["url"],
        "additionalProperties": False,
    },
    output_schema={"type": "object", "properties": {"viewKey": {"type": "string"}}, "required": ["viewKey"]},
    executor=Executor.FRONTEND,
)
ANY_OUTPUT = replace(OPEN_URL, name="ask_text", output_schema=None)
ON_SERVER = replace(OPEN_URL, name="delete_file", executor=Executor.SERVER, output_schema=None)
BY_CLIENT = replace(OPEN_URL, name="print_page", executor=Executor.CLIENT, output_schema=None)


class Bench:
    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.patience = Patience()
        self.dues: list[Due] = []
        self.desk = Desk(store, self.patience, expect=self.dues.append)

    async def start_run(self, owner: Owner = ANN, thread: str = THREAD) -> Run:
        now = self.store.now()
        run = Run(
            run_id=self.clock.fresh("run"),
            owner=owner,
            thread_id=thread,
            started_at=now,
            lease_until=now + 1e9,
        )
        commit = await self.store.commit(
            InsertThread(Thread(owner=owner, thread_id=thread, created_at=now, updated_at=now)),
            InsertRun(run),
        )
        assert isinstance(commit, Committed)
        return run

    def opening(self, tool: Tool = ANY_OUTPUT, *, run: Run | None = None, asks: bool = False) -> Opening:
        """A wish on a held run."""
        return Opening(
            call_id=self.clock.fresh("call"),
            owner=ANN if run is None else run.owner,
            thread_id=THREAD,
            tool=tool,
            input={"url": "https://example.org"},
            run_id=None if run is None else run.run_id,
            step=1,
            timeout_sec=tool.timeout_sec,
            held=True,
            approval_id=self.clock.fresh("apr") if asks else None,
        )

    async def put(self, opening: Opening) -> Call:
        call = self.desk.prepare(opening)
        assert isinstance(await self.desk.open([(call, opening.tool)]), Committed)
        return call

    async def open(self, tool: Tool = ANY_OUTPUT, *, run: Run | None = None, asks: bool = False) -> Call:
        return await self.put(self.opening(tool, run=run, asks=asks))

    async def settle(self, call: Call, outcome: Outcome, owner: Owner = ANN) -> Receipt:
        return await self.desk.settle(owner, Result(call_id=call.call_id, outcome=outcome))

    async def answer(self, call: Call, answer: Answer, owner: Owner = ANN) -> Receipt:
        assert call.approval is not None
        return await self.desk.approve(owner, call.approval.approval_id, answer)

    async def stored(self, call: Call) -> Call:
        found = await self.store.get_call(call.owner, call.call_id)
        assert found is not None
        return found

    async def stored_run(self, run: Run) -> Run:
        found = await self.store.get_run(run.owner, run.run_id)
        assert found is not None
        return found

    async def events(self, run: Run) -> list[Event]:
        return [entry.event for entry in await self.store.events(run.owner, run.run_id)]

    async def park(self, run: Run) -> None:
        commit = await self.store.commit(ParkRun(run.run_id, run.fence, RunParked()))
        assert isinstance(commit, Committed)

    async def claim(self, run: Run) -> Run:
        commit = await self.store.commit(ClaimRun(run.run_id, 1e9, by_force=True))
        assert isinstance(commit, Committed)
        return commit.runs[run.run_id]
