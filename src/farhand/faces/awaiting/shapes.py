"""The awaiting wire, spelled as it is spelled there. Nothing is decided here."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

Format: TypeAlias = Literal["xml", "raw"]

META = "meta_init"
PAUSE = "awaiting_frontend_tools"
IGNORED = "ignored_tool_results"
GAP = "stream_gap"
ERROR = "content-block-error"
TEXT = "content-block-text"
THINKING = "content-block-thinking"
TOOL_CALL = "content-block-tool_call"
TOOL_RESULT = "content-block-tool_result"

OURS = (META, PAUSE, IGNORED, GAP, "content-block-")
"""How every tag of this wire begins: no text of a model or of a tool may pass for one."""


class RunRequest(Struct, frozen=True):
    user_prompt: object
    agent_uuid: str | None = None


class UserTurn(Struct, frozen=True):
    """A prompt that is an object."""

    content: str | list[object]
    role: Literal["user"] = "user"


class TextBlock(Struct, frozen=True):
    """The one kind of content block that a prompt may hold."""

    type: Literal["text"]
    text: str


class ToolResult(Struct, frozen=True):
    """`approved` answers an entry that says `needs_approval`."""

    tool_use_id: str
    content: str | UnsetType = UNSET
    is_error: bool = False
    approved: bool | UnsetType = UNSET


class ToolResultsRequest(Struct, frozen=True):
    agent_uuid: str
    tool_results: list[ToolResult]


class MetaInit(Struct, frozen=True):
    format: Format
    user_query: str
    agent_uuid: str
    model: str


class AwaitedTool(Struct, frozen=True, omit_defaults=True):
    """One entry of a pause. `needs_approval` stands there only when it is true."""

    tool_use_id: str
    name: str
    input: dict[str, object]
    needs_approval: bool = False


class Gap(Struct, frozen=True):
    """The position that is not known; everything follows from the start."""

    last_event_id: str


class Fault(Struct, frozen=True, omit_defaults=True):
    """What went wrong: a stable code and a sentence, in the body of a refusal."""

    code: str
    message: str
    detail: object = None


class Refusal(Struct, frozen=True):
    error: Fault


class Mismatch(Struct, frozen=True):
    """Which ids were wrong, and how."""

    expected: list[str]
    missing: list[str]
    unexpected: list[str]
    doubled: list[str]


class Late(Struct, frozen=True, omit_defaults=True):
    """What an entry that changed nothing is told: the outcome its call has and keeps."""

    tool_use_id: str
    code: str
    outcome: str | None = None
    digest: str | None = None
