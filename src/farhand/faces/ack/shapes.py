"""The structs of the ack wire."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType


class Ack(Struct, rename="camel"):
    tool_call_id: str
    status: Literal["success", "failed", "timeout"]
    output: object = None
    error_text: str | None = None
    requested_at: str | None = None
    only_if_fits: bool = False
    """An output that does not fit the schema is refused and the call stays open: a person can change it."""


class TakeRequest(Struct, rename="camel"):
    tool_call_id: str
    client_id: str


class ApproveRequest(Struct, rename="camel"):
    approval_id: str
    approved: bool
    reason: str | None = None
    input: dict[str, object] | None = None
    scope: Literal["once", "thread"] = "once"


class AckReply(Struct, rename="camel", omit_defaults=True):
    """`ok` is always present, the other fields only where they apply."""

    ok: bool
    ignored: bool | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    digest: str | UnsetType = UNSET
    expires_in_sec: int | UnsetType = UNSET
