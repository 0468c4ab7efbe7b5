"""Random histories of calls at real desks, on a real store, compared with a plain model after every step.

Time is the test's own; a crash drops whatever was only in memory. Several hands may come at once, also at two
workers: then the machine does not know who wins, but it knows that there is one winner and that all are told
the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from farhand.calls.desk import Desk, Reply
from farhand.core.approval import Answer
from farhand.core.call import Call
from farhand.core.decide import runs
from farhand.core.decide.decision import Decision
from farhand.core.decide.opening import Opening, opened
from farhand.core.event import CallSettled, TextAdded
from farhand.core.outcome import Cancelled, Failure, Outcome, Success, TimedOut, kind_of
from farhand.core.principal import Owner
from farhand.core.result import Accepted, Conflict, Receipt, Refused, Result, Unknown
from farhand.core.run import Run
from farhand.core.settings import Timeouts
from farhand.core.state import ThreadState
from farhand.core.thread import Text, UserMessage
from farhand.core.tool import Executor, Tool
from farhand.eventlog.codec import fold_loaded
from farhand.eventlog.log import EventLog
from farhand.store.base import Store
from farhand.testing import FakeClock
from tests.laws.call_model import ASK_TIMEOUT, FAR_TIMEOUT, CallTruth, RunTruth, Told

ANN = Owner("acme", "ann")
BOB = Owner("acme", "bob")
MOST_CALLS = 8
THREAD, RUN = "t1", "run_1"
TIMEOUTS = Timeouts()
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

T = TypeVar("T")
U = TypeVar("U")

which = st.integers(0, MOST_CALLS - 1)
outcomes = st.sampled_from([Success("a"), Success("b"), Failure("a"), Failure("b")])
answers = st.sampled_from(
    [Answer(approved=True), Answer(approved=False, reason="no"), Answer(approved=False)]
)
holders = st.sampled_from(["tab", "tab", "tab", "phone"])
executors = st.sampled_from([Executor.FRONTEND, Executor.FRONTEND, Executor.CLIENT, Executor.SERVER])
asks = st.sampled_from([False, False, True])
later = st.sampled_from([0] * 12 + [1, 29, 30, 59, 60, 100])
"""Seconds that pass before somebody comes; the edges of a take, of a call and of a question among them."""


class CallMachine(RuleBasedStateMachine):
    """Derived once per store: say how it is opened, and what is left of it after a crash."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock()
        self.truth = RunTruth()
        self._work_on(self.go(self.open_store()))
        message = UserMessage("m1", (Text("hello"),))
        self.go(
            self.log.decide(ANN, THREAD, lambda thread, now: runs.begin(thread, message, runs.NewRun(RUN)))
        )

    async def open_store(self) -> Store:
        raise NotImplementedError

    async def crash(self) -> Store:
        raise NotImplementedError

    def delay_next_append(self, seconds: float) -> bool:
        """So much time passes between the next decision and its append; False where nobody can make it."""
        return False

    def go(self, work: Coroutine[object, object, T]) -> T:
        return self.loop.run_until_complete(_bounded(work))

    def teardown(self) -> None:
        self.go(self.log.close())
        self.loop.close()

    @initialize(calls=st.lists(st.tuples(executors, asks), min_size=1, max_size=3))
    def begin(self, calls: list[tuple[Executor, bool]]) -> None:
        for executor, asking in calls:
            self._open(executor, asking)

    @precondition(lambda self: len(self.truth.calls) < MOST_CALLS)
    @rule(executor=executors, asking=asks)
    def open(self, executor: Executor, asking: bool) -> None:
        self._open(executor, asking)

    @precondition(lambda self: self._far())
    @rule(number=which, outcome=outcomes, after=later)
    def settle(self, number: int, outcome: Outcome, after: int) -> None:
        call, now = _pick(self._far(), number), self.clock.advance(after)
        receipt = self.go(self.desk.settle(ANN, Result(call_id=call.call_id, outcome=outcome)))
        _same(receipt, call.settle(outcome, now))

    @precondition(lambda self: self._far())
    @rule(number=which, outcome=outcomes, after=st.sampled_from([1, 29, 59, 60, 100]))
    def settle_slowly(self, number: int, outcome: Outcome, after: int) -> None:
        """Decided in time and perhaps stored too late: the store's clock judges."""
        call = _pick(self._far(), number)
        if not call.is_open or call.asking or not self.delay_next_append(after):
            return
        decided_at = self.clock.now()
        receipt = self.go(self.desk.settle(ANN, Result(call_id=call.call_id, outcome=outcome)))
        is_decided_again = not call.is_overdue(decided_at) and call.is_overdue(self.clock.now())
        _same(receipt, call.settle(outcome, self.clock.now() if is_decided_again else decided_at))

    @precondition(lambda self: self._gated())
    @rule(number=which, answer=answers, after=later)
    def say(self, number: int, answer: Answer, after: int) -> None:
        call, now = _pick(self._gated(), number), self.clock.advance(after)
        receipt = self.go(self.desk.approve(ANN, call.approval_id, answer))
        _same(receipt, call.say(answer, now))

    @precondition(lambda self: self._far())
    @rule(number=which, holder=holders, after=later)
    def take(self, number: int, holder: str, after: int) -> None:
        call, now = _pick(self._far(), number), self.clock.advance(after)
        receipt = self.go(self.desk.take(ANN, call.call_id, holder))
        _same(receipt, call.take(holder, now))

    @precondition(lambda self: self._far())
    @rule(number=which, holder=holders, after=later)
    def release(self, number: int, holder: str, after: int) -> None:
        held = [call for call in self._far() if call.holder is not None] or self._far()
        call, now = _pick(held, number), self.clock.advance(after)
        receipt = self.go(self.desk.release(ANN, call.call_id, holder))
        _same(receipt, call.release(holder, now))

    @precondition(lambda self: self._near())
    @rule(number=which, outcome=outcomes, after=later)
    def run_own_tool(self, number: int, outcome: Outcome, after: int) -> None:
        """What needs no yes or has one is run; what has none cannot be finished, also from our side."""
        call = _pick(self._near(), number)
        if call.holder is None:
            stored, tool = self.go(self._stored(call)), TOOLS[Executor.SERVER]
            started = self.go(self.desk.start(stored, tool, fence=self.truth.fence))
            assert (started is not None) == call.start(self.clock.now())
        now = self.clock.advance(after)
        receipt = self.go(self.desk.finish(self.go(self._stored(call)), outcome))
        _same(receipt, call.finish(outcome, now))

    @rule(number=which, outcome=outcomes)
    def come_where_one_has_no_business(self, number: int, outcome: Outcome) -> None:
        """Somebody else's call, and one that runs on our side, do not exist for a hand from afar."""
        call = _pick(self.truth.calls, number)
        result = Result(call_id=call.call_id, outcome=outcome)
        owner = BOB if call.is_far else ANN
        assert self.go(self.desk.settle(owner, result)) == Unknown()
        assert self.go(self.desk.take(owner, call.call_id, "tab")) == Unknown()
        assert self.go(self.desk.release(owner, call.call_id, "tab")) == Unknown()
        assert self.go(self.desk.approve(BOB, call.approval_id, Answer(approved=True))) == Unknown()

    @rule(numbers=st.sets(which, min_size=1, max_size=2), after=later)
    def cancel(self, numbers: set[int], after: int) -> None:
        now = self.clock.advance(after)
        calls = [call for number, call in enumerate(self.truth.calls) if number in numbers]
        stored = [self.go(self._stored(call)) for call in calls]
        count = sum(call.is_open for call in calls)
        assert self.go(self.desk.cancel(stored, "stopped")) == count
        for call in calls:
            call.cancel("stopped", now)

    @rule(after=later)
    def expire(self, after: int) -> None:
        now = self.clock.advance(after)
        due = self.go(self.log.due(before=now + 0.001, limit=100))
        overdue = {call.call_id for call in self.truth.calls if call.is_overdue(now)}
        assert {item.call_id for item in due} == overdue
        for item in due:
            assert self.go(self.desk.expire(item))
            assert not self.go(self.desk.expire(item))
        assert all(call.expire(now) for call in self.truth.calls if call.call_id in overdue)

    @precondition(lambda self: self._far())
    @rule(number=which, brought=st.lists(outcomes, min_size=2, max_size=4), after=later)
    def settle_at_once(self, number: int, brought: list[Outcome], after: int) -> None:
        call, now = _pick(self._far(), number), self.clock.advance(after)
        results = [Result(call_id=call.call_id, outcome=outcome) for outcome in brought]
        desks = (self.desk, self.desk_elsewhere)
        hands = (desks[place % 2].settle(ANN, result) for place, result in enumerate(results))
        receipts = self.go(_together(*hands))
        winner = self.go(self._stored(call)).winner
        for outcome, receipt in _winner_first(brought, receipts):
            _same(receipt, call.settle(outcome, now))
            told = receipt.winner if isinstance(receipt, Conflict | Refused) else None
            assert told in (None, winner)

    @precondition(lambda self: self._gated())
    @rule(number=which, given=st.lists(answers, min_size=2, max_size=3), after=later)
    def say_at_once(self, number: int, given: list[Answer], after: int) -> None:
        call, now = _pick(self._gated(), number), self.clock.advance(after)
        desks = (self.desk, self.desk_elsewhere)
        replies = (
            desks[place % 2].approve(ANN, call.approval_id, answer) for place, answer in enumerate(given)
        )
        receipts = self.go(_together(*replies))
        for answer, receipt in _winner_first(given, receipts):
            _same(receipt, call.say(answer, now))

    @precondition(lambda self: any(not call.asking for call in self._far()))
    @rule(number=which, outcome=outcomes, after=later)
    def settle_while_it_is_cancelled(self, number: int, outcome: Outcome, after: int) -> None:
        call = _pick([call for call in self._far() if not call.asking], number)
        now = self.clock.advance(after)
        cancelling = self.desk_elsewhere.cancel([self.go(self._stored(call))], "stopped")
        settling = self.desk.settle(ANN, Result(call_id=call.call_id, outcome=outcome))
        _, receipt = self.go(_both(cancelling, settling))
        if isinstance(self.go(self._stored(call)).outcome, Cancelled):
            call.cancel("stopped", now)
        _same(receipt, call.settle(outcome, now))

    @precondition(lambda self: self._far() and self._gated())
    @rule(number=which, outcome=outcomes, answer=answers)
    def bring_answer_and_result_in_one_message(self, number: int, outcome: Outcome, answer: Answer) -> None:
        call, now = _pick(self._gated(), number), self.clock.now()
        if call.is_overdue(now):
            return
        brought = (Reply(call.approval_id, answer), Result(call_id=call.call_id, outcome=outcome))
        first, second = self.go(self.desk.accept(ANN, *brought))
        _same(first, call.say(answer, now))
        _same(second, call.settle(outcome, now))

    @rule()
    def be_taken_over(self) -> None:
        """By a worker that may run tools again, parked or not."""
        fence = self.truth.fence

        def claim(thread: ThreadState, now: float) -> Decision[int | None]:
            return runs.claim(thread, RUN, fence, lambda call: True, now=now, timeouts=TIMEOUTS)

        answer = self.go(self.log.decide(ANN, THREAD, claim))
        if self.truth.parked and self.truth.waits:
            assert answer is None
            return
        assert answer == fence + 1
        self.truth.claim()
        for call in self._near():
            if call.is_open and not call.asking and call.holder is not None:
                call.start(self.clock.now())

    @precondition(lambda self: self.truth.old_fences)
    @rule(number=st.integers(0, 9))
    def write_with_a_stale_fence(self, number: int) -> None:
        fence = self.truth.old_fences[number % len(self.truth.old_fences)]
        before = self.go(self._run())
        late = (TextAdded(0, "late"),)
        written = self.log.decide(
            ANN, THREAD, lambda thread, now: runs.write(thread, fence, late, after=before.last_seq)
        )
        assert self.go(written) is None
        parked = self.log.decide(ANN, THREAD, lambda thread, now: runs.park(thread, fence))
        assert self.go(parked) == "lost"
        assert self.go(self._run()) == before

    @rule()
    def park(self) -> None:
        was_parked, fence = self.truth.parked, self.truth.fence
        parked = self.go(self.log.decide(ANN, THREAD, lambda thread, now: runs.park(thread, fence)))
        # again after an answer that was lost: it is as it was
        assert (parked == "parked") == (self.truth.park() or was_parked)

    @rule()
    def lose_everything_that_is_not_kept(self) -> None:
        self._work_on(self.go(self.crash()))
        self.go(self.log.recover())

    @invariant()
    def every_call_is_what_the_model_says(self) -> None:
        for call in self.truth.calls:
            stored = self.go(self._stored(call))
            assert _outcome(stored.outcome) == _outcome(call.outcome)
            assert (stored.settled_at or 0.0) == call.ended_at
            assert stored.deadline == call.deadline
            assert (None if stored.take is None else stored.take.holder) == call.holder
            found = self.go(self.store.find_call(ANN, "call", call.call_id))
            assert found is not None
            assert found.call == stored

    @invariant()
    def the_run_counts_right(self) -> None:
        run = self.go(self._run())
        assert run.waits == self.truth.waits
        assert (run.fence, run.parked) == (self.truth.fence, self.truth.parked)
        claimable = self.go(self.store.claimable(limit=10))
        assert bool(claimable) == (not run.parked or not run.waits)

    @invariant()
    def the_journal_has_no_gap_and_tells_of_each_end_once(self) -> None:
        entries = self.go(self.log.entries(self.go(self._run())))
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        told = [entry.event.call_id for entry in entries if isinstance(entry.event, CallSettled)]
        ended = [call.call_id for call in self.truth.calls if not call.is_open]
        assert sorted(told) == sorted(ended)

    @invariant()
    def what_is_cached_is_the_fold_of_the_log(self) -> None:
        state = fold_loaded(ANN, THREAD, self.go(self.store.load(ANN, THREAD)))
        assert self.go(self.log.read(ANN, THREAD, lambda thread: thread == state))

    def _work_on(self, store: Store) -> None:
        self.store = store
        self.log = EventLog(store)
        self.desk = Desk(self.log, TIMEOUTS)
        elsewhere = EventLog(store) if store.is_shared else self.log
        self.desk_elsewhere = Desk(elsewhere, TIMEOUTS)
        """Of another worker, where there may be one."""

    def _open(self, executor: Executor, asking: bool) -> None:
        is_far, now = executor is not Executor.SERVER, self.clock.now()
        approval_id = self.clock.fresh("apr")
        opening = Opening(
            call_id=self.clock.fresh("call"),
            tool=TOOLS[executor],
            input={},
            timeout_sec=FAR_TIMEOUT if is_far else None,
            approval_id=approval_id if asking else None,
        )

        def command(thread: ThreadState, at: float) -> Decision[None]:
            event = opened(thread, opening, now=at, timeouts=TIMEOUTS)
            return Decision(None, (event,), tools=(opening.tool,))

        self.go(self.log.decide(ANN, THREAD, command))
        deadline = now + (ASK_TIMEOUT if asking else FAR_TIMEOUT)
        truth = CallTruth(opening.call_id, approval_id, is_far, deadline, is_gated=asking, asking=asking)
        # a tool of ours that needs no approval runs at once
        truth.start(now)
        self.truth.calls.append(truth)

    async def _run(self) -> Run:
        run = await self.log.get_run(ANN, RUN)
        assert run is not None
        return run

    async def _stored(self, call: CallTruth) -> Call:
        stored = await self.log.get_call(ANN, call.call_id)
        assert stored is not None
        return stored

    def _far(self) -> list[CallTruth]:
        return [call for call in self.truth.calls if call.is_far]

    def _near(self) -> list[CallTruth]:
        return [call for call in self.truth.calls if not call.is_far]

    def _gated(self) -> list[CallTruth]:
        return [call for call in self.truth.calls if call.is_gated]


def _pick(calls: list[CallTruth], number: int) -> CallTruth:
    """Mostly one that is still open: late comers are many anyway."""
    pool = [call for call in calls if call.is_open and number > 1] or calls
    return pool[number % len(pool)]


def _winner_first(brought: list[T], receipts: list[Receipt]) -> list[tuple[T, Receipt]]:
    """The truth is the same in whatever order they came: one is accepted, the others are told of it."""
    return sorted(zip(brought, receipts, strict=True), key=lambda pair: pair[1] != Accepted())


def _same(receipt: Receipt, expected: Told) -> None:
    winner = receipt.winner if isinstance(receipt, Conflict | Refused) else None
    reason = receipt.reason if isinstance(receipt, Refused) else ""
    assert Told(type(receipt).__name__, reason, "" if winner is None else winner.kind) == expected


async def _bounded(work: Coroutine[object, object, T]) -> T:
    async with asyncio.timeout(30):
        return await work


async def _together(*work: Coroutine[object, object, T]) -> list[T]:
    return await asyncio.gather(*work)


async def _both(one: Coroutine[object, object, T], other: Coroutine[object, object, U]) -> tuple[T, U]:
    return await asyncio.gather(one, other)


def _outcome(outcome: Outcome | None) -> object:
    """How long a call was waited for is told with its end, but it is not part of the model."""
    return kind_of(outcome) if isinstance(outcome, TimedOut) else outcome
