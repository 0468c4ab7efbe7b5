"""The words of the events wire. Runs and calls are told in ours, clients as their wire spells them."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType, field


class Gap(Struct):
    """The position that was sent is not known here: everything that is kept follows."""

    type: str
    after: str


class ClientTools(Struct):
    """`client-tool.registered` and `client-tool.unregistered`."""

    type: str
    client_id: str = field(name="clientID")
    tool_ids: list[str] = field(name="toolIDs")


class RequestShape(Struct):
    type: str
    request_id: str = field(name="requestID")
    session_id: str = field(name="sessionID")
    message_id: str = field(name="messageID")
    call_id: str = field(name="callID")
    tool: str
    input: dict[str, object]


class ToolRequest(Struct):
    """`client-tool.request`."""

    type: str
    client_id: str = field(name="clientID")
    request: RequestShape


class ToolStatus(Struct, omit_defaults=True):
    """`client-tool.executing`, `client-tool.completed` and `client-tool.failed`."""

    type: str
    request_id: str = field(name="requestID")
    session_id: str = field(name="sessionID")
    message_id: str = field(name="messageID")
    call_id: str = field(name="callID")
    tool: str
    client_id: str = field(name="clientID")
    error: str | UnsetType = UNSET
    success: bool | UnsetType = UNSET
