"""The chunks of the UI message stream as shapes, for whoever reads them: the schema and the TypeScript types.

`encode.py` writes them without these, field by field; the transcripts are held against both.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType


class StartChunk(Struct, rename="camel", tag_field="type", tag="start", forbid_unknown_fields=True):
    message_id: str


class StartStepChunk(Struct, tag_field="type", tag="start-step", forbid_unknown_fields=True):
    pass


class FinishStepChunk(Struct, tag_field="type", tag="finish-step", forbid_unknown_fields=True):
    pass


class TextStartChunk(Struct, tag_field="type", tag="text-start", forbid_unknown_fields=True):
    id: str


class TextDeltaChunk(Struct, tag_field="type", tag="text-delta", forbid_unknown_fields=True):
    id: str
    delta: str


class TextEndChunk(Struct, tag_field="type", tag="text-end", forbid_unknown_fields=True):
    id: str


class ReasoningStartChunk(Struct, tag_field="type", tag="reasoning-start", forbid_unknown_fields=True):
    id: str


class ReasoningDeltaChunk(Struct, tag_field="type", tag="reasoning-delta", forbid_unknown_fields=True):
    id: str
    delta: str


class ReasoningEndChunk(Struct, tag_field="type", tag="reasoning-end", forbid_unknown_fields=True):
    id: str


class ToolInputStartChunk(
    Struct, rename="camel", tag_field="type", tag="tool-input-start", forbid_unknown_fields=True
):
    """The model begins to write the input of a call."""

    tool_call_id: str
    tool_name: str


class ToolInputDeltaChunk(
    Struct, rename="camel", tag_field="type", tag="tool-input-delta", forbid_unknown_fields=True
):
    tool_call_id: str
    input_text_delta: str


class ToolInputAvailableChunk(
    Struct, rename="camel", tag_field="type", tag="tool-input-available", forbid_unknown_fields=True
):
    """The input is whole. Whoever executes this tool may do so now, unless a yes is still asked for."""

    tool_call_id: str
    tool_name: str
    input: dict[str, object]


class ToolInputErrorChunk(
    Struct, rename="camel", tag_field="type", tag="tool-input-error", forbid_unknown_fields=True
):
    tool_call_id: str
    tool_name: str
    input: object
    error_text: str


class ToolApprovalRequestChunk(
    Struct, rename="camel", tag_field="type", tag="tool-approval-request", forbid_unknown_fields=True
):
    approval_id: str
    tool_call_id: str


class ToolOutputAvailableChunk(
    Struct, rename="camel", tag_field="type", tag="tool-output-available", forbid_unknown_fields=True
):
    tool_call_id: str
    output: object


class ToolOutputErrorChunk(
    Struct, rename="camel", tag_field="type", tag="tool-output-error", forbid_unknown_fields=True
):
    tool_call_id: str
    error_text: str


class ToolOutputDeniedChunk(
    Struct, rename="camel", tag_field="type", tag="tool-output-denied", forbid_unknown_fields=True
):
    tool_call_id: str


class Replay(Struct, forbid_unknown_fields=True):
    replay: bool


class GapChunk(Struct, tag_field="type", tag="data-gap", forbid_unknown_fields=True):
    """The reader's position is not known; the whole answer follows."""

    data: Replay
    transient: bool | UnsetType = UNSET


class ErrorChunk(Struct, rename="camel", tag_field="type", tag="error", forbid_unknown_fields=True):
    error_text: str


class FinishChunk(Struct, rename="camel", tag_field="type", tag="finish", forbid_unknown_fields=True):
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
