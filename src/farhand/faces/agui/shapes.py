"""The structs of AG-UI and of CopilotKit's runtime: the fields of requests that are read, and the events of
responses.

Members that are not taken from a request are read as anything: what a client keeps for itself is not judged.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from farhand.faces.base import ChosenId

PROTOCOL_VERSION = "1.0"
RUNTIME_VERSION = "1.75.0"
"""The version of CopilotKit's runtime whose routes these are."""
AGENT_ID = "default"


# ------------------------------------------------------------------------------------------- requests


class PartSource(Struct, rename="camel"):
    type: str
    value: str = ""
    mime_type: str = ""


class ContentPart(Struct, rename="camel"):
    """All kinds of parts in one struct. `data`, `url` and `id` are those of the older kind `binary`."""

    type: str
    text: str = ""
    source: PartSource | None = None
    mime_type: str = ""
    data: str = ""
    filename: str | None = None


class AguiToolCall(Struct):
    id: str = ""


class AguiMessage(Struct, rename="camel"):
    role: str
    id: str = ""
    content: object = None
    tool_calls: list[AguiToolCall] | None = None
    tool_call_id: str | None = None
    error: str | None = None


class AguiTool(Struct):
    name: str
    description: str = ""
    parameters: object = None


class ContextItem(Struct):
    description: str
    value: str


class ResumeEntry(Struct, rename="camel"):
    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: object = None


class RunAgentInput(Struct, rename="camel"):
    thread_id: ChosenId
    run_id: str
    messages: list[AguiMessage]
    tools: list[AguiTool] | None = None
    context: list[ContextItem] | None = None
    resume: list[ResumeEntry] | None = None
    protocol_version: str | None = None
    parent_run_id: object = None
    state: object = None
    forwarded_props: object = None


class StopRequest(Struct, rename="camel"):
    run_id: str | None = None


class RuntimeParams(Struct, frozen=True, rename="camel"):
    agent_id: str = AGENT_ID
    thread_id: str | None = None


class RuntimeRequest(Struct):
    """The single endpoint: `method` is one of the other routes."""

    method: Literal["info", "agent/run", "agent/connect", "agent/stop"]
    params: RuntimeParams = RuntimeParams()
    body: object = None


# -------------------------------------------------------------------------------------------- answers


class RuntimeAgent(Struct, rename="camel"):
    name: str
    description: str
    class_name: str
    capabilities: dict[str, dict[str, bool]]


class RuntimeInfo(Struct, rename="camel"):
    version: str
    mode: Literal["sse"]
    agents: dict[str, RuntimeAgent]
    audio_file_transcription_enabled: bool = False
    suggestions: bool = False
    telemetry_disabled: bool = True


class AguiRefusal(Struct):
    error: str
    message: str


# --------------------------------------------------------------------------------------------- events


class CalledFunction(Struct):
    name: str
    arguments: str


class ShownToolCall(Struct):
    id: str
    function: CalledFunction
    type: Literal["function"] = "function"


class UrlSource(Struct, rename="camel"):
    value: str
    mime_type: str
    type: Literal["url"] = "url"


class ShownPart(Struct, omit_defaults=True):
    type: str
    text: str | None = None
    source: UrlSource | None = None


class ShownMessage(Struct, rename="camel", omit_defaults=True):
    """A message of a snapshot; `role` says which members it has."""

    id: str
    role: Literal["user", "assistant", "reasoning", "tool"]
    content: str | list[ShownPart] | None = None
    tool_calls: list[ShownToolCall] | None = None
    tool_call_id: str | None = None


class EventShape(Struct, rename="camel", tag_field="type"):
    """What all events have in common."""


class RunStartedEvent(EventShape, tag="RUN_STARTED", omit_defaults=True):
    thread_id: str
    run_id: str
    protocol_version: str | None = None


class MessagesSnapshotEvent(EventShape, tag="MESSAGES_SNAPSHOT"):
    messages: list[ShownMessage]


class TextStartEvent(EventShape, tag="TEXT_MESSAGE_START"):
    message_id: str
    role: Literal["assistant"] = "assistant"


class TextContentEvent(EventShape, tag="TEXT_MESSAGE_CONTENT"):
    message_id: str
    delta: str


class TextEndEvent(EventShape, tag="TEXT_MESSAGE_END"):
    message_id: str


class ReasoningStartEvent(EventShape, tag="REASONING_START"):
    message_id: str


class ReasoningMessageStartEvent(EventShape, tag="REASONING_MESSAGE_START"):
    message_id: str
    role: Literal["reasoning"] = "reasoning"


class ReasoningContentEvent(EventShape, tag="REASONING_MESSAGE_CONTENT"):
    message_id: str
    delta: str


class ReasoningMessageEndEvent(EventShape, tag="REASONING_MESSAGE_END"):
    message_id: str


class ReasoningEndEvent(EventShape, tag="REASONING_END"):
    message_id: str


class ToolCallStartEvent(EventShape, tag="TOOL_CALL_START"):
    tool_call_id: str
    tool_call_name: str
    parent_message_id: str


class ToolCallArgsEvent(EventShape, tag="TOOL_CALL_ARGS"):
    tool_call_id: str
    delta: str


class ToolCallEndEvent(EventShape, tag="TOOL_CALL_END"):
    tool_call_id: str


class ToolCallResultEvent(EventShape, tag="TOOL_CALL_RESULT"):
    message_id: str
    tool_call_id: str
    content: str
    role: Literal["tool"] = "tool"


class InterruptDetails(Struct):
    """What a person is asked about: the tool and its input."""

    tool: str
    input: dict[str, object]


class Interrupt(Struct, rename="camel", omit_defaults=True):
    id: str
    reason: Literal["tool_call", "confirmation", "input_required"]
    message: str | None = None
    tool_call_id: str | None = None
    response_schema: dict[str, object] | None = None
    expires_at: str | None = None
    metadata: InterruptDetails | None = None


class SuccessOutcome(Struct, rename="camel", tag_field="type", tag="success", omit_defaults=True):
    pending_tool_call_ids: list[str] | None = None


class InterruptOutcome(Struct, tag_field="type", tag="interrupt"):
    interrupts: list[Interrupt]


class CancelledOutcome(Struct, tag_field="type", tag="cancelled"):
    pass


RunOutcome: TypeAlias = SuccessOutcome | InterruptOutcome | CancelledOutcome


class TokenUsage(Struct, rename="camel"):
    input_tokens: int
    output_tokens: int


class RunFinishedEvent(EventShape, tag="RUN_FINISHED", omit_defaults=True):
    thread_id: str
    run_id: str
    outcome: RunOutcome | None = None
    usage: list[TokenUsage] | None = None


class RunErrorEvent(EventShape, tag="RUN_ERROR"):
    message: str
    code: str


AguiEvent: TypeAlias = (
    RunStartedEvent
    | MessagesSnapshotEvent
    | TextStartEvent
    | TextContentEvent
    | TextEndEvent
    | ReasoningStartEvent
    | ReasoningMessageStartEvent
    | ReasoningContentEvent
    | ReasoningMessageEndEvent
    | ReasoningEndEvent
    | ToolCallStartEvent
    | ToolCallArgsEvent
    | ToolCallEndEvent
    | ToolCallResultEvent
    | RunFinishedEvent
    | RunErrorEvent
)


class StopReply(Struct, omit_defaults=True):
    stopped: bool
    message: str | None = None
    interrupt: RunErrorEvent | None = None
