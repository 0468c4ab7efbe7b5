"""One use of one tool, and the table of what may happen to it.

Nothing outside this module changes a phase. A move the table does not have is answered with None,
never with a call in a wrong state: nobody can finish what was not approved.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from farhand.core.approval import Answer, Approval
from farhand.core.outcome import (
    Cancelled,
    Denied,
    Failure,
    Outcome,
    Success,
    TimedOut,
    canonical,
    digest,
    kind_of,
)
from farhand.core.principal import Owner
from farhand.core.result import Winner
from farhand.core.tool import Executor, digest_of_approval

TAKE_LASTS_SEC = 30.0


class Phase(StrEnum):
    ASKING = "asking"
    READY = "ready"
    TAKEN = "taken"
    SETTLED = "settled"


class Move(StrEnum):
    APPROVE = "approve"
    DENY = "deny"
    TAKE = "take"
    RELEASE = "release"
    FINISH = "finish"
    STOP = "stop"


# asked of every call again and again, and what a class has is looked up each time
_ASKING, _SETTLED, _SERVER = Phase.ASKING, Phase.SETTLED, Executor.SERVER

MOVES: dict[Phase, dict[Move, Phase]] = {
    Phase.ASKING: {Move.APPROVE: Phase.READY, Move.DENY: Phase.SETTLED, Move.STOP: Phase.SETTLED},
    Phase.READY: {Move.TAKE: Phase.TAKEN, Move.FINISH: Phase.SETTLED, Move.STOP: Phase.SETTLED},
    Phase.TAKEN: {Move.RELEASE: Phase.READY, Move.FINISH: Phase.SETTLED, Move.STOP: Phase.SETTLED},
    Phase.SETTLED: {},
}

MOVE_OF: dict[type[Outcome], Move] = {
    Success: Move.FINISH,
    Failure: Move.FINISH,
    Denied: Move.DENY,
    TimedOut: Move.STOP,
    Cancelled: Move.STOP,
}


class Take(Struct, frozen=True, gc=False):
    """Who executes the call, and until when nobody else may start it. It never decides who may answer."""

    holder: str
    until: float


class Request(Struct, frozen=True, gc=False):
    """What came beside a call that a program made itself, without a run: the ids it may ask for it by."""

    request_id: str | None = None
    message_id: str | None = None
    worker: str | None = None
    """Without a request id: the worker that its caller is attached to, the only one who gets the answer."""


class Call(Struct, frozen=True, gc=False, kw_only=True):
    call_id: str
    owner: Owner
    thread_id: str
    run_id: str | None
    step: int = 0
    tool: str
    tool_version: str
    executor: Executor
    input: dict[str, object]
    model_call_id: str | None = None
    client_id: str | None = None
    """The registered client that is asked to execute it."""
    request: Request | None = None
    card: str | None = None
    untrusted: bool = False
    """As the tool was: what comes back is told to the model as data of strangers."""
    timeout_sec: float | None = None
    """As declared, or as the model chose; unset means: by the way the run waits."""
    opened_at: float
    phase: Phase
    version: int = 1
    deadline: float | None = None
    approval: Approval | None = None
    take: Take | None = None
    outcome: Outcome | None = None
    digest: str | None = None
    """Of the result as it was sent, before the output check: a retried bad output is a repetition."""
    settled_at: float | None = None
    title: str | None = None
    metadata: dict[str, object] | None = None

    @property
    def blocks(self) -> bool:
        """True while the run can only wait: for a person's yes or no, or for a far hand's result."""
        phase = self.phase
        return phase is _ASKING or (phase is not _SETTLED and self.executor is not _SERVER)

    @property
    def winner(self) -> Winner | None:
        if self.outcome is None:
            return None
        return Winner(kind_of(self.outcome), self.digest or "", self.settled_at or 0.0)


def new_call(call: Call) -> Call:
    """The call as it begins: asking if it has an unanswered approval, else ready."""
    asks = call.approval is not None and call.approval.answer is None
    phase = Phase.ASKING if asks else Phase.READY
    # most are ready as they are written down
    return call if call.phase is phase and call.version == 1 else replace(call, phase=phase, version=1)


def rejected_call(call: Call, outcome: Outcome, *, at: float) -> Call:
    """A call that ended where it began: an unknown tool, or input its schema does not allow."""
    return replace(
        call, phase=Phase.SETTLED, outcome=outcome, digest=digest(outcome), settled_at=at, deadline=None
    )


def advance(call: Call, move: Move, **changes: object) -> Call | None:
    """The call after this move, or None where the table has no such move."""
    phase = MOVES[call.phase].get(move)
    if phase is None:
        return None
    return replace(call, phase=phase, version=call.version + 1, **changes)


def approve(call: Call, answer: Answer, *, at: float, deadline: float | None) -> Call | None:
    """After the yes: the edited input, if there is one, is what runs, under a digest of its own.

    A yes without an edit is to the question as it was asked, so it keeps the digest of the question.
    """
    if call.approval is None:
        return None
    input = call.input if answer.input is None else answer.input
    asked = call.approval.digest
    # as JSON tells them apart: to Python 1, 1.0 and true are equal
    edited = canonical(input) != canonical(call.input)
    approval = replace(
        call.approval,
        digest=asked if answer.input is None else digest_of_approval(call.tool_version, input),
        answer=answer,
        answered_at=at,
        asked_input=call.input if edited else None,
    )
    return advance(call, Move.APPROVE, approval=approval, input=input, deadline=deadline)


def deny(call: Call, answer: Answer, *, at: float) -> Call | None:
    if call.approval is None:
        return None
    outcome = Denied(answer.reason)
    denied = settle(call, outcome, sent=digest(outcome), at=at)
    answered = replace(call.approval, answer=answer, answered_at=at)
    return None if denied is None else replace(denied, approval=answered)


def take(call: Call, holder: str, *, at: float, deadline: float | None = None) -> Call | None:
    """Taken by this holder; a take that has lapsed, or is the holder's own, may be taken again."""
    if call.take is not None and call.take.holder != holder and call.take.until > at:
        return None
    until = Take(holder, at + TAKE_LASTS_SEC)
    taken = advance(release(call) or call, Move.TAKE, take=until, deadline=deadline or call.deadline)
    # one write is one version, also when it is a release and a take
    return None if taken is None else replace(taken, version=call.version + 1)


def release(call: Call) -> Call | None:
    return advance(call, Move.RELEASE, take=None)


def settle(call: Call, outcome: Outcome, *, sent: str, at: float) -> Call | None:
    """The end of the call. `sent` is the digest of the result as it came."""
    move = MOVE_OF[type(outcome)]
    return advance(call, move, outcome=outcome, digest=sent, settled_at=at, deadline=None, take=None)
