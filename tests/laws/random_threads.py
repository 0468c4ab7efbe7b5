"""Random histories of several threads: runs, steps, calls of every kind, answers, purges, deletions."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

from farhand.calls.desk import Desk
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase, ProgramRequest
from farhand.core.decide import runs, threads
from farhand.core.decide.decision import Decision
from farhand.core.decide.direct import open_direct
from farhand.core.decide.opening import Opening
from farhand.core.decide.runs import StepResult
from farhand.core.event import CallBegun, CallRejected, TextAdded
from farhand.core.outcome import Failure, Success
from farhand.core.principal import Owner
from farhand.core.result import Result
from farhand.core.settings import Settings
from farhand.core.state import ThreadState
from farhand.core.thread import Text, UserMessage
from farhand.core.tool import Executor, Tool
from farhand.eventlog.batch import Command
from farhand.eventlog.log import EventLog
from farhand.eventlog.thread_cache import Key
from farhand.store.base import Store
from farhand.testing import FakeClock

OWNERS = (Owner("acme", "ann"), Owner("acme", "bob"))
SETTINGS = Settings()
KEEP_SEC = 400.0
TOOLS = (
    Tool(name="open_url", description="", input_schema={}, executor=Executor.FRONTEND),
    Tool(name="client_c_read", description="", input_schema={}, executor=Executor.CLIENT, client_id="c"),
    Tool(name="delete", description="", input_schema={}),
)


class Lives:
    def __init__(self, store: Store, clock: FakeClock, seed: int) -> None:
        self.log = EventLog(store)
        self.purged_before = 0.0
        self._clock = clock
        self._random = random.Random(seed)
        self._desk = Desk(self.log, SETTINGS.timeouts)
        self._keys = [(owner, f"t{no}") for owner in OWNERS for no in range(3)]
        self._often: list[Callable[[Key], Awaitable[object]]] = [
            self._begin, self._write, self._step, self._end, self._answer, self._open_direct, self._park
        ]  # fmt: skip
        self._seldom: list[Callable[[Key], Awaitable[object]]] = [
            self._claim, self._stop, self._rename, self._expire, self._purge, self._delete
        ]  # fmt: skip

    async def go_on(self, steps: int) -> None:
        for _ in range(steps):
            self._clock.advance(self._random.choice((0, 1, 5, 40)))
            acts = self._often if self._random.random() < 0.8 else self._seldom
            await self._random.choice(acts)(self._random.choice(self._keys))

    async def _do(self, key: Key, command: Command[object]) -> None:
        await self.log.decide(*key, command)

    async def _begin(self, key: Key) -> None:
        message = UserMessage(self._clock.fresh("msg"), (Text("hello"),))
        run_id = self._clock.fresh("run")
        await self._do(key, lambda thread, _: runs.begin(thread, message, runs.NewRun(run_id)))

    async def _write(self, key: Key) -> None:
        text = (TextAdded(0, "word " * self._random.randint(1, 30)),)

        def write(thread: ThreadState, now: float) -> Decision[object]:
            run = thread.active_run
            return Decision(None) if run is None else runs.write(thread, run.fence, text, after=run.seq)

        await self._do(key, write)

    async def _step(self, key: Key) -> None:
        asked: list[Opening | CallRejected] = [self._opening() for _ in range(self._random.randint(1, 3))]
        if self._random.random() < 0.2:
            rejected = CallRejected(
                call_id=self._clock.fresh("call"),
                step=1,
                tool="none",
                input={},
                error="There is no such tool.",
            )
            asked.append(rejected)
        await self._finish_step(key, tuple(asked))

    async def _end(self, key: Key) -> None:
        await self._finish_step(key, ())

    async def _finish_step(self, key: Key, asked: tuple[Opening | CallRejected, ...]) -> None:
        def finish(thread: ThreadState, now: float) -> Decision[object]:
            run = thread.active_run
            if run is None or any(call.phase is not Phase.SETTLED for call in thread.step_calls()):
                return Decision(None)
            begun = [CallBegun(each.call_id, "tool") for each in asked]
            result = StepResult(
                step=run.step + 1,
                stop_reason="calls" if asked else "end",
                written=(TextAdded(0, "so"), *begun),
                after=run.seq,
                calls=asked,
                is_last=not asked,
            )
            return runs.finish_step(thread, run.fence, result, now=now, settings=SETTINGS, calls_left=99)

        await self._do(key, finish)

    def _opening(self, *, is_direct: bool = False) -> Opening:
        request_id = self._random.choice((None, None, "job-1", "job-2", self._clock.fresh("job")))
        return Opening(
            call_id=self._clock.fresh("call"),
            tool=self._random.choice(TOOLS),
            input={},
            is_direct=is_direct,
            timeout_sec=self._random.choice((None, 60.0)),
            approval_id=self._clock.fresh("apr") if self._random.random() < 0.3 else None,
            request=ProgramRequest(request_id) if is_direct and request_id is not None else None,
        )

    async def _open_direct(self, key: Key) -> None:
        opening = self._opening(is_direct=True)
        request_id = None if opening.request is None else opening.request.request_id
        if request_id is not None and await self.log.get_requested(key[0], request_id) is not None:
            return
        await self._do(
            key,
            lambda thread, now: open_direct(
                thread, opening, title="", now=now, settings=SETTINGS, calls_left=99
            ),
        )

    async def _answer(self, key: Key) -> None:
        """Every second open call of the thread is approved, refused, run or settled."""
        for call in await self.log.open_calls(*key):
            if self._random.random() < 0.5:
                await self._bring(call)

    async def _bring(self, call: Call) -> None:
        outcome = self._random.choice((Success("done"), Failure("no")))
        if call.phase is Phase.ASKING and call.approval is not None:
            answer = Answer(approved=self._random.random() < 0.7)
            await self._desk.approve(call.owner, call.approval.approval_id, answer)
        elif call.executor is Executor.SERVER:
            await self._desk.finish(call, outcome)
        else:
            await self._desk.take(call.owner, call.call_id, "tab")
            await self._desk.settle(call.owner, Result(call_id=call.call_id, outcome=outcome))

    async def _park(self, key: Key) -> None:
        def park(thread: ThreadState, now: float) -> Decision[object]:
            run = thread.active_run
            return Decision(None) if run is None else runs.park(thread, run.fence)

        await self._do(key, park)

    async def _claim(self, key: Key) -> None:
        def claim(thread: ThreadState, now: float) -> Decision[object]:
            run = thread.active_run
            if run is None:
                return Decision(None)
            return runs.claim(
                thread, run.run_id, run.fence, lambda call: True, now=now, timeouts=SETTINGS.timeouts
            )

        await self._do(key, claim)

    async def _stop(self, key: Key) -> None:
        def stop(thread: ThreadState, now: float) -> Decision[object]:
            run = thread.active_run
            return Decision(None) if run is None else runs.stop(thread, run.run_id, "stopped")

        await self._do(key, stop)

    async def _rename(self, key: Key) -> None:
        title = self._clock.fresh("title")
        await self._do(
            key, lambda thread, _: threads.rename(thread, title) if thread.exists else Decision(False)
        )

    async def _expire(self, key: Key) -> None:
        for call in await self.log.due(before=self._clock.now(), limit=99):
            await self._desk.expire(call)

    async def _purge(self, key: Key) -> None:
        self.purged_before = max(0.0, self._clock.now() - KEEP_SEC)
        await self.log.purge(before=self.purged_before)

    async def _delete(self, key: Key) -> None:
        if self._random.random() < 0.3:
            await self.log.delete(*key)
