"""The current state of a thread: its log, folded into one record.

Created and changed only by `core/fold.py`; everything else reads it. Must not decide anything.
"""

from __future__ import annotations

from msgspec import Struct, field

from farhand.core.call import Call, Phase
from farhand.core.event import MessageQueued
from farhand.core.principal import Owner
from farhand.core.run import ENDED, Run, RunState
from farhand.core.thread import Message, Reasoning, Text, Thread, ToolCallPart, UserMessage


class Block(Struct):
    """A part of a step while the model writes it: text, reasoning, or a call."""

    part: int
    pieces: list[str] = field(default_factory=list)
    is_reasoning: bool = False
    asked: ToolCallPart | None = None


class RunProgress(Struct, kw_only=True):
    """The thread's last run: how far it is, and what its model is writing.

    `fence` counts the claims on it and on the runs before it, `seq` its events.
    """

    run_id: str
    user_message_id: str | None
    started_at: float
    since: int = 0
    """The version of the thread before the run started: its events are in the rows after it."""
    hold_for: float = 0.0
    state: RunState = RunState.RUNNING
    is_parked: bool = False
    is_kept: bool = False
    """Responses have ended as they do when it parks, but its worker keeps it: its tools are running and wait
    for answers."""
    step: int = 0
    fence: int = 1
    seq: int = 0
    blocks: list[Block] | None = None
    """What the model has written of the current step; None between steps."""
    opened: int = 0
    """How many calls the current step has so far."""
    ended_at: float | None = None
    error: str = ""
    is_delivered: bool = True
    claims: dict[str, object] = {}
    request_tools: tuple[str, ...] = ()
    alias: str = ""

    @property
    def is_active(self) -> bool:
        return self.state not in ENDED


class ToolPermission(Struct, frozen=True, gc=False):
    """A permission for the whole thread: which version of which tool, since when."""

    tool: str
    at: float
    by: dict[str, object] = {}


class ThreadState(Struct, kw_only=True):
    """`version` counts the appends. `calls` has the calls of the last run and every call that is open."""

    owner: Owner
    thread_id: str
    version: int = 0
    title: str = ""
    created_at: float = 0.0
    updated_at: float = 0.0
    allowed: dict[str, ToolPermission] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    run: RunProgress | None = None
    runs: int = 0
    """How many there have been."""
    calls: dict[str, Call] = field(default_factory=dict)
    queued: MessageQueued | None = None
    """What the user sent while the run was active: answered when that run ends or waits."""
    format: int = 0
    """The newest format of what it was folded from (`FORMAT` in `eventlog/codec.py`)."""

    @property
    def exists(self) -> bool:
        return self.version > 0

    @property
    def active_run(self) -> RunProgress | None:
        return self.run if self.run is not None and self.run.is_active else None

    @property
    def is_asking(self) -> bool:
        """Whether the active run waits for a person's approval, or for an answer to one of its tools."""
        run = self.active_run
        return run is not None and any(
            call.asks and call.run_id == run.run_id for call in self.calls.values()
        )

    def record(self) -> Thread | None:
        """The thread as readers see it; None if it does not exist."""
        if not self.exists:
            return None
        return Thread(
            owner=self.owner,
            thread_id=self.thread_id,
            title=self.title,
            created_at=self.created_at,
            updated_at=self.updated_at,
            allowed=tuple(self.allowed),
        )

    def run_record(self) -> Run | None:
        """The last run as readers and lists see it."""
        run = self.run
        if run is None:
            return None
        return Run(
            run_id=run.run_id,
            owner=self.owner,
            thread_id=self.thread_id,
            state=run.state,
            parked=run.is_parked,
            kept=run.is_kept,
            step=run.step,
            fence=run.fence,
            since=run.since,
            last_seq=run.seq,
            started_at=run.started_at,
            hold_for=run.hold_for,
            ended_at=run.ended_at,
            error=run.error or None,
            is_delivered=run.is_delivered,
            user_message_id=run.user_message_id,
            claims=run.claims,
            request_tools=run.request_tools,
            alias=run.alias,
        )

    def step_calls(self) -> list[Call]:
        """The calls of the run's last step, in the order in which the model requested them."""
        run = self.run
        if run is None:
            return []
        return [call for call in self.calls.values() if call.run_id == run.run_id and call.step == run.step]

    def open_calls(self) -> list[Call]:
        return [call for call in self.calls.values() if call.phase is not Phase.SETTLED]

    def call_of_approval(self, approval_id: str) -> Call | None:
        """The call that this approval belongs to, answered or not."""
        for call in self.calls.values():
            if call.approval is not None and call.approval.approval_id == approval_id:
                return call
        return None

    def unfinished_parts(self) -> tuple[Text | Reasoning, ...]:
        """What the model has written so far of the current step."""
        blocks = [] if self.run is None else self.run.blocks or []
        written = [(block, "".join(block.pieces)) for block in blocks if block.asked is None]
        return tuple([Reasoning(text) if block.is_reasoning else Text(text) for block, text in written])

    def user_message(self, message_id: str) -> UserMessage | None:
        for message in self.messages:
            if isinstance(message, UserMessage) and message.message_id == message_id:
                return message
        return None
