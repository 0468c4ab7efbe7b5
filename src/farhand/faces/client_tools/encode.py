"""Encodes requests, receipts and errors for the client-tools wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, assert_never

from msgspec import UNSET

from farhand.agent.direct_calls import Overdue
from farhand.clients.inbox import EndedCall, InboxItem, OfferedCall, StreamReplaced, WithdrawnTools
from farhand.core.call import Call, Phase
from farhand.core.client import tool_id
from farhand.core.outcome import Cancelled, Success, TimedOut, kind_of, public_error
from farhand.core.result import Accepted, Conflict, Receipt, Refused, Repeated, Unknown
from farhand.core.tool import Tool
from farhand.errors import FarhandError
from farhand.faces.client_tools.decode import Dialect
from farhand.faces.client_tools.shapes import (
    ClientTool,
    ClientToolFault,
    ClientToolRefusal,
    ExecutedTool,
    RegisteredTools,
    TakenResult,
    ToolRequest,
    ToolSettled,
    ToolUnregistered,
    UnregisteredTools,
)
from farhand.wire.json_writer import encode
from farhand.wire.sse import frame

ClientToolsResponse: TypeAlias = tuple[int, bytes]

PING = frame(b"", event="ping")

CODES = {400: "INVALID_REQUEST", 404: "NOT_FOUND", 409: "CONFLICT", 410: "GONE", 504: "TIMEOUT"}
"""The codes of this wire; for other statuses our own code."""


def encode_items(items: Iterable[InboxItem]) -> bytes:
    return b"".join([_encode_item(item) for item in items])


def encode_registered(tools: Iterable[Tool]) -> bytes:
    return encode(RegisteredTools([tool.name for tool in tools]))


def encode_unregistered(names: list[str]) -> bytes:
    return encode(UnregisteredTools(success=True, unregistered=names))


def encode_tools_of(tools: Iterable[Tool]) -> bytes:
    return encode([_shape(tool) for tool in tools])


def encode_all_tools(tools: Iterable[Tool]) -> bytes:
    return encode({tool.name: _shape(tool) for tool in tools})


def encode_executed(called: Call | Overdue, tool: Tool | None = None) -> ClientToolsResponse:
    """A result without a title gets the tool's title, or its name."""
    if isinstance(called, Overdue):
        return _overdue(called.call)
    call = called
    match call.outcome:
        case Success(output=output):
            title = call.title or (None if tool is None else tool.title) or call.tool
            done = ExecutedTool("success", title, output, call.metadata or UNSET)
            return 200, encode(done)
        case TimedOut():
            return _refusal(504, f"'{call.tool}' did not answer in time.")
        case None:
            return 200, encode(ExecutedTool("error", error=public_error(Cancelled("the call is gone"))))
        case outcome:
            return 200, encode(ExecutedTool("error", error=public_error(outcome)))


def encode_receipt(receipt: Receipt, dialect: Dialect) -> ClientToolsResponse:
    match receipt:
        case Accepted():
            return 200, _TRUE if dialect is Dialect.FLAT else _SUCCESS
        case Repeated():
            return 200, _TRUE if dialect is Dialect.FLAT else _IGNORED
        case Conflict(winner=winner):
            return _refusal(409, f"This request already has a different result ({winner.kind}).")
        case Refused(reason="not_approved"):
            return _refusal(409, "This request is not approved yet.")
        case Refused(reason="taken"):
            return _refusal(409, "Somebody else is working on this request.")
        case Refused(reason=reason):
            gone = _refusal(410, f"This request has ended: {reason}.")
            return gone if dialect is Dialect.FLAT else _UNKNOWN_NESTED
        case Unknown():
            unknown = _refusal(404, "There is no such request.")
            return unknown if dialect is Dialect.FLAT else _UNKNOWN_NESTED
    assert_never(receipt)


def encode_progress(receipt: Receipt) -> ClientToolsResponse:
    """410 for a request that already has a result: it needs no more work."""
    if isinstance(receipt, Conflict):
        return _refusal(410, f"This request has ended: it has a result ({receipt.winner.kind}).")
    return encode_receipt(receipt, Dialect.FLAT)


def encode_error(error: FarhandError, status: int) -> bytes:
    return encode(ClientToolRefusal(ClientToolFault(CODES.get(status, error.code.upper()), str(error))))


_TRUE = encode(True)
_SUCCESS = encode(TakenResult(success=True))
_IGNORED = encode(TakenResult(success=True, ignored=True))
# spelled as the clients of that dialect expect it
_UNKNOWN_NESTED = (404, encode({"error": "Unknown request ID"}))


def _refusal(status: int, message: str) -> ClientToolsResponse:
    return status, encode(ClientToolRefusal(ClientToolFault(CODES[status], message)))


def _overdue(call: Call) -> ClientToolsResponse:
    if call.phase is Phase.SETTLED:
        return _refusal(504, _ended(call))
    message = f"'{call.tool}' did not answer in time; the call {call.call_id} stays open."
    return 504, encode(ClientToolRefusal(ClientToolFault(CODES[504], message, call.call_id)))


def _ended(call: Call) -> str:
    if call.approval is not None and call.approval.answer is None:
        return f"Nobody approved '{call.tool}' in time; the call was cancelled and had no effect."
    # what already runs somewhere may be past stopping
    late = f"'{call.tool}' did not answer in time"
    return f"{late}; the call was cancelled, but it may already have had an effect."


def _encode_item(item: InboxItem) -> bytes:
    match item:
        case OfferedCall(call=call, again=again):
            return frame(encode(_request(call, again=again)), event="tool-request", id=call.call_id)
        case EndedCall(call=call):
            outcome = "" if call.outcome is None else kind_of(call.outcome)
            settled = ToolSettled("client-tool-settled", call.call_id, outcome)
            return frame(encode(settled), event="tool-settled")
        case WithdrawnTools(tools=names):
            gone = ToolUnregistered("client-tool-unregistered", list(names))
            return frame(encode(gone), event="tool-unregistered")
        case StreamReplaced():
            return frame(b"", event="superseded")
    assert_never(item)


def _request(call: Call, *, again: bool) -> ToolRequest:
    asked = call.request.message_id if call.request is not None else None
    return ToolRequest(
        type="client-tool-request",
        request_id=call.call_id,
        session_id=call.thread_id,
        message_id=asked or (f"{call.run_id}:{call.step}" if call.run_id is not None else ""),
        call_id=call.model_call_id or "",
        tool=tool_id(call.client_id or "", call.tool),
        input=call.input,
        again=True if again else UNSET,
    )


def _shape(tool: Tool) -> ClientTool:
    return ClientTool(tool.name, tool.description, tool.input_schema)
