"""The words of the client-tools wire, spelled as it spells them."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field


class ToolShape(Struct):
    """A tool as it is listed, with its full id."""

    id: str
    description: str
    parameters: object


class OfferedTool(Struct):
    """A tool as a client offers it, with its short id. Ours are `output`, a schema of what it brings, and all
    that follows: for people, its time, whether it is asked for, whether strangers may speak through it."""

    id: str
    description: str
    parameters: object
    output: dict[str, object] | None = None
    title: str | None = None
    timeout_sec: float | None = field(name="timeoutSec", default=None)
    needs_approval: bool = field(name="needsApproval", default=False)
    untrusted: bool = False


class Register(Struct):
    """`holder` is ours: the program that registers, as it names itself on its stream."""

    client_id: str = field(name="clientID")
    tools: list[OfferedTool]
    grace_sec: float | None = field(name="graceSec", default=None)
    holder: str | None = None


class Unregister(Struct):
    """`tool_ids` absent (or null) means all of them, an empty list none. `holder` is ours: the program that
    leaves, whose leaving means nothing once another one is this client."""

    client_id: str = field(name="clientID")
    tool_ids: list[str] | None = field(name="toolIDs", default=None)
    holder: str | None = None


class Execute(Struct):
    """`timeout` is in milliseconds: how long the caller waits. `keep` is ours: the call stays after that."""

    tool_id: str = field(name="toolID")
    input: dict[str, object]
    request_id: str | None = field(name="requestID", default=None)
    session_id: str | None = field(name="sessionID", default=None)
    message_id: str | None = field(name="messageID", default=None)
    call_id: str | None = field(name="callID", default=None)
    timeout: float | None = None
    keep: bool = False


class Response(Struct):
    """What a tool brought."""

    status: Literal["success", "error"]
    title: str | None = None
    output: object = UNSET
    metadata: dict[str, object] | None = None
    error: str | None = None


class ResultBody(Struct):
    """Flat: the response's own fields beside `requestID`. Nested: the same under `result`."""

    request_id: str = field(name="requestID")
    result: Response | UnsetType = UNSET
    status: Literal["success", "error"] | UnsetType = UNSET
    title: str | None = None
    output: object = UNSET
    metadata: dict[str, object] | None = None
    error: str | None = None


class ProgressBody(Struct):
    """Ours: the client still works on this request. `text` is how far it is, for people. With `keepAlive` it
    is only kept from others: its deadline stays."""

    client_id: str = field(name="clientID")
    request_id: str = field(name="requestID")
    text: str = ""
    holder: str | None = None
    keep_alive: bool = field(name="keepAlive", default=False)


class ToolRequest(Struct, rename={"request_id": "requestID", "session_id": "sessionID"}, omit_defaults=True):
    """The data of a `tool-request`; `again` is ours: another program of this client had it before."""

    type: str
    request_id: str
    session_id: str
    message_id: str = field(name="messageID")
    call_id: str = field(name="callID")
    tool: str
    input: dict[str, object]
    again: bool | UnsetType = UNSET


class ToolSettled(Struct):
    """The data of a `tool-settled`, which is ours: a request that was sent on this stream has its outcome."""

    type: str
    request_id: str = field(name="requestID")
    outcome: str


class ToolUnregistered(Struct):
    """The data of a `tool-unregistered`, which is ours: the full ids of tools that are offered no more."""

    type: str
    tool_ids: list[str] = field(name="toolIDs")


class Executed(Struct, omit_defaults=True):
    status: str
    title: str | UnsetType = UNSET
    output: object = UNSET
    metadata: dict[str, object] | UnsetType = UNSET
    error: str | UnsetType = UNSET


class Fault(Struct, omit_defaults=True):
    """`call_id` is ours: the call that stays open though its caller's time is over."""

    code: str
    message: str
    call_id: str | UnsetType = field(name="callID", default=UNSET)


class Refusal(Struct):
    error: Fault
