"""A desk on the log of a store, with shortcuts for the tests of calls."""

from __future__ import annotations

from msgspec.structs import replace

from farhand.calls.desk import Desk
from farhand.core.approval import Answer
from farhand.core.call import Call
from farhand.core.decide import runs
from farhand.core.decide.direct import open_direct
from farhand.core.decide.opening import Opening
from farhand.core.decide.runs import Started, StepResult
from farhand.core.event import CALL_MOVES, CallBegun, CallMove
from farhand.core.outcome import Outcome
from farhand.core.principal import Owner
from farhand.core.result import Receipt, Result
from farhand.core.run import Run
from farhand.core.settings import Settings
from farhand.core.thread import Text, UserMessage
from farhand.core.tool import Executor, Tool
from farhand.eventlog.log import EventLog
from farhand.store.base import Store
from farhand.testing import FakeClock

ANN = Owner("acme", "ann")
BOB = Owner("acme", "bob")
THREAD = "t1"
YES = Answer(approved=True)
NO = Answer(approved=False, reason="too dear")
ROOM = 1_000
WORKER = "wrk_bench"

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
    card="open_page",
)
ANY_OUTPUT = replace(OPEN_URL, name="ask_text", output_schema=None)
ON_SERVER = replace(OPEN_URL, name="delete_file", executor=Executor.SERVER, output_schema=None)
BY_CLIENT = replace(OPEN_URL, name="print_page", executor=Executor.CLIENT, output_schema=None)


class Bench:
    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.settings = Settings()
        self.timeouts = self.settings.timeouts
        self.expected: list[Call] = []
        self.log = EventLog(store)
        self.log.expect = self.expected.append
        self.desk = Desk(self.log, self.timeouts)

    async def start_run(self, owner: Owner = ANN, thread: str = THREAD) -> Run:
        run_id, message = self.clock.fresh("run"), UserMessage(self.clock.fresh("msg"), (Text("go"),))
        begun = await self.log.decide(
            owner, thread, lambda state, now: runs.begin(state, message, runs.NewRun(run_id))
        )
        assert begun == Started(run_id)
        found = await self.log.get_run(owner, run_id)
        assert found is not None
        return found

    def opening(self, tool: Tool = ANY_OUTPUT, *, asks: bool = False, is_direct: bool = True) -> Opening:
        """For a caller or a stream that waits for the result."""
        return Opening(
            call_id=self.clock.fresh("call"),
            tool=tool,
            input={"url": "https://example.org"},
            is_direct=is_direct,
            timeout_sec=tool.timeout_sec,
            is_held=True,
            approval_id=self.clock.fresh("apr") if asks else None,
            worker=WORKER,
        )

    async def open(self, tool: Tool = ANY_OUTPUT, *, run: Run | None = None, asks: bool = False) -> Call:
        """One call: of a program, or as a step of this run."""
        if run is None:
            return await self.put(self.opening(tool, asks=asks))
        [call] = await self.open_step(run, self.opening(tool, asks=asks, is_direct=False))
        return call

    async def put(self, opening: Opening, *, owner: Owner = ANN, thread: str = THREAD) -> Call:
        opened = await self.log.decide(
            owner,
            thread,
            lambda state, now: open_direct(
                state, opening, title="", now=now, settings=self.settings, calls_left=ROOM
            ),
        )
        assert isinstance(opened, Call)
        return await self.stored(opened)

    async def open_calls(self, run: Run, *tools: Tool) -> list[Call]:
        """A step of the run that asks for these tools."""
        return await self.open_step(run, *(self.opening(tool, is_direct=False) for tool in tools))

    async def open_step(self, run: Run, *openings: Opening) -> list[Call]:
        step = (await self.stored_run(run)).step + 1
        result = StepResult(
            step=step,
            stop_reason="calls",
            written=tuple(CallBegun(each.call_id, each.tool.name) for each in openings),
            after=(await self.stored_run(run)).last_seq,
            calls=tuple(replace(each, step=step) for each in openings),
        )
        assert await self.log.decide(
            run.owner,
            run.thread_id,
            lambda state, now: runs.finish_step(
                state, run.fence, result, now=now, settings=self.settings, calls_left=ROOM
            ),
        )
        return await self.log.calls_of(run.owner, run.run_id, step)

    async def settle(self, call: Call, outcome: Outcome, owner: Owner = ANN) -> Receipt:
        return await self.desk.settle(owner, Result(call_id=call.call_id, outcome=outcome))

    async def answer(self, call: Call, answer: Answer, owner: Owner = ANN) -> Receipt:
        assert call.approval is not None
        return await self.desk.approve(owner, call.approval.approval_id, answer)

    async def stored(self, call: Call) -> Call:
        found = await self.log.get_call(call.owner, call.call_id)
        assert found is not None
        return found

    async def stored_run(self, run: Run) -> Run:
        found = await self.log.get_run(run.owner, run.run_id)
        assert found is not None
        return found

    async def moves(self, run: Run) -> list[CallMove]:
        """What the journal says of the run's calls since they were opened."""
        entries = await self.log.entries(run)
        return [entry.event for entry in entries if isinstance(entry.event, CALL_MOVES)]

    async def park(self, run: Run) -> None:
        parked = await self.log.decide(
            run.owner, run.thread_id, lambda state, now: runs.park(state, run.fence)
        )
        assert parked == "parked"

    async def claim(self, run: Run) -> Run:
        """As another worker does that believes the first one to be gone."""
        fence = await self.log.decide(
            run.owner,
            run.thread_id,
            lambda state, now: runs.claim(
                state, run.run_id, run.fence, lambda call: False, now=now, timeouts=self.timeouts
            ),
        )
        assert fence == run.fence + 1
        return await self.stored_run(run)
