"""Answers to a pause: exactly one result for each call it named, all of them or nothing.

For faces that end their response at a pause and get all answers in one message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import assert_never

from msgspec import Struct

from farhand.calls.desk import Desk, Reply, Submission
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.outcome import Failure, Outcome, Success
from farhand.core.principal import Claims, name_in
from farhand.core.result import Accepted, Conflict, Receipt, Refused, Repeated, Result, Unknown
from farhand.core.run import Run
from farhand.core.tool import Executor
from farhand.errors import Malformed, Misuse, NotFound, ResultMismatch, ResultRefused
from farhand.tools.to_json import NotJson, is_text, to_json
from farhand.wire.json_reader import json_or_text


class Pause(Struct, frozen=True):
    """What a run waits for, or last waited for: the calls its pause named, in order."""

    run: Run
    calls: tuple[Call, ...]

    @property
    def open(self) -> tuple[Call, ...]:
        return tuple(call for call in self.calls if call.blocks)


class Reaction(Struct, frozen=True):
    """The reaction to one call: an outcome, an approval or denial, or both."""

    call_id: str
    outcome: Outcome | None = None
    answer: Answer | None = None


class PostedResult(Struct, frozen=True):
    """A result as a page posts it: text that may hold JSON, and an approval or denial where a person was
    asked."""

    call_id: str
    content: str | None = None
    is_error: bool = False
    approved: bool | None = None


def pause_of(run: Run, calls: Sequence[Call]) -> Pause:
    return Pause(run, tuple(call for call in calls if _was_asked_for(call)))


def pause_answered(posted: Sequence[PostedResult], pause: Pause, known: Sequence[Call]) -> Pause:
    """The pause that these results are for: the open one, or the one that late results missed.

    `known` are the calls of this thread among the posted ids.
    """
    got = {each.call_id for each in posted}
    if pause.open and not got.isdisjoint(call.call_id for call in pause.calls):
        return pause
    if known and len(known) == len(got) and all(call.phase is Phase.SETTLED for call in known):
        return Pause(pause.run, tuple(known))
    if pause.open:
        return pause
    raise NotFound("No call of this thread waits for these results.", hint="Nothing was applied.")


def unapproved(posted: Sequence[PostedResult], pause: Pause) -> list[str]:
    """Calls that wait for an approval and were sent a result without one."""
    asking = {call.call_id for call in pause.calls if call.phase is Phase.ASKING}
    return [each.call_id for each in posted if each.call_id in asking and each.approved is None]


def reactions_to(posted: Sequence[PostedResult], pause: Pause, texts: Collection[str]) -> list[Reaction]:
    """`texts`: the calls whose tool returns a string, which is never parsed as JSON."""
    calls = {call.call_id: call for call in pause.calls}
    return [_reaction(each, calls.get(each.call_id), as_text=each.call_id in texts) for each in posted]


def _reaction(posted: PostedResult, call: Call | None, *, as_text: bool) -> Reaction:
    if call is None or call.approval is None or posted.approved is None:
        return Reaction(posted.call_id, _outcome(posted, as_text=as_text))
    if not posted.approved:
        return Reaction(posted.call_id, answer=Answer(approved=False, reason=posted.content or ""))
    yes = Answer(approved=True)
    if call.executor is Executor.SERVER:
        # a tool that runs here once it is approved produces its own result
        return Reaction(posted.call_id, answer=yes)
    return Reaction(posted.call_id, _outcome(posted, as_text=as_text), yes)


def _outcome(posted: PostedResult, *, as_text: bool) -> Outcome:
    if posted.content is None:
        raise Malformed(f"The result for {posted.call_id} has no content.", hint="Nothing was applied.")
    if posted.is_error:
        return Failure(posted.content)
    return Success(posted.content if as_text else json_or_text(posted.content))


async def answer_pause(
    desk: Desk, pause: Pause, reactions: Sequence[Reaction], *, by: Claims | None = None
) -> list[Receipt]:
    """One receipt for each reaction; a set of ids that does not match raises, and nothing is applied.

    `by` are the claims of the person who answers.
    """
    got = [reaction.call_id for reaction in reactions]
    _check_ids(pause, got)
    known = {call.call_id: call for call in pause.calls}
    submissions = [_submissions(known[reaction.call_id], reaction, by or {}) for reaction in reactions]
    if not all(submissions):
        # an approval for a call that needs none
        raise ResultMismatch([call.call_id for call in pause.calls], got)
    receipts = iter(await desk.accept(pause.run.owner, *(item for items in submissions for item in items)))
    # of an approval and a result for the same call, the result's receipt says how it ended
    return [[next(receipts) for _ in items][-1] for items in submissions]


def _check_ids(pause: Pause, got: list[str]) -> None:
    """Calls that were settled meanwhile may be answered, and are ignored; every open one must be."""
    named = {call.call_id for call in pause.calls}
    still_open = {call.call_id for call in pause.open}
    doubled = sorted(call_id for call_id, times in Counter(got).items() if times > 1)
    if doubled or not still_open <= set(got) or not set(got) <= named:
        raise ResultMismatch([call.call_id for call in pause.calls], got, doubled=doubled)


def _submissions(call: Call, reaction: Reaction, by: Claims) -> list[Submission]:
    items: list[Submission] = []
    if call.approval is not None and reaction.answer is not None:
        items.append(Reply(call.approval.approval_id, reaction.answer, by))
    denied = reaction.answer is not None and not reaction.answer.approved
    on_server = call.executor is Executor.SERVER
    if reaction.outcome is not None and not (items and (denied or on_server)):
        items.append(Result(call_id=reaction.call_id, outcome=reaction.outcome, by=name_in(by)))
    return items


def _was_asked_for(call: Call) -> bool:
    """Not a call that was rejected when it was opened, nor one that a person had allowed before."""
    if call.phase is Phase.SETTLED and call.version == 1:
        return False
    if call.executor is Executor.FRONTEND:
        return True
    approval = call.approval
    return approval is not None and (approval.answer is None or approval.answered_at != call.opened_at)


def reaction_of(call_id: str, answer: Outcome | Answer) -> Reaction:
    """A far hand sends a Success or a Failure, a person an Answer; anything else is a bug in the program."""
    match answer:
        case Answer():
            return Reaction(call_id, answer=answer)
        case Success(output=output):
            return Reaction(call_id, Success(_json(call_id, output)))
        case Failure(error=str(error)) if is_text(error):
            return Reaction(call_id, answer)
        case _:
            raise Misuse(
                f"{answer!r} is not a result for {call_id}.",
                hint="Send Success(output), Failure(text), or an Answer for a call that needs approval.",
            )


def refusal_of(pause: Pause, call_ids: Sequence[str], receipts: Sequence[Receipt]) -> ResultRefused:
    """Why none of the results was accepted."""
    asking = {call.call_id for call in pause.open if call.phase is Phase.ASKING}
    reasons = [
        f"{call_id} {_NEEDS_YES if call_id in asking else _why(receipt)}"
        for call_id, receipt in zip(call_ids, receipts, strict=True)
    ]
    return ResultRefused(f"No result was accepted: {'; '.join(reasons)}.")


_NEEDS_YES = "needs approval first, sent as an Answer"


def _json(call_id: str, output: object) -> object:
    try:
        return to_json(output)
    except NotJson as error:
        raise Misuse(f"The output for {call_id} cannot be encoded as JSON: {error}") from None


def _why(receipt: Receipt) -> str:
    match receipt:
        case Refused(reason=reason):
            return f"is {reason}"
        case Conflict(winner=winner):
            return f"already has a different result ({winner.kind})"
        case Repeated() | Accepted():
            return "already has this result"
        case Unknown():
            return "is not known here"
    assert_never(receipt)
