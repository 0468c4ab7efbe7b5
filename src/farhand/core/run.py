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
    """A run at one version of its thread: a copy for readers and lists.

    `fence` counts the claims on it: a command that names an older one changes nothing.
    """

    run_id: str
    owner: Owner
    thread_id: str
    state: RunState = RunState.RUNNING
    parked: bool = False
    """No process holds it."""
    kept: bool = False
    """Its responses have ended as they do when it parks, but its worker keeps it because of tools that ask
    questions."""
    step: int = 0
    fence: int = 1
    since: int = 0
    """The version of the thread before the run started: its events are in the rows after it."""
    last_seq: int = 0
    started_at: float
    hold_for: float = 0.0
    """How long it is held at a pause, as requested at its start; 0 if a pause ends the response."""
    ended_at: float | None = None
    error: str | None = None
    is_delivered: bool = True
    """Whether its answer reached a reader; an answer that ended unread waits for its first."""
    user_message_id: str | None = None
    """The message that it answers."""
    claims: dict[str, object] = {}
    """Of the person who started it."""
    request_tools: tuple[str, ...] = ()
    """Versions of the tools that its client describes and executes itself."""
    alias: str = ""
    """The name that its client gave it in its newest request; empty if it has none."""

    @property
    def active(self) -> bool:
        return self.state not in ENDED

    @property
    def rests(self) -> bool:
        """Responses have ended at its pause."""
        return self.parked or self.kept

    @property
    def waits(self) -> bool:
        """Only a person or a far hand can move it on; held or parked. No server tool is ready to run."""
        return self.state is RunState.WAITING


class Usage(Struct, frozen=True, gc=False):
    """Tokens that a model used: `Usage(input_tokens=120, output_tokens=8)`."""

    input_tokens: int = 0
    output_tokens: int = 0
