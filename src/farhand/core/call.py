"""One use of one tool, and the table of what may happen to it.

Nothing outside this module changes a phase. A move the table does not have is answered with None,
never with a call in a wrong state: nobody can finish what was not approved.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from farhand.core.approval import Approval
from farhand.core.outcome import (
    Cancelled,
    Denied,
    Failure,
    Outcome,
    Success,
    TimedOut,
    digest,
    kind_of,
)
from farhand.core.principal import Owner, name_in
from farhand.core.result import Winner
from farhand.core.template import fill
from farhand.core.thread import CallRecord
from farhand.core.tool import Executor

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


KEY = "key="
"""Begins the request id of a call with a key. No id that comes over a wire has such a character."""


class ProgramRequest(Struct, frozen=True, gc=False, omit_defaults=True):
    """What came beside a call that a program made itself, without a run: the ids it may ask for it by."""

    request_id: str | None = None
    message_id: str | None = None
    worker: str | None = None
    """Without a request id: the worker that its caller is attached to, the only one who gets the answer. With
    one: the worker that all its callers wait at, if it ends with them. Once the call is settled: the worker
    that reports it."""
    is_reported: bool = True
    """False until the program was told of the outcome, where it asked for that."""

    @property
    def key(self) -> str | None:
        """The name that the program gave the call, for ever."""
        named = self.request_id is not None and self.request_id.startswith(KEY)
        return self.request_id.removeprefix(KEY) if named and self.request_id is not None else None


class Question(Struct, frozen=True, gc=False):
    """Who asks a call: the tool of the call with this id. `key` tells its questions apart."""

    call_id: str
    key: str


class Call(Struct, frozen=True, gc=False, kw_only=True):
    call_id: str
    owner: Owner
    thread_id: str
    run_id: str | None
    step: int = 0
    number: int = 0
    """Its place among the calls of its step."""
    tool: str
    tool_version: str
    executor: Executor
    input: dict[str, object]
    model_call_id: str | None = None
    client_id: str | None = None
    """The registered client that is asked to execute it."""
    request: ProgramRequest | None = None
    parent: Question | None = None
    """Set if a tool asks it. The model never sees such a call."""
    claims: dict[str, object] = {}
    """Of the person who made it without a run; for any other call, its run has them."""
    card: str | None = None
    is_typed: bool = False
    """Whether a person takes longer than a press to answer it."""
    template: str | None = None
    """The title of its tool, with the names of inputs in it."""
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
    """What a registered client called its result."""
    metadata: dict[str, object] | None = None
    output_summary: str | None = None
    """The output in a few words, as its tool says them."""
    settled_by: str = ""
    """What the person is called who brought the result."""

    @property
    def heading(self) -> str | None:
        """What people see instead of the tool's name, about the input that runs."""
        return None if self.template is None else fill(self.template, self.input)

    @property
    def summary(self) -> str | None:
        return self.output_summary or self.title

    @property
    def record(self) -> CallRecord:
        """What is shown of it when its run is long over."""
        answer = None if self.approval is None else self.approval.answer
        return CallRecord(
            took_sec=None if self.settled_at is None else round(self.settled_at - self.opened_at, 3),
            title=self.heading,
            summary=self.summary,
            is_edited=self.approval is not None and self.approval.asked_input is not None,
            is_always_allowed=answer is not None and answer.approved and answer.scope == "thread",
            answered_by=self.settled_by or self._approved_by,
        )

    @property
    def _approved_by(self) -> str:
        """Who said yes or no; of a tool that is allowed for the whole thread, who did so then."""
        return "" if self.approval is None or self.approval.answer is None else name_in(self.approval.by)

    @property
    def blocks(self) -> bool:
        """True while the run can only wait: for a person's yes or no, or for a far hand's result."""
        phase = self.phase
        return phase is _ASKING or (phase is not _SETTLED and self.executor is not _SERVER)

    @property
    def asks(self) -> bool:
        """True while a person is asked about it: for a yes or no, or by a tool."""
        phase = self.phase
        return phase is _ASKING or (self.parent is not None and phase is not _SETTLED)

    @property
    def runs_at_client(self) -> bool:
        """True if a registered client is to execute it, as soon as that is allowed."""
        return self.client_id is not None and self.phase is not _ASKING

    @property
    def is_unreported(self) -> bool:
        """Settled, and the program that asked to be told of it was not told yet."""
        return self.phase is _SETTLED and self.request is not None and not self.request.is_reported

    @property
    def requested_input(self) -> dict[str, object]:
        """As it was asked for: a person may have edited it with the approval."""
        asked = None if self.approval is None else self.approval.asked_input
        return self.input if asked is None else asked

    @property
    def winner(self) -> Winner | None:
        if self.outcome is None:
            return None
        return Winner(kind_of(self.outcome), self.digest or "", self.settled_at or 0.0)


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
