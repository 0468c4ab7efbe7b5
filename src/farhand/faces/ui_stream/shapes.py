"""The structs of the AI SDK UI message stream: what is read of requests, and the chunks of responses.

The structs of chunks are for the schema and the TypeScript types. What is sent is written by the functions
below them: frequent chunks are joined around the parts that vary, which costs a fraction of encoding a
struct. The transcripts are checked against both. Pure.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never

from msgspec import UNSET, Raw, Struct, UnsetType

from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut, public_error
from farhand.core.settings import Wait
from farhand.faces.base import ChosenId
from farhand.wire.json_writer import encode
from farhand.wire.sse import frame


class ApprovalPart(Struct, rename="camel"):
    id: str
    approved: bool | UnsetType = UNSET
    reason: str | None = None


class UIPart(Struct, rename="camel"):
    """All kinds of parts in one struct: `type` and `state` say which fields count."""

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
    id: ChosenId
    messages: list[UIMessage]
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message_id: str | None = None
    wait: Wait | None = None


class SocketBody(Struct, rename="camel"):
    wait: Wait | None = None


class FrameHeader(Struct, rename="camel"):
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


class ChunkShape(Struct, rename="camel", tag_field="type", forbid_unknown_fields=True):
    """What all chunks have in common."""


class StartChunk(ChunkShape, tag="start"):
    message_id: str


class StartStepChunk(ChunkShape, tag="start-step"):
    pass


class FinishStepChunk(ChunkShape, tag="finish-step"):
    pass


class TextStartChunk(ChunkShape, tag="text-start"):
    id: str


class TextDeltaChunk(ChunkShape, tag="text-delta"):
    id: str
    delta: str


class TextEndChunk(ChunkShape, tag="text-end"):
    id: str


class ReasoningStartChunk(ChunkShape, tag="reasoning-start"):
    id: str


class ReasoningDeltaChunk(ChunkShape, tag="reasoning-delta"):
    id: str
    delta: str


class ReasoningEndChunk(ChunkShape, tag="reasoning-end"):
    id: str


class ToolInputStartChunk(ChunkShape, tag="tool-input-start"):
    """The model begins to write the input of a call."""

    tool_call_id: str
    tool_name: str


class ToolInputDeltaChunk(ChunkShape, tag="tool-input-delta"):
    tool_call_id: str
    input_text_delta: str


class ToolInputAvailableChunk(ChunkShape, tag="tool-input-available"):
    """The input is complete. The tool may be executed now, unless it still needs an approval."""

    tool_call_id: str
    tool_name: str
    input: dict[str, object]


class ToolInputErrorChunk(ChunkShape, tag="tool-input-error"):
    tool_call_id: str
    tool_name: str
    input: object
    error_text: str


class ToolApprovalRequestChunk(ChunkShape, tag="tool-approval-request"):
    approval_id: str
    tool_call_id: str


class ToolOutputAvailableChunk(ChunkShape, tag="tool-output-available"):
    tool_call_id: str
    output: object


class ToolOutputErrorChunk(ChunkShape, tag="tool-output-error"):
    tool_call_id: str
    error_text: str


class ToolOutputDeniedChunk(ChunkShape, tag="tool-output-denied"):
    tool_call_id: str


class Replay(Struct, forbid_unknown_fields=True):
    replay: bool


class GapChunk(ChunkShape, tag="data-gap"):
    """The reader's position is unknown; the whole answer follows."""

    data: Replay
    transient: bool | UnsetType = UNSET


class ErrorChunk(ChunkShape, tag="error"):
    error_text: str


class FinishChunk(ChunkShape, tag="finish"):
    finish_reason: str


Chunk: TypeAlias = (
    StartChunk
    | StartStepChunk
    | FinishStepChunk
    | TextStartChunk
    | TextDeltaChunk
    | TextEndChunk
    | ReasoningStartChunk
    | ReasoningDeltaChunk
    | ReasoningEndChunk
    | ToolInputStartChunk
    | ToolInputDeltaChunk
    | ToolInputAvailableChunk
    | ToolInputErrorChunk
    | ToolApprovalRequestChunk
    | ToolOutputAvailableChunk
    | ToolOutputErrorChunk
    | ToolOutputDeniedChunk
    | GapChunk
    | ErrorChunk
    | FinishChunk
)


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
    fields = {"type": kind, "requestId": request_id}
    return encode(fields if error is None else {**fields, "errorText": error})


def socket_chunk(request_id: str, sequence: int, chunk: bytes) -> bytes:
    return encode({"type": "chunk", "requestId": request_id, "sequence": sequence, "chunk": Raw(chunk)})


def live_error(text: str) -> bytes:
    """An error outside any response of the live socket."""
    return frame(chunk("error", errorText=text))


def live_pong(timestamp: object) -> bytes:
    return encode({"type": "pong", "timestamp": timestamp})
