"""The last run of a thread, as the fold keeps it: how far it is, and what its model is writing."""

from __future__ import annotations

from msgspec import Struct, field

from farhand.core.run import ENDED, RunState
from farhand.core.thread import Asked


class Block(Struct):
    """A part of a step while the model writes it: text, reasoning, or a call."""

    part: int
    pieces: list[str] = field(default_factory=list)
    is_reasoning: bool = False
    asked: Asked | None = None


class RunProgress(Struct, kw_only=True):
    """The thread's last run. `fence` counts the claims on it, `seq` its events."""

    run_id: str
    user_message_id: str | None
    started_at: float
    since: int = 0
    """The version of the thread before the run began: its events are in the rows after it."""
    hold_for: float = 0.0
    state: RunState = RunState.RUNNING
    is_parked: bool = False
    is_kept: bool = False
    """Responses have ended as at a park, but its worker keeps it: tools of it are at work, and ask."""
    step: int = 0
    fence: int = 1
    seq: int = 0
    blocks: list[Block] | None = None
    """What the model has written of the step under way; None between steps."""
    opened: int = 0
    """How many calls the step under way has so far."""
    ended_at: float | None = None
    error: str = ""
    is_delivered: bool = True
    claims: dict[str, object] = {}
    brought: tuple[str, ...] = ()
    alias: str = ""

    @property
    def is_active(self) -> bool:
        return self.state not in ENDED
