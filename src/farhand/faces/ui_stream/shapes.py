"""The words of the AI SDK UI message stream, spelled as it spells them; only what is read of them."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from farhand.core.settings import Wait


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
    input: object = None
    output: object = None
    error_text: str = ""
    approval: ApprovalPart | None = None
    url: str = ""
    media_type: str = ""
    filename: str | None = None


class UIMessage(Struct, rename="camel"):
    id: str
    role: Literal["system", "user", "assistant"]
    parts: list[UIPart]


class ChatRequest(Struct, rename="camel"):
    id: str
    messages: list[UIMessage]
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: str | None = None
    wait: Wait | None = None


class SocketBody(Struct, rename="camel"):
    wait: Wait | None = None


class Addressed(Struct, rename="camel"):
    request_id: str = ""


class SendFrame(Struct, rename="camel", tag="send"):
    request_id: str
    id: str
    messages: list[UIMessage]
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: str | None = None
    body: SocketBody | None = None


class ResumeFrame(Struct, rename="camel", tag="resume"):
    request_id: str
    id: str


class AbortFrame(Struct, rename="camel", tag="abort"):
    request_id: str


class MessageFrame(Struct, rename="camel", tag="message"):
    id: str
    messages: list[UIMessage]
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: str | None = None


class ToolResultFrame(Struct, rename="camel", tag="tool_result"):
    tool_call_id: str
    result: object = None
    status: str = "success"


class InterruptFrame(Struct, rename="camel", tag="interrupt"):
    reason: str | None = None


class PingFrame(Struct, rename="camel", tag="ping"):
    timestamp: object = None
