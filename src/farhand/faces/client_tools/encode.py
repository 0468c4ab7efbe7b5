"""Requests, receipts and errors in the words of the client-tools wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, assert_never

from msgspec import UNSET

from farhand.agent.direct import Overdue
from farhand.clients.inbox import Ended, Item, Offered, Superseded, Withdrawn
from farhand.core.call import Call, Phase
from farhand.core.client import tool_id
from farhand.core.outcome import Cancelled, Success, TimedOut, kind_of, told_to_people
from farhand.core.result import Accepted, Conflict, Receipt, Refused, Repeated, Unknown
from farhand.core.tool import Tool
from farhand.errors import FarhandError
from farhand.faces.client_tools.decode import Dialect
from farhand.faces.client_tools.shapes import (
    Executed,
    Fault,
    Refusal,
    ToolRequest,
    ToolSettled,
    ToolShape,
    ToolUnregistered,
)
from farhand.wire.json_out import encode
from farhand.wire.sse import frame

Answer: TypeAlias = tuple[int, bytes]

PING = frame(b"", event="ping")

CODES = {400: "INVALID_REQUEST", 404: "NOT_FOUND", 409: "CONFLICT", 410: "GONE", 504: "TIMEOUT"}
"""The words of this wire; what it has no word for is said in ours."""


def encode_items(items: Iterable[Item]) -> bytes:
    return b"".join([_encode_item(item) for item in items])


def encode_registered(tools: Iterable[Tool]) -> bytes:
    return encode({"registered": [tool.name for tool in tools]})


def encode_unregistered(names: list[str]) -> bytes:
    return encode({"success": True, "unregistered": names})


def encode_tools_of(tools: Iterable[Tool]) -> bytes:
    return encode([_shape(tool) for tool in tools])


def encode_all_tools(tools: Iterable[Tool]) -> bytes:
    return encode({tool.name: _shape(tool) for tool in tools})


def encode_executed(called: Call | Overdue, tool: Tool | None = None) -> Answer:
    """A result without a title has the tool's, or its name."""
    if isinstance(called, Overdue):
        return _overdue(called.call)
    call = called
    match call.outcome:
        case Success(output=output):
            title = call.title or (None if tool is None else tool.title) or call.tool
            done = Executed("success", title, output, call.metadata or UNSET)
            return 200, encode(done)
        case TimedOut():
            return _refusal(504, f"'{call.tool}' did not answer in time.")
        case None:
            return 200, encode(Executed("error", error=told_to_people(Cancelled("the call is gone"))))
        case outcome:
            return 200, encode(Executed("error", error=told_to_people(outcome)))


def encode_receipt(receipt: Receipt, dialect: Dialect) -> Answer:
    match receipt:
        case Accepted():
            return 200, _TRUE if dialect is Dialect.FLAT else _SUCCESS
        case Repeated():
            return 200, _TRUE if dialect is Dialect.FLAT else _IGNORED
        case Conflict(winner=winner):
            return _refusal(409, f"This request has another result already ({winner.kind}).")
        case Refused(reason="not_approved"):
            return _refusal(409, "This request was not approved yet.")
        case Refused(reason="taken"):
            return _refusal(409, "Somebody else works on this request.")
        case Refused(reason=reason):
            gone = _refusal(410, f"This request is over: it was {reason}.")
            return gone if dialect is Dialect.FLAT else _UNKNOWN_NESTED
        case Unknown():
            unknown = _refusal(404, "There is no such request.")
            return unknown if dialect is Dialect.FLAT else _UNKNOWN_NESTED
    assert_never(receipt)


def encode_progress(receipt: Receipt) -> Answer:
    """A request that has a result, whoever brought it, needs no more work: 410."""
    if isinstance(receipt, Conflict):
        return _refusal(410, f"This request is over: it has a result ({receipt.winner.kind}).")
    return encode_receipt(receipt, Dialect.FLAT)


def encode_error(error: FarhandError, status: int) -> bytes:
    return encode(Refusal(Fault(CODES.get(status, error.code.upper()), str(error))))


_TRUE = encode(True)
_SUCCESS = encode({"success": True})
_IGNORED = encode({"success": True, "ignored": True})
# spelled as the clients of that dialect know it
_UNKNOWN_NESTED = (404, encode({"error": "Unknown request ID"}))


def _refusal(status: int, message: str) -> Answer:
    return status, encode(Refusal(Fault(CODES[status], message)))


def _overdue(call: Call) -> Answer:
    if call.phase is Phase.SETTLED:
        return _refusal(504, f"'{call.tool}' did not answer in time; the call was cancelled.")
    message = f"'{call.tool}' did not answer in time; the call {call.call_id} stays open."
    return 504, encode(Refusal(Fault(CODES[504], message, call.call_id)))


def _encode_item(item: Item) -> bytes:
    match item:
        case Offered(call=call, again=again):
            return frame(encode(_request(call, again=again)), event="tool-request", id=call.call_id)
        case Ended(call=call):
            outcome = "" if call.outcome is None else kind_of(call.outcome)
            settled = ToolSettled("client-tool-settled", call.call_id, outcome)
            return frame(encode(settled), event="tool-settled")
        case Withdrawn(tools=names):
            gone = ToolUnregistered("client-tool-unregistered", list(names))
            return frame(encode(gone), event="tool-unregistered")
        case Superseded():
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


def _shape(tool: Tool) -> ToolShape:
    return ToolShape(tool.name, tool.description, tool.input_schema)
