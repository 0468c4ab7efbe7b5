"""The chunks of the UI message stream as JSON, each as it is written. Pure; `chunks.py` has their shapes.

Frequent ones are put together around the parts that vary, at a fraction of the price of a dictionary.
"""

from __future__ import annotations

from typing import assert_never

from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut, told_to_people
from farhand.wire.json_out import encode

DONE = b"[DONE]"


def chunk(kind: str, **fields: object) -> bytes:
    return encode({"type": kind, **fields})


START_STEP = chunk("start-step")
FINISH_STEP = chunk("finish-step")
FINISH = {
    reason: chunk("finish", finishReason=reason)
    for reason in ("stop", "tool-calls", "length", "content-filter", "other")
}


# ids of ours are letters and digits: they need no look for what JSON would have to escape


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
            return chunk("tool-output-error", toolCallId=call_id, errorText=told_to_people(ended))
    assert_never(ended)
