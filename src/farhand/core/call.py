"""One use of one tool, and the table of what may happen to it.

Nothing outside this module changes a phase. A move that is not in the table returns None, never a call in a
wrong state: nobody can finish what was not approved.
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


# cached, since they are read for every call, and access to an enum member is a class look-up each time
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
"""Prefix of the request id of a call with a key. No id from a wire contains this character."""


class ProgramRequest(Struct, frozen=True, gc=False, omit_defaults=True):
    """The details of a call that a program made itself, without a run: the ids it may look it up by."""

    request_id: str | None = None
    message_id: str | None = None
    worker: str | None = None
    """Without a request id: the worker that its caller is attached to, the only one that gets the answer.
    With one: the worker where all its callers wait, if the call ends with them. Once the call is settled: the
    worker that reports it."""
    is_reported: bool = True
    """False until the program has received the outcome, if it asked for that."""

    @property
    def key(self) -> str | None:
        """The name that the program gave the call, permanently."""
        named = self.request_id is not None and self.request_id.startswith(KEY)
        return self.request_id.removeprefix(KEY) if named and self.request_id is not None else None


class Question(Struct, frozen=True, gc=False):
    """The call whose tool asks this question. `key` distinguishes the questions of that tool."""

    call_id: str
    key: str


class Call(Struct, frozen=True, gc=False, kw_only=True):
    call_id: str
    owner: Owner
    thread_id: str
    run_id: str | None
    step: int = 0
    number: int = 0
    """Its index among the calls of its step."""
    tool: str
    tool_version: str
    executor: Executor
    input: dict[str, object]
    model_call_id: str | None = None
    client_id: str | None = None
    """The registered client that is to execute it."""
    request: ProgramRequest | None = None
    parent: Question | None = None
    """Set if a tool asks it. The model never sees such a call."""
    claims: dict[str, object] = {}
    """Of the person who made it without a run; for any other call, its run has them."""
    card: str | None = None
    is_typed: bool = False
    """Whether a person takes longer than a press to answer it."""
    template: str | None = None
    """The title of its tool, a template over the input."""
    untrusted: bool = False
    """Copied from the tool: the model gets the output marked as data from strangers."""
    timeout_sec: float | None = None
    """As declared, or as the model chose; None: depends on how the run waits."""
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
    """The title that a registered client gave its result."""
    metadata: dict[str, object] | None = None
    output_summary: str | None = None
    """A short summary of the output, as its tool defines it."""
    settled_by: str = ""
    """The name of the person who sent the result."""

    @property
    def heading(self) -> str | None:
        """What people see instead of the tool's name, filled with the input that runs."""
        return None if self.template is None else fill(self.template, self.input)

    @property
    def summary(self) -> str | None:
        return self.output_summary or self.title

    @property
    def record(self) -> CallRecord:
        """What pages show of it after its run is over."""
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
        """Who approved or denied it; for a tool that is allowed for the whole thread, who allowed it."""
        return "" if self.approval is None or self.approval.answer is None else name_in(self.approval.by)

    @property
    def blocks(self) -> bool:
        """True while the run can only wait: for a person's approval, or for a far hand's result."""
        phase = self.phase
        return phase is _ASKING or (phase is not _SETTLED and self.executor is not _SERVER)

    @property
    def asks(self) -> bool:
        """True while a person is asked about it: for an approval, or by a tool."""
        phase = self.phase
        return phase is _ASKING or (self.parent is not None and phase is not _SETTLED)

    @property
    def runs_at_client(self) -> bool:
        """True if a registered client is to execute it, as soon as that is allowed."""
        return self.client_id is not None and self.phase is not _ASKING

    @property
    def is_unreported(self) -> bool:
        """Settled, and not yet reported to the program that asked for a report."""
        return self.phase is _SETTLED and self.request is not None and not self.request.is_reported

    @property
    def requested_input(self) -> dict[str, object]:
        """The input as it was requested: a person may have edited it with the approval."""
        asked = None if self.approval is None else self.approval.asked_input
        return self.input if asked is None else asked

    @property
    def winner(self) -> Winner | None:
        if self.outcome is None:
            return None
        return Winner(kind_of(self.outcome), self.digest or "", self.settled_at or 0.0)


def rejected_call(call: Call, outcome: Outcome, *, at: float) -> Call:
    """A call that ended when it was opened: an unknown tool, or input that does not match its schema."""
    return replace(
        call, phase=Phase.SETTLED, outcome=outcome, digest=digest(outcome), settled_at=at, deadline=None
    )


def advance(call: Call, move: Move, **changes: object) -> Call | None:
    """The call after this move, or None if the table has no such move."""
    phase = MOVES[call.phase].get(move)
    if phase is None:
        return None
    return replace(call, phase=phase, version=call.version + 1, **changes)
