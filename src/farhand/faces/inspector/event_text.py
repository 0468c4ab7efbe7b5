"""Events as one line of text, and as JSON. Pure."""

from __future__ import annotations

from msgspec import Struct

from farhand.core.event import (
    ApprovalAnswered,
    CallOpened,
    CallProgressed,
    CallRejected,
    CallSettled,
    CallTaken,
    ClientRegistered,
    ClientUnregistered,
    InputAdded,
    ModelDelayed,
    ReasoningAdded,
    RunFailed,
    RunFinished,
    RunParked,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import reason_of
from farhand.core.position import Happening
from farhand.core.principal import name_in
from farhand.faces.event_fields import event_type, public_fields

LINE_CHARS = 160


def event_line(event: Happening, tools: dict[str, str], thread_id: str | None) -> str:
    """One line; `tools` has the tools of the calls in earlier events."""
    if isinstance(event, RunStarted):
        return f"chat {thread_id}"
    tool = tools.get(getattr(event, "call_id", ""), "")
    text = _of_call(event, tool) or _of_run(event) or _of_client(event) or tool
    line = " ".join(text.split())
    return line if len(line) <= LINE_CHARS else f"{line[: LINE_CHARS - 1]}…"


def event_json(event: Happening, thread_id: str | None) -> dict[str, object]:
    """The fields of the event that the wires show."""
    return {"type": event_type(event)} | public_fields(event, thread_id)


def _of_call(event: Happening, tool: str) -> str:
    match event:
        case CallOpened(tool=name, executor=executor):
            asks = ", needs approval first" if event.approval_id is not None else ""
            return f"{name}, {_WHERE[executor.value]}{asks}"
        case CallRejected(tool=name, error=error):
            return f"{name}: {error}"
        case ApprovalAnswered(tool=name, approved=approved, reason=reason):
            because = f": {reason}" if reason else ""
            person = name_in(event.approval.by)
            by = f" by {person}" if person else ""
            return f"{name}, {'allowed' if approved else 'denied'}{by}{because}"
        case CallTaken(holder=holder):
            return f"{tool} by {holder}"
        case CallSettled(tool=name, outcome=outcome):
            why = reason_of(outcome)
            return f"{name}, {outcome_text(outcome)}" + (f": {why}" if why else "")
        case InputAdded(text=text):
            return f"{tool} {text}"
        case CallProgressed(tool=name, text=text):
            return f"{name}: {text}"
        case _:
            return ""


def outcome_text(outcome: Struct) -> str:
    return str(outcome.__struct_config__.tag).replace("_", " ")


_WHERE = {"server": "on the server", "frontend": "to open browsers of this chat", "client": "to a client"}


def _of_run(event: Happening) -> str:
    match event:
        case RunParked():
            return "saved while waiting; continues with its last answer"
        case StepStarted(step=step) | StepDiscarded(step=step):
            return f"step {step}"
        case StepFinished(step=step, stop_reason=reason):
            return f"step {step}, {reason}"
        case TextAdded(text=text) | ReasoningAdded(text=text):
            return text
        case ModelDelayed(message=message) | RunFailed(message=message):
            return getattr(event, "detail", "") or message
        case RunFinished(state=state, reason=reason):
            return f"{state.value}, {reason}" if reason else state.value
        case _:
            return ""


def _of_client(event: Happening) -> str:
    match event:
        case ClientRegistered(client_id=client_id, tools=tools):
            return f"{client_id}: {', '.join(tools)}"
        case ClientUnregistered(client_id=client_id, reason=reason):
            return f"{client_id}: {reason}" if reason else client_id
        case _:
            return ""
