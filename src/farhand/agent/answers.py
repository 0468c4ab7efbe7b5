"""Answers to a pause: exactly one result for each call it named, all of them or nothing.

For faces that end their response at a pause and get all answers in one message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from farhand.calls.change import Reply
from farhand.calls.desk import Brought, Desk
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.outcome import Outcome
from farhand.core.result import Receipt, Result
from farhand.core.run import Run
from farhand.core.tool import Executor
from farhand.errors import ResultMismatch


class Pause(Struct, frozen=True):
    """What a run waits for, or waited for last: the calls its pause named, in their order."""

    run: Run
    calls: tuple[Call, ...]

    @property
    def open(self) -> tuple[Call, ...]:
        return tuple(call for call in self.calls if call.blocks)


class Reaction(Struct, frozen=True):
    """What came back for one call: an outcome, a yes or no, or both."""

    call_id: str
    outcome: Outcome | None = None
    answer: Answer | None = None


def pause_of(run: Run, calls: Sequence[Call]) -> Pause:
    return Pause(run, tuple(call for call in calls if _was_asked_for(call)))


async def answer_pause(desk: Desk, pause: Pause, reactions: Sequence[Reaction]) -> list[Receipt]:
    """One receipt for each reaction; a set of ids that does not fit raises, and nothing was applied."""
    got = [reaction.call_id for reaction in reactions]
    _check_ids(pause, got)
    known = {call.call_id: call for call in pause.calls}
    brought = [_brought(known[reaction.call_id], reaction) for reaction in reactions]
    if not all(brought):
        # a yes to a call that asked for none
        raise ResultMismatch([call.call_id for call in pause.calls], got)
    receipts = iter(await desk.accept(pause.run.owner, *(item for items in brought for item in items)))
    # of a yes and a result for the same call, the result's receipt tells how it ended
    return [[next(receipts) for _ in items][-1] for items in brought]


def _check_ids(pause: Pause, got: list[str]) -> None:
    """Calls that were settled meanwhile may be answered, and are ignored; every open one must be."""
    named = {call.call_id for call in pause.calls}
    still_open = {call.call_id for call in pause.open}
    doubled = sorted(call_id for call_id, times in Counter(got).items() if times > 1)
    if doubled or not still_open <= set(got) or not set(got) <= named:
        raise ResultMismatch([call.call_id for call in pause.calls], got, doubled=doubled)


def _brought(call: Call, reaction: Reaction) -> list[Brought]:
    items: list[Brought] = []
    if call.approval is not None and reaction.answer is not None:
        items.append(Reply(call.approval.approval_id, reaction.answer))
    denied = reaction.answer is not None and not reaction.answer.approved
    on_server = call.executor is Executor.SERVER
    if reaction.outcome is not None and not (items and (denied or on_server)):
        items.append(Result(call_id=reaction.call_id, outcome=reaction.outcome))
    return items


def _was_asked_for(call: Call) -> bool:
    """Not what was rejected at birth, nor what a person had allowed before."""
    if call.phase is Phase.SETTLED and call.version == 1:
        return False
    if call.executor is Executor.FRONTEND:
        return True
    approval = call.approval
    return approval is not None and (approval.answer is None or approval.answered_at != call.opened_at)
