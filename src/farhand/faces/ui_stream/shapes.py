"""The words of the AI SDK UI message stream, spelled as it spells them; only what is read of them."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType


class ApprovalPart(Struct, rename="camel"):
    id: str
    approved: bool | UnsetType = UNSET
    reason: str | None = None


class UIPart(Struct, rename="camel"):
    """Every kind of part in one: `type` and `state` say which fields count."""

    type: str
    text: str = ""
    state: str = ""
    tool_call_id: str = ""
    output: object = None
    error_text: str = ""
    approval: ApprovalPart | None = None


class UIMessage(Struct, rename="camel"):
    id: str
    role: Literal["system", "user", "assistant"]
    parts: list[UIPart]


class ChatRequest(Struct, rename="camel"):
    id: str
    messages: list[UIMessage]
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: str | None = None
    wait: Literal["turn", "hold"] = "turn"
