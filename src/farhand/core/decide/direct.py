"""The rules of calls that no model requests.

A direct call is made by a program, without a run; its caller waits for it, or looks it up later. A question
is asked by a running server tool, which waits for the answer.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from farhand.core.call import Call, Phase
from farhand.core.call_state import opened_call
from farhand.core.decide.calls import cancel, is_claimed, is_overdue
from farhand.core.decide.decision import Decision
from farhand.core.decide.opening import BACKSTOP_SEC, Opening, opened
from farhand.core.decide.runs import exceeded_limit
from farhand.core.decide.threads import created
from farhand.core.event import CallersMoved, OutcomeReported, TakeRenewed
from farhand.core.outcome import canonical
from farhand.core.settings import Settings
from farhand.core.state import ThreadState
from farhand.core.tool import Executor


class LimitReached(Struct, frozen=True, gc=False):
    """A limit of open calls is reached; `why` says which."""

    why: str


class RequestUsed(Struct, frozen=True, gc=False):
    """An open call of this thread has the same request id. The store checks settled ones, and other
    threads."""

    call: Call


def open_direct(
    thread: ThreadState, opening: Opening, *, title: str, now: float, settings: Settings, calls_left: int
) -> Decision[Call | LimitReached | RequestUsed]:
    """The opened call, in its thread, which is created if it is new. `calls_left` is how many waiting calls
    the tenant may still open."""
    used = _call_of_request(thread, opening)
    if used is not None:
        return Decision(RequestUsed(used))
    event = opened(thread, opening, now=now, timeouts=settings.timeouts)
    call = opened_call(event, thread.owner, thread.thread_id, None, now)
    if call.blocks:
        waiting = sum(each.blocks for each in thread.open_calls())
        full = exceeded_limit(waiting, calls_left, settings.limits)
        if full is not None:
            return Decision(LimitReached(full))
    return Decision(call, (*created(thread, title), event), tools=(opening.tool,))


def cancel_unwanted(thread: ThreadState, call_ids: Collection[str], reason: str) -> Decision[int]:
    """Cancels those of these calls that nobody needs now that their callers are gone; returns how many there
    were."""
    unwanted = [call.call_id for call in thread.open_calls() if is_unwanted(call)]
    return cancel(thread, [call_id for call_id in call_ids if call_id in unwanted], reason)


def is_unwanted(call: Call) -> bool:
    """Whether nobody but its caller could want this call: it has no request id to look it up by, and nobody
    has approved it."""
    if call.run_id is not None or call.parent is not None:
        # a question ends with the tool that asks it
        return False
    if call.request is not None and call.request.request_id is not None:
        return False
    return call.approval is None or call.approval.answer is None


def needs_worker(call: Call) -> bool:
    """Whether a worker has to check this call without a run regularly: to start its tool, to report its
    outcome, or to end it once its caller is gone. A call that waits for a person or a program, and can be
    looked up by its request id, needs no worker."""
    if call.run_id is not None:
        return False
    if call.phase is Phase.SETTLED:
        return call.is_unreported
    is_for_server = call.executor is Executor.SERVER and call.phase in (Phase.READY, Phase.TAKEN)
    return is_for_server or is_unwanted(call)


def add_caller(
    thread: ThreadState, seen: Call, worker: str, *, ends_with_caller: bool, is_lost: bool
) -> Decision[Call | None]:
    """The call with one more caller, who waits at this worker; None if it is gone.

    A call that ends with its callers stops doing so once one of them waits at another worker, or would leave
    it open: nobody there knows when the others leave. `is_lost`: the worker where they waited when the call
    was `seen` is gone, and so are they.
    """
    call = thread.calls.get(seen.call_id)
    if call is None or call.phase is Phase.SETTLED or call.request is None or call.request.worker is None:
        return Decision(call)
    at = call.request.worker
    was_lost = is_lost and seen.request is not None and seen.request.worker == at
    after = worker if ends_with_caller and (at == worker or was_lost) else None
    return Decision(call, () if after == at else (CallersMoved(call.call_id, after),))


def cancel_with_callers(thread: ThreadState, call_id: str, worker: str, reason: str) -> Decision[int]:
    """The last caller at this worker was cancelled. Cancels the call as well, unless it may have callers
    elsewhere."""
    call = thread.calls.get(call_id)
    if call is None or call.request is None or call.request.worker != worker:
        return Decision(0)
    return cancel(thread, [call_id], reason)


def claim_report(
    thread: ThreadState, seen: Call, worker: str, *, is_lost: bool = False
) -> Decision[Call | None]:
    """This worker reports the outcome to the program; None if another one does. `is_lost`: the one that did
    when the call was `seen` is gone."""
    call = thread.calls.get(seen.call_id)
    if call is None or not call.is_unreported or call.request is None:
        return Decision(None)
    other = call.request.worker
    is_free = other in (None, worker) or (
        is_lost and seen.request is not None and seen.request.worker == other
    )
    if not is_free:
        return Decision(None)
    return Decision(call, (OutcomeReported(call.call_id, worker),))


def reported(thread: ThreadState, call_id: str) -> Decision[bool]:
    """The program has received the outcome."""
    call = thread.calls.get(call_id)
    if call is None or not call.is_unreported:
        return Decision(False)
    return Decision(True, (OutcomeReported(call_id),))


def _call_of_request(thread: ThreadState, opening: Opening) -> Call | None:
    """Not a settled call: a purge may have removed its look-up row, and then the request id is free again."""
    request_id = None if opening.request is None else opening.request.request_id
    if request_id is None:
        return None
    for call in thread.open_calls():
        if call.request is not None and call.request.request_id == request_id:
            return call
    return None


class AskerGone(Struct, frozen=True, gc=False):
    """The call whose tool asks is not running any more: it was settled, or another worker runs it."""


class QuestionChanged(Struct, frozen=True, gc=False):
    """The same question was asked before, of another tool or with another input."""


OpenedQuestion = Call | LimitReached | AskerGone | QuestionChanged


# the rest is what every opening needs
def open_question(  # noqa: PLR0913
    thread: ThreadState,
    opening: Opening,
    holder: str,
    *,
    now: float,
    settings: Settings,
    calls_left: int,
    fence: int | None = None,
) -> Decision[OpenedQuestion]:
    """The opened question, or the existing one if a tool that is run again asked it before. `holder` runs the
    tool that asks, with the claim `fence` on its run. While a question is open, the deadline of that tool is
    out of reach."""
    assert opening.parent is not None, "a question names the call that asks it"
    if fence is not None and not is_claimed(thread, fence):
        return Decision(AskerGone())
    parent = thread.calls.get(opening.parent.call_id)
    if parent is None or parent.phase is not Phase.TAKEN:
        return Decision(AskerGone())
    if parent.take is None or parent.take.holder != holder or is_overdue(parent, now):
        return Decision(AskerGone())
    known = next((call for call in thread.calls.values() if call.parent == opening.parent), None)
    if known is not None:
        # as it was asked: a person may have edited the input
        if known.tool != opening.tool.name or canonical(known.requested_input) != canonical(opening.input):
            return Decision(QuestionChanged())
        still = () if known.phase is Phase.SETTLED else (_hold(parent, known, holder, now, settings),)
        return Decision(known, still, not_after=parent.deadline)
    event = opened(thread, opening, now=now, timeouts=settings.timeouts)
    run_id = None if thread.run is None else thread.run.run_id
    call = opened_call(event, thread.owner, thread.thread_id, run_id, now)
    waiting = sum(each.blocks for each in thread.open_calls())
    full = exceeded_limit(waiting, calls_left, settings.limits)
    if full is not None:
        return Decision(LimitReached(full))
    events = (event, _hold(parent, call, holder, now, settings))
    return Decision(call, events, tools=(opening.tool,), not_after=parent.deadline)


def _hold(parent: Call, question: Call, holder: str, now: float, settings: Settings) -> TakeRenewed:
    """The asking tool gets its full time once the question is answered."""
    span = parent.timeout_sec or settings.timeouts.server_tool
    # a question that needs approval gets its own deadline when it is approved
    answered_by = (question.deadline or now) + settings.timeouts.park_for
    deadline = max(parent.deadline or 0.0, answered_by + span + BACKSTOP_SEC)
    return TakeRenewed(parent.call_id, holder, deadline)
