"""The fields of an event that the wires show, in order, with their names. Pure.

The log holds more fields, for the fold. Where the log has renamed one, the wires keep the old name.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import fields

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


def public_fields(
    event: Happening, thread_id: str | None, *, omit_defaults: bool = False
) -> dict[str, object]:
    """The values of the event by their names in camel case; `omit_defaults` is for structs in it."""
    first: dict[str, object] = {"threadId": thread_id} if isinstance(event, RunStarted) else {}
    return first | {
        _camel_case(_NAMES.get(name, name)): _plain(getattr(event, name), omit_defaults=omit_defaults)
        for name in _FIELDS[type(event)]
    }


def struct_fields(record: Struct, *, omit_defaults: bool = False) -> dict[str, object]:
    """Our own field names in camel case; what a model or a tool wrote stays as it is. Defaults are omitted
    only where the struct says so, too."""
    config = record.__struct_config__
    named: dict[str, object] = {} if config.tag is None else {config.tag_field or "type": config.tag}
    omits = omit_defaults and config.omit_defaults
    return named | {
        _camel_case(each.name): _plain(getattr(record, each.name), omit_defaults=omit_defaults)
        for each in fields(record)
        if not omits or getattr(record, each.name) != each.default
    }


def _plain(value: object, *, omit_defaults: bool) -> object:
    return struct_fields(value, omit_defaults=omit_defaults) if isinstance(value, Struct) else value


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
