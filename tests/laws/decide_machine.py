"""Random histories of calls, decided and folded without a store, compared with a plain model after each step.

Two commands may be decided on the same state: the second finds that the thread has moved on and is decided
again, as a store makes it do.
"""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from farhand.core.approval import Answer
from farhand.core.decide import calls, runs
from farhand.core.decide.calls import CheckedResult, Reply
from farhand.core.decide.decision import Decision
from farhand.core.decide.opening import Opening, opened
from farhand.core.event import CallSettled, TextAdded
from farhand.core.outcome import Failure, Outcome, Success, kind_of
from farhand.core.result import Conflict, Receipt, Refused, Result, Unknown
from farhand.core.run import RunState
from farhand.core.settings import Timeouts
from farhand.core.state import ThreadState
from farhand.core.thread import Text, UserMessage
from farhand.core.tool import Executor, Tool
from tests.laws.call_model import ASK_TIMEOUT, FAR_TIMEOUT, CallTruth, RunTruth, Told
from tests.unit.core.thread_log import Command, Log

TIMEOUTS = Timeouts()
MOST_CALLS = 8
TOOLS = {
    executor: Tool(
        name=executor,
        description="A tool.",
        input_schema={},
        executor=executor,
        approval_timeout_sec=ASK_TIMEOUT,
    )
    for executor in Executor
}

which = st.integers(0, MOST_CALLS - 1)
outcomes = st.sampled_from([Success("a"), Success("b"), Failure("a"), Failure("b")])
answers = st.sampled_from(
    [Answer(approved=True), Answer(approved=False, reason="no"), Answer(approved=False)]
)
holders = st.sampled_from(["tab", "tab", "tab", "phone"])
executors = st.sampled_from([Executor.FRONTEND, Executor.FRONTEND, Executor.CLIENT, Executor.SERVER])
asks = st.sampled_from([False, False, True])
later = st.sampled_from([0] * 12 + [1, 29, 30, 59, 60, 100])


class DecideMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.log = Log()
        self.truth = RunTruth()
        self.ids = 0
        message = UserMessage("m1", (Text("hello"),))
        self.log.do(lambda thread, now: runs.begin(thread, message, runs.NewRun("run_1")))

    @initialize(opened=st.lists(st.tuples(executors, asks), min_size=1, max_size=3))
    def begin(self, opened: list[tuple[Executor, bool]]) -> None:
        for executor, asking in opened:
            self._open(executor, asking)

    @precondition(lambda self: len(self.truth.calls) < MOST_CALLS)
    @rule(executor=executors, asking=asks)
    def open(self, executor: Executor, asking: bool) -> None:
        self._open(executor, asking)

    @precondition(lambda self: self._far())
    @rule(number=which, outcome=outcomes, after=later)
    def settle(self, number: int, outcome: Outcome, after: int) -> None:
        call, now = _pick(self._far(), number), self._later(after)
        _same(self.log.do(_settles(call, outcome)), call.settle(outcome, now))

    @precondition(lambda self: self._gated())
    @rule(number=which, answer=answers, after=later)
    def answer(self, number: int, answer: Answer, after: int) -> None:
        call, now = _pick(self._gated(), number), self._later(after)
        _same(self.log.do(_answers(call, answer)), call.say(answer, now))

    @precondition(lambda self: self._far())
    @rule(number=which, holder=holders, after=later)
    def take(self, number: int, holder: str, after: int) -> None:
        call, now = _pick(self._far(), number), self._later(after)
        receipt = self.log.do(lambda thread, at: calls.take(thread, call.call_id, holder, now=at))
        _same(receipt, call.take(holder, now))

    @precondition(lambda self: self._far())
    @rule(number=which, holder=holders, after=later)
    def release(self, number: int, holder: str, after: int) -> None:
        held = [call for call in self._far() if call.holder is not None] or self._far()
        call, now = _pick(held, number), self._later(after)
        receipt = self.log.do(lambda thread, at: calls.release(thread, call.call_id, holder, now=at))
        _same(receipt, call.release(holder, now))

    @precondition(lambda self: self._near())
    @rule(number=which, outcome=outcomes, after=later)
    def run_server_tool(self, number: int, outcome: Outcome, after: int) -> None:
        """What needs no approval or has one is run; what has none cannot be finished from our side either."""
        call = _pick(self._near(), number)
        if call.holder is None:
            tool = TOOLS[Executor.SERVER]
            start = partial(calls.start, call_id=call.call_id, tool=tool, timeouts=TIMEOUTS)
            started = self.log.do(lambda thread, at: start(thread, now=at))
            assert (started is not None) == call.start(self.log.now)
        now = self._later(after)
        receipt = self.log.do(lambda thread, at: calls.finish(thread, call.call_id, outcome, now=at))
        _same(receipt, call.finish(outcome, now))

    @precondition(lambda self: self._near())
    @rule(number=which, outcome=outcomes)
    def answer_a_server_tool_from_afar(self, number: int, outcome: Outcome) -> None:
        call = _pick(self._near(), number)
        assert self.log.do(_settles(call, outcome)) == Unknown()
        assert self.log.do(lambda thread, at: calls.take(thread, call.call_id, "tab", now=at)) == Unknown()
        assert self.log.do(lambda thread, at: calls.release(thread, call.call_id, "tab", now=at)) == Unknown()

    @rule(numbers=st.sets(which, min_size=1, max_size=2), after=later)
    def cancel(self, numbers: set[int], after: int) -> None:
        now = self._later(after)
        chosen = [call for number, call in enumerate(self.truth.calls) if number in numbers]
        ids = {call.call_id for call in chosen}
        self.log.do(lambda thread, _: calls.cancel(thread, ids, "stopped"))
        for call in chosen:
            call.cancel("stopped", now)

    @rule(after=later)
    def expire(self, after: int) -> None:
        now = self._later(after)
        for call in self.truth.calls:
            assert self.log.do(_expires(call)) == call.expire(now)

    @precondition(lambda self: self._far())
    @rule(number=which, one=outcomes, other=outcomes, after=later)
    def two_results_race(self, number: int, one: Outcome, other: Outcome, after: int) -> None:
        call, now = _pick(self._far(), number), self._later(after)
        first, second = self.log.race(_settles(call, one), _settles(call, other))
        _same(first, call.settle(one, now))
        _same(second, call.settle(other, now))

    @precondition(lambda self: self._gated())
    @rule(number=which, one=answers, other=answers, after=later)
    def two_answers_race(self, number: int, one: Answer, other: Answer, after: int) -> None:
        call, now = _pick(self._gated(), number), self._later(after)
        first, second = self.log.race(_answers(call, one), _answers(call, other))
        _same(first, call.say(one, now))
        _same(second, call.say(other, now))

    @precondition(lambda self: self._far())
    @rule(number=which, outcome=outcomes, after=later)
    def a_result_races_a_cancel(self, number: int, outcome: Outcome, after: int) -> None:
        call, now = _pick(self._far(), number), self._later(after)

        def cancels(thread: ThreadState, at: float) -> Decision[Receipt]:
            return Decision(Unknown(), calls.cancel(thread, {call.call_id}, "stopped").events)

        _, receipt = self.log.race(cancels, _settles(call, outcome))
        call.cancel("stopped", now)
        _same(receipt, call.settle(outcome, now))

    @precondition(lambda self: self._gated())
    @rule(number=which, outcome=outcomes, answer=answers)
    def bring_answer_and_result_in_one_message(self, number: int, outcome: Outcome, answer: Answer) -> None:
        call, now = _pick(self._gated(), number), self.log.now
        brought: list[Reply | CheckedResult] = [Reply(call.approval_id, answer), _checked(call, outcome)]
        first, second = self.log.do(
            lambda thread, at: calls.accept(thread, brought, now=at, timeouts=TIMEOUTS)
        )
        _same(first, call.say(answer, now))
        _same(second, call.settle(outcome, now))

    @rule()
    def be_taken_over(self) -> None:
        """By force: parked or not."""
        fence = self.truth.fence
        claim = partial(runs.claim, run_id="run_1", fence=fence, timeouts=TIMEOUTS)
        parked = self.truth.parked
        answer = self.log.do(lambda thread, at: claim(thread, may_repeat=lambda call: True, now=at))
        if parked and self.truth.waits:
            assert answer is None
            return
        assert answer == fence + 1
        self.truth.claim()
        for call in self._near():
            if call.is_open and not call.asking and call.holder is not None:
                call.start(self.log.now)

    @precondition(lambda self: self.truth.old_fences)
    @rule(number=st.integers(0, 9))
    def write_with_a_stale_fence(self, number: int) -> None:
        fence = self.truth.old_fences[number % len(self.truth.old_fences)]
        version = self.log.state.version
        assert not self.log.do(lambda thread, _: runs.write(thread, fence, (TextAdded(0, "late"),), after=0))
        assert self.log.do(lambda thread, _: runs.park(thread, fence)) == "lost"
        assert self.log.state.version == version

    @rule()
    def park(self) -> None:
        was_parked = self.truth.parked
        parked = self.log.do(lambda thread, _: runs.park(thread, self.truth.fence))
        # again after an answer that was lost: it is as it was
        assert (parked == "parked") == (self.truth.park() or was_parked)

    @rule()
    def lose_everything_that_is_not_stored(self) -> None:
        again = self.log.read_again()
        assert again == self.log.state
        self.log.state = again

    @invariant()
    def every_call_is_what_the_model_says(self) -> None:
        for call in self.truth.calls:
            stored = self.log.state.calls[call.call_id]
            assert _kind(stored.outcome) == _kind(call.outcome)
            assert (stored.settled_at or 0.0) == call.ended_at
            assert stored.deadline == call.deadline
            assert (None if stored.take is None else stored.take.holder) == call.holder

    @invariant()
    def the_run_is_what_the_model_says(self) -> None:
        run = self.log.state.run
        assert run is not None
        assert (run.state is RunState.WAITING) == self.truth.waits
        assert (run.fence, run.is_parked) == (self.truth.fence, self.truth.parked)

    @invariant()
    def each_end_is_in_the_log_once(self) -> None:
        ends = [event.call_id for event in self.log.events() if isinstance(event, CallSettled)]
        assert sorted(ends) == sorted(call.call_id for call in self.truth.calls if not call.is_open)

    def _later(self, seconds: int) -> float:
        self.log.now += seconds
        return self.log.now

    def _open(self, executor: Executor, asking: bool) -> None:
        self.ids += 1
        is_far, now = executor is not Executor.SERVER, self.log.now
        opening = Opening(
            call_id=f"call_{self.ids}",
            tool=TOOLS[executor],
            input={},
            step=0,
            timeout_sec=FAR_TIMEOUT if is_far else None,
            approval_id=f"apr_{self.ids}" if asking else None,
        )
        self.log.do(lambda thread, at: Decision(None, (opened(thread, opening, now=at, timeouts=TIMEOUTS),)))
        deadline = now + (ASK_TIMEOUT if asking else FAR_TIMEOUT)
        truth = CallTruth(
            opening.call_id, f"apr_{self.ids}", is_far, deadline, is_gated=asking, asking=asking
        )
        truth.start(now)
        self.truth.calls.append(truth)

    def _far(self) -> list[CallTruth]:
        return [call for call in self.truth.calls if call.is_far]

    def _near(self) -> list[CallTruth]:
        return [call for call in self.truth.calls if not call.is_far]

    def _gated(self) -> list[CallTruth]:
        return [call for call in self.truth.calls if call.is_gated]


def _checked(call: CallTruth, outcome: Outcome) -> CheckedResult:
    return CheckedResult(Result(call_id=call.call_id, outcome=outcome), outcome)


def _settles(call: CallTruth, outcome: Outcome) -> Command[Receipt]:
    checked = _checked(call, outcome)
    return lambda thread, now: calls.settle(thread, checked, now=now)


def _expires(call: CallTruth) -> Command[bool]:
    return lambda thread, now: calls.expire(thread, call.call_id, now=now)


def _answers(call: CallTruth, answer: Answer) -> Command[Receipt]:
    reply = Reply(call.approval_id, answer)
    return lambda thread, now: calls.approve(thread, reply, now=now, timeouts=TIMEOUTS)


def _pick(pool: list[CallTruth], number: int) -> CallTruth:
    """Mostly one that is still open: there are many late-comers anyway."""
    chosen = [call for call in pool if call.is_open and number > 1] or pool
    return chosen[number % len(chosen)]


def _same(receipt: Receipt, expected: Told) -> None:
    winner = receipt.winner if isinstance(receipt, Conflict | Refused) else None
    reason = receipt.reason if isinstance(receipt, Refused) else ""
    assert Told(type(receipt).__name__, reason, "" if winner is None else winner.kind) == expected


def _kind(outcome: Outcome | None) -> str:
    return "" if outcome is None else kind_of(outcome)
