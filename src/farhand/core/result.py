"""A result carries an outcome to a call; a receipt is our answer to it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from farhand.core.outcome import Outcome


class Result(Struct, frozen=True, gc=False, kw_only=True):
    call_id: str
    outcome: Outcome
    title: str | None = None
    metadata: dict[str, object] | None = None
    by: str = ""
    """The name of the person who answers; empty for a program."""


class Winner(Struct, frozen=True, gc=False):
    """The outcome a call has and keeps: every later result gets this one in its receipt."""

    kind: str
    digest: str
    at: float


Reason: TypeAlias = Literal["expired", "cancelled", "not_approved", "taken"]


class Accepted(Struct, frozen=True, gc=False):
    pass


class Repeated(Struct, frozen=True, gc=False):
    pass


class Conflict(Struct, frozen=True, gc=False):
    winner: Winner


class Refused(Struct, frozen=True, gc=False):
    reason: Reason
    winner: Winner | None = None


class Unknown(Struct, frozen=True, gc=False):
    pass


Receipt: TypeAlias = Accepted | Repeated | Conflict | Refused | Unknown
