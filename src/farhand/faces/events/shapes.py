"""The structs of the events wire: clients are spelled as on their own wire."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType, field


class FeedGap(Struct):
    """The position that was sent is unknown: everything that is kept follows."""

    type: str
    after: str


class ClientToolsEvent(Struct):
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


class ToolRequestEvent(Struct):
    """`client-tool.request`."""

    type: str
    client_id: str = field(name="clientID")
    request: RequestShape


class ToolStatusEvent(Struct, omit_defaults=True):
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
