"""The rules of a call: who may move it, when, and which receipts latecomers get.

One function per command. Several results and answers of one message are decided together by `accept`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from farhand.core.approval import Answer, Approval
from farhand.core.call import Call, Phase
from farhand.core.call_state import moved
from farhand.core.decide.decision import Decision, late_answer, late_result
from farhand.core.decide.opening import ready_deadline, server_deadline, server_holder
from farhand.core.event import (
    SERVER,
    ApprovalAnswered,
    CallMove,
    CallReleased,
    CallSettled,
    CallTaken,
    Event,
    TakeRenewed,
    ToolAllowed,
)
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, TimedOut, canonical, digest
from farhand.core.principal import Claims
from farhand.core.result import Accepted, Receipt, Refused, Result, Unknown
from farhand.core.settings import Timeouts
from farhand.core.state import ThreadState
from farhand.core.tool import Executor, Tool, digest_of_approval

T = TypeVar("T")

CHANGED = Failure("The tool changed since it was approved and was not run; ask again.")
MOST_SPANS = 10
"""A call may take this many times its own time in total while its client reports progress."""

ASKER_GONE = "the tool that asked has ended"
UNKNOWN_END = Failure(
    "The server stopped while this tool was running. Whether it took effect is unknown; it was not run again."
)


class Reply(Struct, frozen=True, gc=False):
    """A person's answer to an approval."""

    approval_id: str
    answer: Answer
    by: Claims = {}
    """The claims of that person."""


class CheckedResult(Struct, frozen=True, gc=False):
    """A far hand's result with its outcome after the output was checked against the schema."""

    result: Result
    outcome: Outcome
    summary: str | None = None
    """A short summary of the output, for people."""


class Plan:
    """The calls of a thread after the events decided so far. Local to one decision."""

    def __init__(self, thread: ThreadState, now: float) -> None:
        self.events: list[Event] = []
        self.not_after: float | None = None
        self.not_before: float | None = None
        self.now = now
        self.thread = thread
        """As it was before them."""
        self._calls: dict[str, Call] = {}

    def call(self, call_id: str) -> Call | None:
        return self._calls.get(call_id) or self.thread.calls.get(call_id)

    def call_of_approval(self, approval_id: str) -> Call | None:
        call = self.thread.call_of_approval(approval_id)
        return None if call is None else self.call(call.call_id)

    def add(self, call: Call, *events: CallMove) -> Call:
        """Moves the call by these events."""
        for event in events:
            call = moved(call, event, self.now)
        self._calls[call.call_id] = call
        self.events += events
        return call

    def end_questions(self, call_id: str) -> None:
        """The tool of this call has ended: its open questions are cancelled."""
        for call in self.thread.open_calls():
            if call.parent is not None and call.parent.call_id == call_id:
                self.add(call, _cancelled(call, ASKER_GONE))

    def require_in_time(self, call: Call) -> None:
        """The store refuses these events once the deadline of the call has passed."""
        limits = [each for each in (self.not_after, call.deadline) if each is not None]
        self.not_after = min(limits, default=None)

    def require_overdue(self, call: Call) -> None:
        """The store refuses these events until the deadline of the call has passed."""
        self.not_before = max(call.deadline or 0.0, self.not_before or 0.0)

    def decision(self, answer: T) -> Decision[T]:
        return Decision(answer, tuple(self.events), not_after=self.not_after, not_before=self.not_before)


# --------------------------------------------------------------------- results and answers of far hands


def settle(thread: ThreadState, checked: CheckedResult, *, now: float) -> Decision[Receipt]:
    """A far hand's result. The first one that is stored wins, no matter who has taken the call: a take only
    keeps others from doing the same work."""
    plan = Plan(thread, now)
    receipt = _settle(plan, checked)
    return plan.decision(receipt)


def approve(thread: ThreadState, reply: Reply, *, now: float, timeouts: Timeouts) -> Decision[Receipt]:
    """A person's answer. The first one that is stored wins; see `late_answer` for the others."""
    plan = Plan(thread, now)
    receipt = _answer(plan, reply, timeouts=timeouts)
    return plan.decision(receipt)


def accept(
    thread: ThreadState, submissions: Sequence[CheckedResult | Reply], *, now: float, timeouts: Timeouts
) -> Decision[list[Receipt]]:
    """All submissions of one message: those that are accepted are accepted together."""
    plan = Plan(thread, now)
    receipts: list[Receipt] = []
    for item in submissions:
        if isinstance(item, Reply):
            receipts.append(_answer(plan, item, timeouts=timeouts))
        else:
            receipts.append(_settle(plan, item))
    return plan.decision(receipts)


def _settle(plan: Plan, checked: CheckedResult) -> Receipt:
    result = checked.result
    call = plan.call(result.call_id)
    # nobody else answers for a server tool
    if call is None or call.executor is Executor.SERVER:
        return Unknown()
    if call.phase is Phase.SETTLED:
        return late_result(call, sent=digest(result.outcome))
    if call.phase is Phase.ASKING:
        return Refused("not_approved")
    if is_overdue(call, plan.now):
        return _settle_as_expired(plan, call)
    plan.require_in_time(call)
    plan.add(call, settled(call, checked.outcome, result=result, summary=checked.summary))
    return Accepted()


def _answer(plan: Plan, reply: Reply, *, timeouts: Timeouts) -> Receipt:
    call = plan.call_of_approval(reply.approval_id)
    if call is None or call.approval is None:
        return Unknown()
    late = late_answer(call, reply.answer)
    if late is not None:
        return late
    if is_overdue(call, plan.now):
        return _settle_as_expired(plan, call)
    plan.require_in_time(call)
    _add_answer(plan, call, reply, timeouts=timeouts)
    return Accepted()


def _add_answer(plan: Plan, call: Call, reply: Reply, *, timeouts: Timeouts) -> None:
    assert call.approval is not None, "only a call with an approval is answered"
    answer = reply.answer
    if not answer.approved:
        denied = replace(call.approval, answer=answer, answered_at=plan.now, by=reply.by)
        event = _answer_event(call, denied, call.input, call.deadline)
        plan.add(call, event, settled(call, Denied(answer.reason)))
        return
    input = call.input if answer.input is None else answer.input
    # compared as JSON: in Python 1, 1.0 and true are equal
    is_edited = canonical(input) != canonical(call.input)
    # an approval without an edit answers the question as it was asked, so it keeps its digest
    asked = call.approval.digest
    approval = replace(
        call.approval,
        digest=asked if answer.input is None else digest_of_approval(call.tool_version, input),
        answer=answer,
        answered_at=plan.now,
        asked_input=call.input if is_edited else None,
        by=reply.by,
    )
    if call.run_id is None and call.executor is Executor.SERVER:
        # it may never have a caller attached: its time counts from the approval
        deadline: float | None = server_deadline(call.timeout_sec, plan.now, timeouts)
    else:
        deadline = ready_deadline(
            call.executor,
            call.timeout_sec,
            is_typed=call.is_typed,
            is_held=_is_held(plan.thread, call),
            now=plan.now,
            timeouts=timeouts,
        )
    plan.add(call, _answer_event(call, approval, input, deadline))
    if answer.scope == "thread":
        plan.events.append(ToolAllowed(call.tool, call.tool_version, reply.by))


def _answer_event(
    call: Call, approval: Approval, input: dict[str, object], deadline: float | None
) -> ApprovalAnswered:
    return ApprovalAnswered(
        call_id=call.call_id,
        tool=call.tool,
        executor=call.executor,
        approval=approval,
        input=input,
        deadline=deadline,
    )


def _is_held(thread: ThreadState, call: Call) -> bool:
    """Whether a process holds the run of this call. Never for a direct call or a question: these are waited
    for as long as a park lasts."""
    if call.run_id is None or call.parent is not None:
        return False
    return thread.run is not None and not thread.run.is_parked


# ------------------------------------------------------------------------------------- take, release


def take(
    thread: ThreadState,
    call_id: str,
    holder: str,
    *,
    now: float,
    instead_of: str | None = None,
    deadline: float | None = None,
) -> Decision[Receipt]:
    """Accepted means: execute it. A take expires and is renewed by taking again. `instead_of` names a holder
    whose own take ends with this one; `deadline` is the new one if this moves it."""
    call = _far_call(thread, call_id)
    if call is None:
        return Decision(Unknown())
    if call.phase is Phase.SETTLED:
        return Decision(late_result(call, sent=None))
    if call.phase is Phase.ASKING:
        return Decision(Refused("not_approved"))
    held_by = None if call.take is None or call.take.until <= now else call.take.holder
    if held_by not in (None, holder, instead_of):
        return Decision(Refused("taken"))
    if is_overdue(call, now):
        return _decide_expired(thread, call, now)
    if held_by == holder:
        return Decision(Accepted(), (TakeRenewed(call_id, holder, deadline),), not_after=call.deadline)
    return Decision(Accepted(), (CallTaken(call_id, holder, deadline),), not_after=call.deadline)


def renew(
    thread: ThreadState, call_id: str, holder: str, *, now: float, timeouts: Timeouts
) -> Decision[Receipt]:
    """Like `take`, for a registered client that reports progress: its time starts again now, up to
    `MOST_SPANS` times that time in total."""
    call = thread.calls.get(call_id)
    deadline = None if call is None else _renewed_deadline(call, now, timeouts)
    return take(thread, call_id, holder, now=now, deadline=deadline)


def _renewed_deadline(call: Call, now: float, timeouts: Timeouts) -> float | None:
    if call.executor is not Executor.CLIENT or call.deadline is None:
        return None
    span = call.timeout_sec or timeouts.client_call
    answered_at = None if call.approval is None else call.approval.answered_at
    ready_at = answered_at or call.opened_at
    return max(call.deadline, min(now + span, ready_at + MOST_SPANS * span))


def release(thread: ThreadState, call_id: str, holder: str, *, now: float) -> Decision[Receipt]:
    """Gives a taken call back, so that another client may execute it."""
    call = _far_call(thread, call_id)
    if call is None:
        return Decision(Unknown())
    if call.phase is Phase.SETTLED:
        return Decision(late_result(call, sent=None))
    if call.take is None or call.take.holder != holder:
        return Decision(Refused("taken"))
    if is_overdue(call, now):
        return _decide_expired(thread, call, now)
    return Decision(Accepted(), (CallReleased(call_id),), not_after=call.deadline)


# ------------------------------------------------------------------------------- tools of the server


def start(
    thread: ThreadState,
    call_id: str,
    tool: Tool | None,
    *,
    now: float,
    timeouts: Timeouts,
    fence: int | None = None,
) -> Decision[Call | None]:
    """Starts a server tool: the intent is stored before the effect. None if it must not start: another
    process was faster, the run was taken over, or the tool is not the one that was approved (then the call
    fails)."""
    call = thread.calls.get(call_id)
    if call is None or call.executor is not Executor.SERVER or call.phase is not Phase.READY:
        return Decision(None)
    if fence is not None and not is_claimed(thread, fence):
        return Decision(None)
    if tool is None or tool.version != call.tool_version or not is_as_approved(call):
        return Decision(None, (settled(call, CHANGED),))
    event = CallTaken(call_id, SERVER, server_deadline(call.timeout_sec, now, timeouts))
    return Decision(moved(call, event, now), (event,))


def start_direct(
    thread: ThreadState, seen: Call, tool: Tool | None, worker: str, *, now: float, timeouts: Timeouts
) -> Decision[Call | None]:
    """Like `start`, for a call without a run, by this worker. Its time has been counting since it was opened
    or approved. A call held by a worker that is gone is taken over, if it is still as it was `seen` then."""
    call = thread.calls.get(seen.call_id)
    if call is None or call.executor is not Executor.SERVER or call.run_id is not None:
        return Decision(None)
    if call.phase not in (Phase.READY, Phase.TAKEN) or call.version != seen.version:
        return Decision(None)
    if is_overdue(call, now):
        return Decision(None, with_questions(thread, _timed_out(call)), not_before=call.deadline)
    if tool is None or tool.version != call.tool_version or not is_as_approved(call):
        return Decision(None, with_questions(thread, settled(call, CHANGED)))
    deadline = call.deadline or server_deadline(call.timeout_sec, now, timeouts)
    event = CallTaken(call.call_id, server_holder(worker), deadline)
    return Decision(moved(call, event, now), (event,), not_after=call.deadline)


def abandon(thread: ThreadState, seen: Call) -> Decision[bool]:
    """A direct call whose worker disappeared while its tool was running: its outcome is unknown, however late
    it is by now. False if the call has changed since it was `seen`."""
    call = thread.calls.get(seen.call_id)
    if call is None or call.phase is not Phase.TAKEN or call.version != seen.version:
        return Decision(False)
    return Decision(True, with_questions(thread, settled(call, UNKNOWN_END)))


def finish(
    thread: ThreadState,
    call_id: str,
    outcome: Outcome,
    *,
    now: float,
    summary: str | None = None,
    fence: int | None = None,
) -> Decision[Receipt]:
    """The outcome of a tool that ran on the server, for the claim that started it: another claim on the run
    may have started the tool again, and then that outcome counts."""
    call = thread.calls.get(call_id)
    if call is None:
        return Decision(Unknown())
    if call.phase is Phase.SETTLED:
        return Decision(late_result(call, sent=digest(outcome)))
    if fence is not None and not is_claimed(thread, fence):
        return Decision(Refused("taken"))
    if call.phase is not Phase.TAKEN or call.executor is not Executor.SERVER:
        return Decision(Refused("not_approved"))
    if is_overdue(call, now):
        return _decide_expired(thread, call, now)
    ended = with_questions(thread, settled(call, outcome, summary=summary))
    return Decision(Accepted(), ended, not_after=call.deadline)


def recovered(
    thread: ThreadState, may_repeat: Callable[[Call], bool], *, now: float, timeouts: Timeouts
) -> tuple[Event, ...]:
    """For a run that continues after a crash: a tool that was running is run again only if it may be
    repeated; else its outcome is unknown, however late it is by now."""
    events: list[Event] = []
    for call in thread.step_calls():
        if call.executor is not Executor.SERVER or call.phase is not Phase.TAKEN:
            continue
        if may_repeat(call):
            deadline = server_deadline(call.timeout_sec, now, timeouts)
            events.append(CallTaken(call.call_id, SERVER, deadline))
        else:
            events += with_questions(thread, settled(call, UNKNOWN_END))
    return tuple(events)


def is_as_approved(call: Call) -> bool:
    return call.approval is None or call.approval.digest == digest_of_approval(call.tool_version, call.input)


def is_claimed(thread: ThreadState, fence: int) -> bool:
    """Whether this claim is the run's newest: an older one changes nothing."""
    run = thread.active_run
    return run is not None and run.fence == fence


# --------------------------------------------------------------------------------- ends from outside


def expire(thread: ThreadState, call_id: str, *, now: float) -> Decision[bool]:
    """Settles the call as timed out if its deadline has passed."""
    call = thread.calls.get(call_id)
    if call is None or not is_overdue(call, now):
        return Decision(False)
    return Decision(True, with_questions(thread, _timed_out(call)), not_before=call.deadline)


def cancel(thread: ThreadState, call_ids: Collection[str], reason: str) -> Decision[int]:
    """Cancels the open calls among these; returns how many there were."""
    ended = [_cancelled(call, reason) for call in thread.open_calls() if call.call_id in call_ids]
    return Decision(len(ended), with_questions(thread, *ended))


def give_up(thread: ThreadState, call_ids: Collection[str], error: str) -> Decision[int]:
    """Fails calls whose executor is gone. A call that was not approved yet cannot fail: it is cancelled."""
    ended = [
        _cancelled(call, error) if call.phase is Phase.ASKING else settled(call, Failure(error))
        for call in thread.open_calls()
        if call.call_id in call_ids
    ]
    return Decision(len(ended), with_questions(thread, *ended))


# -------------------------------------------------------------------------------------------- events


def settled(
    call: Call, outcome: Outcome, *, result: Result | None = None, summary: str | None = None
) -> CallSettled:
    """The digest is of the outcome as it was sent, before its output was checked: the same bad output sent
    twice is `Repeated`."""
    return CallSettled(
        call_id=call.call_id,
        tool=call.tool,
        executor=call.executor,
        outcome=outcome,
        digest=digest(outcome if result is None else result.outcome),
        title=None if result is None else result.title,
        metadata=None if result is None else result.metadata,
        summary=summary,
        answered_by="" if result is None else result.by,
    )


def with_questions(thread: ThreadState, *ended: CallSettled) -> tuple[CallSettled, ...]:
    """The ends of these calls, and of their tools' open questions: nobody waits for those answers."""
    call_ids = {event.call_id for event in ended}
    asked = [
        _cancelled(call, ASKER_GONE)
        for call in thread.open_calls()
        if call.parent is not None and call.parent.call_id in call_ids and call.call_id not in call_ids
    ]
    # only server tools ask questions, so a question has none itself
    return (*ended, *asked)


def _cancelled(call: Call, reason: str) -> CallSettled:
    return settled(call, Cancelled(reason))


def _timed_out(call: Call) -> CallSettled:
    assert call.deadline is not None, "only a call with a deadline is overdue"
    if call.timeout_sec is not None and call.phase is not Phase.ASKING:
        return settled(call, TimedOut(call.timeout_sec))
    # an approval has a time of its own, and the call's begins after it
    answered_at = None if call.approval is None else call.approval.answered_at
    return settled(call, TimedOut(round(call.deadline - (answered_at or call.opened_at), 3)))


def is_overdue(call: Call, now: float) -> bool:
    return call.phase is not Phase.SETTLED and call.deadline is not None and call.deadline <= now


def _settle_as_expired(plan: Plan, call: Call) -> Receipt:
    """A submission that comes too late settles the call as timed out, and its receipt says so."""
    plan.require_overdue(call)
    after = plan.add(call, _timed_out(call))
    plan.end_questions(call.call_id)
    return Refused("expired", after.winner)


def _decide_expired(thread: ThreadState, call: Call, now: float) -> Decision[Receipt]:
    plan = Plan(thread, now)
    return plan.decision(_settle_as_expired(plan, call))


def _far_call(thread: ThreadState, call_id: str) -> Call | None:
    """A call that far hands may take and release: not one that runs on the server."""
    call = thread.calls.get(call_id)
    return None if call is None or call.executor is Executor.SERVER else call
