"""The chunks of the UI message stream as JSON, and the frames of the sockets around them. Pure.

Frequent chunks are joined around the parts that vary, which costs a fraction of encoding a dictionary.
"""

from __future__ import annotations

from typing import assert_never

from msgspec import Raw

from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut, public_error
from farhand.wire.json_writer import encode
from farhand.wire.sse import frame

DONE = b"[DONE]"


def chunk(kind: str, **fields: object) -> bytes:
    return encode({"type": kind, **fields})


START_STEP = chunk("start-step")
FINISH_STEP = chunk("finish-step")
FINISH = {
    reason: chunk("finish", finishReason=reason)
    for reason in ("stop", "tool-calls", "length", "content-filter", "other")
}


# our ids are letters and digits, so there is nothing to escape


def start(message_id: str) -> bytes:
    return b'{"type":"start","messageId":"%b"}' % message_id.encode()


def approval_request(approval_id: str, call_id: str) -> bytes:
    return b'{"type":"tool-approval-request","approvalId":"%b","toolCallId":"%b"}' % (
        approval_id.encode(),
        call_id.encode(),
    )


def input_available(call_id: str, tool: str, input: object) -> bytes:
    return b'{"type":"tool-input-available","toolCallId":"%b","toolName":%b,"input":%b}' % (
        call_id.encode(),
        encode(tool),
        encode(input),
    )


def input_start(call_id: str, tool: str) -> bytes:
    return b'{"type":"tool-input-start","toolCallId":"%b","toolName":%b}' % (call_id.encode(), encode(tool))


def input_delta(call_id: str, text: str) -> bytes:
    return b'{"type":"tool-input-delta","toolCallId":"%b","inputTextDelta":%b}' % (
        call_id.encode(),
        encode(text),
    )


def outcome(call_id: str, ended: Outcome) -> bytes:
    match ended:
        case Success(output=output):
            return b'{"type":"tool-output-available","toolCallId":"%b","output":%b}' % (
                call_id.encode(),
                encode(output),
            )
        case Denied():
            return chunk("tool-output-denied", toolCallId=call_id)
        case Failure() | TimedOut() | Cancelled():
            return chunk("tool-output-error", toolCallId=call_id, errorText=public_error(ended))
    assert_never(ended)


def socket_frame(kind: str, request_id: str, error: str | None = None) -> bytes:
    """A frame of AI SDK's own WebSocket transport."""
    told = {"type": kind, "requestId": request_id}
    return encode(told if error is None else {**told, "errorText": error})


def socket_chunk(request_id: str, sequence: int, chunk: bytes) -> bytes:
    return encode({"type": "chunk", "requestId": request_id, "sequence": sequence, "chunk": Raw(chunk)})


def live_error(text: str) -> bytes:
    """An error outside any response of the live socket."""
    return frame(chunk("error", errorText=text))


def live_pong(timestamp: object) -> bytes:
    return encode({"type": "pong", "timestamp": timestamp})
