"""What a call is when it is opened: asking or ready, and until when. Pure; the desk stores it."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from farhand.core.approval import Answer, Approval
from farhand.core.call import Call, Phase, Request, new_call
from farhand.core.event import CallOpened
from farhand.core.principal import Owner
from farhand.core.settings import Patience
from farhand.core.tool import Executor, Tool, digest_of_approval


class Opening(Struct, frozen=True, gc=False, kw_only=True):
    """One wish of the model (or of a program) that passed its checks."""

    call_id: str
    owner: Owner
    thread_id: str
    tool: Tool
    input: dict[str, object]
    run_id: str | None = None
    step: int = 0
    model_call_id: str | None = None
    timeout_sec: float | None = None
    held: bool = False
    """Whether somebody keeps a stream open for the answer."""
    approval_id: str | None = None
    """Set when a person must say yes first."""
    allowed_before: bool = False
    """The yes was given once for the whole thread."""
    request: Request | None = None
    """What a program wrote beside a call of its own."""


def call_of(opening: Opening, *, now: float, patience: Patience) -> Call:
    tool, held = opening.tool, opening.held
    approval = None if opening.approval_id is None else _approval(opening, opening.approval_id, now)
    draft = Call(
        call_id=opening.call_id,
        owner=opening.owner,
        thread_id=opening.thread_id,
        run_id=opening.run_id,
        step=opening.step,
        tool=tool.name,
        tool_version=tool.version,
        executor=tool.executor,
        input=opening.input,
        model_call_id=opening.model_call_id,
        client_id=tool.client_id,
        request=opening.request,
        card=tool.card,
        untrusted=tool.untrusted,
        timeout_sec=opening.timeout_sec,
        opened_at=now,
        phase=Phase.READY,
        deadline=ready_deadline(tool.executor, opening.timeout_sec, held=held, now=now, patience=patience),
        approval=approval,
    )
    call = new_call(draft)
    if call.phase is Phase.READY:
        return call
    return replace(call, deadline=now + (tool.approval_timeout_sec or patience.park_for))


def ready_deadline(
    executor: Executor, timeout_sec: float | None, *, held: bool, now: float, patience: Patience
) -> float | None:
    """Fixed at the moment the call becomes ready; a server tool's time starts when the tool does."""
    if executor is Executor.SERVER:
        return None
    if timeout_sec is not None:
        return now + timeout_sec
    if executor is Executor.CLIENT:
        return now + patience.client_call
    return now + (patience.held_call if held else patience.park_for)


def opened_event(call: Call) -> CallOpened:
    return CallOpened(
        call_id=call.call_id,
        tool=call.tool,
        executor=call.executor,
        input=call.input,
        phase=call.phase,
        approval_id=call.approval.approval_id if call.approval and call.phase is Phase.ASKING else None,
        deadline=call.deadline,
        card=call.card,
    )


def _approval(opening: Opening, approval_id: str, now: float) -> Approval:
    granted = Answer(approved=True, scope="thread") if opening.allowed_before else None
    return Approval(
        approval_id=approval_id,
        digest=digest_of_approval(opening.tool.version, opening.input),
        answer=granted,
        answered_at=now if granted else None,
    )
