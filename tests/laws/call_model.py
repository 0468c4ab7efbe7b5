"""What must be true of calls, written a second time, as plainly as possible.

It knows no store, no version and no table of moves: only what a person would say happens to a call. The
machine asks it what the desk has to answer, and compares.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from farhand.core.approval import Answer
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut

TAKE_LASTS = 30.0
FAR_TIMEOUT = 60.0
ASK_TIMEOUT = 100.0
SERVER_TIMEOUT = 121.0
"""What a tool of ours may take, and the second in which it can still say so."""


@dataclass
class Told:
    """What the desk answers: the kind of receipt, why, and whether it names the winner."""

    receipt: str
    reason: str = ""
    winner: str = ""


ACCEPTED = Told("Accepted")
REPEATED = Told("Repeated")
UNKNOWN = Told("Unknown")


@dataclass
class CallTruth:
    call_id: str
    approval_id: str
    """Unknown to everybody but the model, unless the call is gated."""
    is_far: bool
    deadline: float | None
    is_gated: bool
    asking: bool
    answer: Answer | None = None
    holder: str | None = None
    held_until: float = 0.0
    outcome: Outcome | None = None
    ended_at: float = 0.0

    @property
    def is_open(self) -> bool:
        return self.outcome is None

    @property
    def blocks(self) -> bool:
        return self.is_open and (self.asking or self.is_far)

    def is_overdue(self, now: float) -> bool:
        return self.is_open and self.deadline is not None and self.deadline <= now

    def settle(self, outcome: Outcome, now: float) -> Told:
        if not self.is_far:
            return UNKNOWN
        return self._finish(outcome, now)

    def finish(self, outcome: Outcome, now: float) -> Told:
        """The same for a tool that runs on our side."""
        return self._finish(outcome, now)

    def say(self, answer: Answer, now: float) -> Told:
        if self.answer is not None:
            kind = "approved" if self.answer.approved else "denied"
            return REPEATED if answer == self.answer else Told("Conflict", winner=kind)
        if not self.is_open:
            return self._missed()
        if self._expires(now):
            return self._missed()
        self.answer, self.asking = answer, False
        if not answer.approved:
            self._end(Denied(answer.reason), now)
        else:
            self.deadline = now + FAR_TIMEOUT if self.is_far else None
        return ACCEPTED

    def take(self, holder: str, now: float) -> Told:
        if not self.is_far:
            return UNKNOWN
        if not self.is_open:
            return self._missed()
        if self.asking:
            return Told("Refused", "not_approved")
        if self.holder not in (None, holder) and self.held_until > now:
            return Told("Refused", "taken")
        if self._expires(now):
            return self._missed()
        self.holder, self.held_until = holder, now + TAKE_LASTS
        return ACCEPTED

    def release(self, holder: str, now: float) -> Told:
        if not self.is_far:
            return UNKNOWN
        if not self.is_open:
            return self._missed()
        if self.holder != holder:
            return Told("Refused", "taken")
        if self._expires(now):
            return self._missed()
        self.holder = None
        return ACCEPTED

    def start(self, now: float) -> bool:
        """Our side begins to run its own tool."""
        if self.is_far or self.asking or not self.is_open:
            return False
        self.holder, self.held_until = "server", now + TAKE_LASTS
        self.deadline = now + SERVER_TIMEOUT
        return True

    def expire(self, now: float) -> bool:
        return self._expires(now)

    def cancel(self, reason: str, now: float) -> None:
        if self.is_open:
            self._end(Cancelled(reason), now)

    def _finish(self, outcome: Outcome, now: float) -> Told:
        if not self.is_open:
            return REPEATED if outcome == self.outcome else self._missed()
        if self.asking:
            return Told("Refused", "not_approved")
        if self._expires(now):
            return self._missed()
        self._end(outcome, now)
        return ACCEPTED

    def _missed(self) -> Told:
        """Everybody who comes too late is told the same."""
        match self.outcome:
            case TimedOut():
                return Told("Refused", "expired", "timed_out")
            case Cancelled():
                return Told("Refused", "cancelled", "cancelled")
            case Denied():
                return Told("Conflict", winner="denied")
            case Success():
                return Told("Conflict", winner="success")
            case Failure():
                return Told("Conflict", winner="failure")
            case None:
                raise AssertionError("nothing was missed yet")

    def _expires(self, now: float) -> bool:
        if not self.is_overdue(now):
            return False
        self._end(TimedOut(), now)
        return True

    def _end(self, outcome: Outcome, now: float) -> None:
        self.outcome, self.ended_at = outcome, now
        self.deadline, self.holder, self.asking = None, None, False


@dataclass
class RunTruth:
    fence: int = 1
    parked: bool = False
    old_fences: list[int] = field(default_factory=list)
    calls: list[CallTruth] = field(default_factory=list)

    @property
    def waits(self) -> bool:
        """Nothing in it can be done here."""
        undone = [call for call in self.calls if call.is_open]
        return bool(undone) and all(call.blocks for call in undone)

    def claim(self) -> None:
        self.old_fences.append(self.fence)
        self.fence, self.parked = self.fence + 1, False

    def park(self) -> bool:
        if not self.waits:
            return False
        self.parked = True
        return True
