"""The state of a call when it is opened: asking, ready or running, and until when."""

from __future__ import annotations

from msgspec import Struct

from farhand.core.approval import Answer, Approval
from farhand.core.call import ProgramRequest, Question
from farhand.core.event import SERVER, CallOpened
from farhand.core.principal import Claims
from farhand.core.settings import Timeouts
from farhand.core.state import ThreadState
from farhand.core.tool import Executor, Tool, digest_of_approval

BACKSTOP_SEC = 1.0
"""A tool's own limit is enforced where it runs; the stored deadline after it is for a tool that never
returns."""


class Opening(Struct, frozen=True, gc=False, kw_only=True):
    """One call that passed its checks. `approval_id` is set if a person must approve it first."""

    call_id: str
    tool: Tool
    input: dict[str, object]
    step: int = 0
    is_direct: bool = False
    model_call_id: str | None = None
    timeout_sec: float | None = None
    is_held: bool = False
    """Whether a stream is kept open for the result: then an undeclared deadline is short."""
    approval_id: str | None = None
    request: ProgramRequest | None = None
    parent: Question | None = None
    """Set if a running tool asks it."""
    claims: Claims = {}
    """For a direct call: those of the person who made it."""
    worker: str = ""
    """For a direct call: the worker that runs its tool if the server does, so that others see when that
    worker is gone."""

    @property
    def has_to_wait(self) -> bool:
        """For a person or a far hand, unless the tool was already allowed in its thread."""
        return self.approval_id is not None or self.tool.executor is not Executor.SERVER


def opened(thread: ThreadState, opening: Opening, *, now: float, timeouts: Timeouts) -> CallOpened:
    """The call as it starts: asking, ready, or running at once on the server."""
    tool = opening.tool
    approval = _approval(thread, opening, now)
    is_asking = approval is not None and approval.answer is None
    is_started = tool.executor is Executor.SERVER and not is_asking
    holder = server_holder(opening.worker if opening.is_direct else "")
    if is_asking:
        deadline: float | None = now + (tool.approval_timeout_sec or timeouts.park_for)
    elif is_started:
        deadline = server_deadline(opening.timeout_sec, now, timeouts)
    else:
        deadline = ready_deadline(
            tool.executor,
            opening.timeout_sec,
            is_typed=tool.is_typed,
            is_held=opening.is_held,
            now=now,
            timeouts=timeouts,
        )
    return CallOpened(
        call_id=opening.call_id,
        tool=tool.name,
        tool_version=tool.version,
        executor=tool.executor,
        input=opening.input,
        step=opening.step,
        is_direct=opening.is_direct,
        holder=holder if is_started else None,
        model_call_id=opening.model_call_id,
        client_id=tool.client_id,
        request=opening.request,
        card=tool.card,
        is_typed=tool.is_typed,
        title=tool.title,
        untrusted=tool.untrusted,
        timeout_sec=opening.timeout_sec,
        deadline=deadline,
        approval=approval,
        claims=opening.claims,
        parent=opening.parent,
    )


def ready_deadline(
    executor: Executor,
    timeout_sec: float | None,
    *,
    is_typed: bool,
    is_held: bool,
    now: float,
    timeouts: Timeouts,
) -> float | None:
    """Fixed at the moment the call becomes ready; a server tool's time starts when the tool does."""
    if executor is Executor.SERVER:
        return None
    if timeout_sec is not None:
        return now + timeout_sec
    if executor is Executor.CLIENT:
        return now + timeouts.client_call
    if not is_held:
        return now + timeouts.park_for
    return now + (timeouts.typed_call if is_typed else timeouts.held_call)


def server_holder(worker: str) -> str:
    """Who holds a call that runs on the server; for a direct call, the worker's name follows."""
    return f"{SERVER}.{worker}" if worker else SERVER


def server_deadline(timeout_sec: float | None, now: float, timeouts: Timeouts) -> float:
    return now + (timeout_sec or timeouts.server_tool) + BACKSTOP_SEC


def _approval(thread: ThreadState, opening: Opening, now: float) -> Approval | None:
    if opening.approval_id is None:
        return None
    allowed = thread.allowed.get(opening.tool.version)
    return Approval(
        approval_id=opening.approval_id,
        digest=digest_of_approval(opening.tool.version, opening.input),
        answer=None if allowed is None else Answer(approved=True, scope="thread"),
        answered_at=None if allowed is None else now,
        by={} if allowed is None else allowed.by,
    )
