"""The structs of the client-tools wire. Fields that the docstrings call ours extend the original wire."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

ClientId: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": "^[A-Za-z0-9_-]{1,64}$"})]
"""Checked by `decode.py`; the pattern is for the OpenAPI document. A tool's short id has the same form."""


class ClientTool(Struct):
    """A tool as it is listed, with its full id."""

    id: str
    description: str
    parameters: object


class OfferedTool(Struct):
    """A tool as a client registers it, with its short id. Ours are `output`, the schema of its output, and
    the fields after it: title, timeout, whether it needs an approval, whether its output is untrusted."""

    id: ClientId
    description: str
    parameters: object
    output: dict[str, object] | None = None
    title: str | None = None
    timeout_sec: float | None = field(name="timeoutSec", default=None)
    needs_approval: bool = field(name="needsApproval", default=False)
    untrusted: bool = False


class RegisterTools(Struct):
    """`holder` is ours: the program that registers, with the name that it uses on its stream."""

    client_id: ClientId = field(name="clientID")
    tools: list[OfferedTool]
    grace_sec: float | None = field(name="graceSec", default=None)
    holder: str | None = None


class UnregisterTools(Struct):
    """`tool_ids` absent (or null) means all tools, an empty list none. `holder` is ours: the program that
    leaves; if another program has become this client, nothing is unregistered."""

    client_id: ClientId = field(name="clientID")
    tool_ids: list[str] | None = field(name="toolIDs", default=None)
    holder: str | None = None


class ExecuteTool(Struct):
    """`timeout` is how long the caller waits, in milliseconds. `keep` is ours: the call outlives it."""

    tool_id: str = field(name="toolID")
    input: dict[str, object]
    request_id: str | None = field(name="requestID", default=None)
    session_id: str | None = field(name="sessionID", default=None)
    message_id: str | None = field(name="messageID", default=None)
    call_id: str | None = field(name="callID", default=None)
    timeout: float | None = None
    keep: bool = False


class ToolResponse(Struct):
    """The result of a tool."""

    status: Literal["success", "error"]
    title: str | None = None
    output: object = UNSET
    metadata: dict[str, object] | None = None
    error: str | None = None


class ClientToolResult(Struct):
    """Flat: the response's own fields next to `requestID`. Nested: the same under `result`."""

    request_id: str = field(name="requestID")
    result: ToolResponse | UnsetType = UNSET
    status: Literal["success", "error"] | UnsetType = UNSET
    title: str | None = None
    output: object = UNSET
    metadata: dict[str, object] | None = None
    error: str | None = None


class ClientToolProgress(Struct):
    """Ours: the client still works on this request. `text` says how far it is, for people. With `keepAlive`
    the client keeps the request, but its deadline stays."""

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
    """The data of a `tool-unregistered`, which is ours: the full ids of tools that were unregistered."""

    type: str
    tool_ids: list[str] = field(name="toolIDs")


class ExecutedTool(Struct, omit_defaults=True):
    status: str
    title: str | UnsetType = UNSET
    output: object = UNSET
    metadata: dict[str, object] | UnsetType = UNSET
    error: str | UnsetType = UNSET


class ClientToolFault(Struct, omit_defaults=True):
    """`call_id` is ours: the call that stays open after its caller's timeout."""

    code: str
    message: str
    call_id: str | UnsetType = field(name="callID", default=UNSET)


class ClientToolRefusal(Struct):
    error: ClientToolFault


class RegisteredTools(Struct):
    registered: list[str]


class UnregisteredTools(Struct):
    success: bool
    unregistered: list[str]


class TakenResult(Struct, omit_defaults=True):
    """The answer of the flat dialect to an accepted result or progress report."""

    success: bool
    ignored: bool = False
