"""How a call can end, the digest that distinguishes two results, and what the model sees of it."""

from __future__ import annotations

import hashlib
from typing import TypeAlias, assert_never

import msgspec
from msgspec import Struct

MODEL_SEES_AT_MOST = 64 * 1024


class Success(Struct, frozen=True, gc=False, tag_field="kind", tag="success"):
    output: object = None


class Failure(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    repr_omit_defaults=True,
    tag_field="kind",
    tag="failure",
):
    """`error` is for the model, which has to correct its input, and for the log."""

    error: str
    public: str = ""
    """What people in the chat see instead of `error`; empty if they see the same."""


class Denied(Struct, frozen=True, gc=False, tag_field="kind", tag="denied"):
    reason: str = ""


class TimedOut(Struct, frozen=True, gc=False, tag_field="kind", tag="timed_out"):
    after_sec: float | None = None


class Cancelled(Struct, frozen=True, gc=False, tag_field="kind", tag="cancelled"):
    reason: str


Outcome: TypeAlias = Success | Failure | Denied | TimedOut | Cancelled

_canonical = msgspec.json.Encoder(order="sorted")


def kind_of(outcome: Outcome) -> str:
    return str(outcome.__struct_config__.tag)


def canonical(value: object) -> bytes:
    """Keys sorted, UTF-8, no whitespace; 1 and 1.0 differ."""
    return _canonical.encode(value)


def digest(value: object) -> str:
    """SHA-256 of the canonical JSON: equal for the same value sent twice, different for anything else."""
    return hashlib.sha256(_canonical.encode(value)).hexdigest()


UNKNOWN_EFFECT = "whether it took effect is unknown"
DID_RUN = "The tool did run"
"""How a failure says that the tool did its work, or may have."""


def may_have_had_effect(failure: Failure) -> bool:
    """False for an error that the tool raised: it says what became of it."""
    return UNKNOWN_EFFECT in failure.error.lower() or DID_RUN in failure.error


class ModelText(Struct, frozen=True, gc=False):
    """A result as the model reads it: text, and whether it is an error."""

    text: str
    is_error: bool = False


def seen_by_model(outcome: Outcome) -> ModelText:
    match outcome:
        case Success(output=str(text)):
            return ModelText(_cut(text))
        case Success(output=output):
            return ModelText(_cut(canonical(output).decode()))
        case Failure(error=error):
            return _error({"status": "failed", "errorText": _cut(error)})
        case TimedOut():
            return _error({"status": "timeout"})
        case Denied(reason=reason):
            because = f" They gave this reason: {reason}" if reason else ""
            return ModelText(f"The user denied this call; it was not executed.{because}", is_error=True)
        case Cancelled(reason=reason):
            return ModelText(f"This call was cancelled and has no result: {reason}.", is_error=True)
        case _:
            assert_never(outcome)


def public(outcome: Outcome) -> Outcome:
    """The outcome as people in the chat see it."""
    return Failure(outcome.public) if isinstance(outcome, Failure) and outcome.public else outcome


def public_error(outcome: Outcome) -> str:
    """Why there is no output, in a sentence for people in the chat; empty for a success."""
    return reason_of(public(outcome))


def reason_of(outcome: Outcome) -> str:
    """The same with everything that is recorded: for those who may inspect runs."""
    match outcome:
        case Success():
            return ""
        case Failure(error=error):
            return error
        case Denied(reason=reason):
            return f"Denied: {reason}" if reason else "Denied."
        case TimedOut(after_sec=after):
            return f"Nobody answered within {after:g} s." if after else "Nobody answered in time."
        case Cancelled(reason=reason):
            return f"Cancelled: {reason}."
        case _:
            assert_never(outcome)


def _error(body: dict[str, str]) -> ModelText:
    return ModelText(msgspec.json.encode(body).decode(), is_error=True)


def cut(text: str, limit: int) -> str:
    """The text in at most this many bytes, with a mark where it was cut."""
    raw = text.encode(errors="replace")
    if len(raw) <= limit:
        return text
    mark = f"\n[cut here: {len(raw)} bytes in total]"
    return raw[: max(0, limit - len(mark))].decode(errors="ignore") + mark


def _cut(text: str) -> str:
    # measured in bytes, since providers bill and limit those; the log keeps the whole result
    raw = text.encode(errors="replace")
    if len(raw) <= MODEL_SEES_AT_MOST:
        return text
    kept = raw[:MODEL_SEES_AT_MOST].decode(errors="ignore")
    return f"{kept}\n[cut here: {len(raw)} bytes in total, showing the first {MODEL_SEES_AT_MOST}]"
