"""One pass of the loop, message to answer."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from farhand.core.principal import Owner


class RunState(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


ENDED = frozenset({RunState.DONE, RunState.STOPPED, RunState.FAILED})


class Run(Struct, frozen=True, gc=False, kw_only=True):
    """`fence` counts the claims on a run: a write that carries an older one changes nothing.

    `last_seq` and `blockers` (calls only a person or a far hand can move on) are counted by the store
    itself, in the transaction that changes them.
    """

    run_id: str
    owner: Owner
    thread_id: str
    state: RunState = RunState.RUNNING
    parked: bool = False
    step: int = 0
    fence: int = 1
    lease_until: float = 0.0
    last_seq: int = 0
    blockers: int = 0
    started_at: float
    hold_for: float = 0.0
    """How long it is held at a pause, as it was started; 0 if a pause ends the response."""
    ended_at: float | None = None
    error: str | None = None

    @property
    def active(self) -> bool:
        return self.state not in ENDED

    @property
    def waits(self) -> bool:
        """Only a person or a far hand can move it on; held or parked."""
        return self.state is RunState.WAITING and self.blockers > 0

    @property
    def could_go_on(self) -> bool:
        """Parked, though nothing is left to wait for."""
        return self.parked and self.blockers == 0


class Usage(Struct, frozen=True, gc=False):
    input_tokens: int = 0
    output_tokens: int = 0
