"""Builds threads for tests: messages, steps, calls and results in one line each, decided by the real
rules."""

from __future__ import annotations

from farhand.core.approval import Answer
from farhand.core.call import Call
from farhand.core.decide import calls, runs
from farhand.core.decide.calls import CheckedResult, Reply
from farhand.core.decide.direct import open_direct
from farhand.core.decide.opening import Opening
from farhand.core.decide.runs import Beginning, StepResult
from farhand.core.event import CallBegun, CallRejected, Event, TextAdded
from farhand.core.outcome import Outcome
from farhand.core.result import Receipt, Result
from farhand.core.settings import Settings
from farhand.core.state import RunProgress, ThreadState
from farhand.core.thread import Text, UserMessage
from farhand.core.tool import Executor, Tool
from tests.unit.core.thread_log import Log

SETTINGS = Settings()
TIMEOUTS = SETTINGS.timeouts
PAGE = Tool(name="open_url", description="", input_schema={}, executor=Executor.FRONTEND, card="open_page")
PROGRAM = Tool(name="client_c_read", description="", input_schema={}, executor=Executor.CLIENT, client_id="c")
SERVER_TOOL = Tool(name="delete", description="", input_schema={})


def said(text: str, message_id: str = "m1") -> UserMessage:
    return UserMessage(message_id, (Text(text),))


class Story:
    def __init__(self) -> None:
        self.log = Log()

    @property
    def thread(self) -> ThreadState:
        return self.log.state

    @property
    def run(self) -> RunProgress:
        assert self.thread.run is not None
        return self.thread.run

    def say(self, text: str = "hello", message_id: str = "m1", *, run_id: str = "run_1") -> Beginning:
        message = said(text, message_id)
        return self.log.do(lambda thread, _: runs.begin(thread, message, runs.NewRun(run_id)))

    def step(
        self, *asked: Opening | CallRejected, text: str = "", ends: bool = False, fence: int | None = None
    ) -> bool:
        """One step of the model, with its text and its calls."""
        begun = tuple(CallBegun(each.call_id, _name(each)) for each in asked)
        written: tuple[Event, ...] = (TextAdded(0, text), *begun) if text else begun
        result = StepResult(
            step=self.run.step + 1,
            stop_reason="end" if ends else "calls",
            written=written,
            after=self.run.seq,
            calls=asked,
            is_last=ends,
        )
        claim = self.run.fence if fence is None else fence
        return self.log.do(
            lambda thread, now: runs.finish_step(
                thread, claim, result, now=now, settings=SETTINGS, calls_left=1000
            )
        )

    def write(self, *events: Event, fence: int = 1, after: int | None = None) -> int | None:
        """What the model writes before its step is finished."""
        seq = self.run.seq if after is None else after
        return self.log.do(lambda thread, _: runs.write(thread, fence, events, after=seq))

    def open_direct(self, opening: Opening) -> Call:
        self.log.do(
            lambda thread, now: open_direct(
                thread, opening, title="", now=now, settings=SETTINGS, calls_left=1000
            )
        )
        return self.thread.calls[opening.call_id]

    def settle(self, call_id: str, outcome: Outcome, *, checked: Outcome | None = None) -> Receipt:
        result = CheckedResult(Result(call_id=call_id, outcome=outcome), checked or outcome)
        return self.log.do(lambda thread, now: calls.settle(thread, result, now=now))

    def answer(self, approval_id: str, answer: Answer) -> Receipt:
        reply = Reply(approval_id, answer)
        return self.log.do(lambda thread, now: calls.approve(thread, reply, now=now, timeouts=TIMEOUTS))

    def start(
        self, call_id: str, tool: Tool | None = SERVER_TOOL, *, fence: int | None = None
    ) -> Call | None:
        return self.log.do(
            lambda thread, now: calls.start(thread, call_id, tool, now=now, timeouts=TIMEOUTS, fence=fence)
        )

    def finish(self, call_id: str, outcome: Outcome, *, fence: int | None = None) -> Receipt:
        return self.log.do(lambda thread, now: calls.finish(thread, call_id, outcome, now=now, fence=fence))

    def claim(self, *, may_repeat: bool = False, fence: int | None = None) -> int | None:
        seen = self.run.fence if fence is None else fence
        return self.log.do(
            lambda thread, now: runs.claim(
                thread, self.run.run_id, seen, lambda call: may_repeat, now=now, timeouts=TIMEOUTS
            )
        )

    def call(self, call_id: str) -> Call:
        return self.thread.calls[call_id]


def asks_for(
    call_id: str, tool: Tool = PAGE, *, approval_id: str | None = None, step: int = 1, direct: bool = False
) -> Opening:
    return Opening(
        call_id=call_id, tool=tool, input={"n": 1}, step=step, approval_id=approval_id, is_direct=direct
    )


def _name(asked: Opening | CallRejected) -> str:
    return asked.tool if isinstance(asked, CallRejected) else asked.tool.name
