"""The fields of an event that the wires show, with their order and names. Pure.

The log holds more fields, for the fold. Where the log has renamed one, the wires keep the old name.
"""

from __future__ import annotations

from farhand.core.event import (
    AnswerDelivered,
    ApprovalAnswered,
    CallBegun,
    CallOpened,
    CallProgressed,
    CallRejected,
    CallReleased,
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
    RunResumed,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
)
from farhand.core.position import Happening

_FIELDS: dict[type[Happening], tuple[str, ...]] = {
    RunStarted: ("user_message_id",),
    StepStarted: ("step",),
    ModelDelayed: ("message",),
    TextAdded: ("part", "text"),
    ReasoningAdded: ("part", "text"),
    CallBegun: ("call_id", "tool"),
    InputAdded: ("call_id", "text"),
    CallOpened: ("call_id", "tool", "executor", "input", "phase", "approval_id", "deadline", "card"),
    CallRejected: ("call_id", "tool", "input", "error"),
    ApprovalAnswered: (
        "call_id",
        "approval_id",
        "approved",
        "reason",
        "tool",
        "executor",
        "input",
        "deadline",
    ),
    CallTaken: ("call_id", "holder"),
    CallReleased: ("call_id",),
    CallSettled: ("call_id", "tool", "executor", "outcome", "digest"),
    StepFinished: ("step", "stop_reason", "usage"),
    StepDiscarded: ("step",),
    RunParked: (),
    RunResumed: ("taken_over",),
    RunFinished: ("state", "reason", "delivered"),
    RunFailed: ("code", "message", "delivered", "detail"),
    AnswerDelivered: (),
    ClientRegistered: ("client_id", "tools"),
    ClientUnregistered: ("client_id", "tools", "reason"),
    CallProgressed: ("call_id", "tool", "text", "request_id"),
}
_NAMES = {"delivered": "heard"}
_TYPES: dict[type[Happening], str] = {AnswerDelivered: "answer-heard"}


def is_public(event: Happening) -> bool:
    """False for events that only the log needs."""
    return type(event) in _FIELDS


def event_type(event: Happening) -> str:
    return _TYPES.get(type(event)) or str(event.__struct_config__.tag)


def public_fields(event: Happening, thread_id: str | None) -> dict[str, object]:
    """The values of the event by their names in snake case."""
    first: dict[str, object] = {"thread_id": thread_id} if isinstance(event, RunStarted) else {}
    return first | {_NAMES.get(name, name): getattr(event, name) for name in _FIELDS[type(event)]}
