"""The structs and tags of the awaiting wire."""

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
"""The beginnings of this wire's tags: no text of a model or a tool may look like one."""


class RunRequest(Struct, frozen=True):
    user_prompt: object
    agent_uuid: str | None = None


class UserTurn(Struct, frozen=True):
    """A prompt that is an object."""

    content: str | list[object]
    role: Literal["user"] = "user"


class TextBlock(Struct, frozen=True, tag_field="type", tag="text"):
    text: str


class Base64Source(Struct, frozen=True, tag_field="type", tag="base64"):
    media_type: str
    data: str


class TextSource(Struct, frozen=True, tag_field="type", tag="text"):
    """A document that is plain text."""

    data: str
    media_type: str = "text/plain"


class FileSource(Struct, frozen=True, tag_field="type", tag="file"):
    """A file that was uploaded before: `file_id` is its ref."""

    file_id: str


class ImageBlock(Struct, frozen=True, tag_field="type", tag="image"):
    source: Base64Source | FileSource


class DocumentBlock(Struct, frozen=True, tag_field="type", tag="document"):
    source: Base64Source | TextSource | FileSource
    title: str | None = None


PromptBlock: TypeAlias = TextBlock | ImageBlock | DocumentBlock
"""The blocks of a prompt that is a list, in Anthropic's shapes."""


class ToolResult(Struct, frozen=True):
    """`approved` is for an entry with `needs_approval`."""

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
    """One entry of a pause. `needs_approval` is present only when it is true."""

    tool_use_id: str
    name: str
    input: dict[str, object]
    needs_approval: bool = False


class Gap(Struct, frozen=True):
    """The position is unknown; everything follows from the start."""

    last_event_id: str


class Fault(Struct, frozen=True, omit_defaults=True):
    """A stable code and a sentence, in the body of a refusal."""

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
    """For an entry that changed nothing: the outcome that its call has and keeps."""

    tool_use_id: str
    code: str
    outcome: str | None = None
    digest: str | None = None


class Session(Struct, frozen=True):
    """A thread in the list of its owner. Times are ISO 8601."""

    agent_uuid: str
    title: str | None
    created_at: str
    updated_at: str
    total_runs: int


class SessionList(Struct, frozen=True):
    sessions: list[Session]
    total: int
    """All threads of the owner, not only those of this page."""


class AnthropicMessage(Struct, frozen=True):
    """A stored message with content blocks in Anthropic's shapes: text, thinking, tool_use, tool_result,
    image and document."""

    role: Literal["user", "assistant"]
    content: list[dict[str, object]]


class Conversation(Struct, frozen=True, kw_only=True):
    """A message of the user and the run that answers it. Unknown fields are null."""

    conversation_id: str
    run_id: str | None
    sequence_number: int
    """Counts from 1, in the order of the thread."""
    user_message: str
    final_response: str | None
    """The text of the last step, once the run has ended."""
    started_at: str | None
    completed_at: str | None
    stop_reason: str | None
    total_steps: int | None
    usage: None = None
    generated_files: None = None
    messages: list[AnthropicMessage]
    pending_frontend_tools: list[AwaitedTool]
    """What the run waits for, as in the tag of its pause."""


class ConversationList(Struct, frozen=True):
    """Newest first."""

    conversations: list[Conversation]
    has_more: bool
    title: str | None
