"""The structs of the threads wire."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType


class Rename(Struct):
    title: str


class ThreadRow(Struct, rename="camel"):
    id: str
    title: str
    state: str
    updated_at: str
    open_calls: int


class ThreadPage(Struct):
    threads: list[ThreadRow]
    next: str | UnsetType = UNSET


class ApprovalShape(Struct, rename="camel"):
    id: str
    approved: bool | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class Part(Struct, rename="camel", omit_defaults=True):
    """A part of an AI SDK message in its stored state."""

    type: str
    text: str | UnsetType = UNSET
    state: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    input: object = UNSET
    output: object = UNSET
    error_text: str | UnsetType = UNSET
    approval: ApprovalShape | UnsetType = UNSET
    media_type: str | UnsetType = UNSET
    filename: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    outcome: str | UnsetType = UNSET
    """The outcome of a call: AI SDK has one state for several of them."""
    after_sec: float | UnsetType = UNSET
    took_ms: int | UnsetType = UNSET
    """From opening to settling."""
    title: str | UnsetType = UNSET
    """For a call: what to show instead of the tool's name, about this input."""
    summary: str | UnsetType = UNSET
    """A short summary of the output."""
    edited: bool | UnsetType = UNSET
    """True if a person changed the input before approving it."""
    always_allowed: bool | UnsetType = UNSET
    """True if its tool was approved for the whole chat."""
    answered_by: str | UnsetType = UNSET
    """Who answered it or decided on it, if that was someone else and the sign-in has a name."""


class UIMessage(Struct):
    id: str
    role: str
    parts: list[Part]


class RunsWith(Struct, rename="camel", omit_defaults=True):
    """What a call runs with once it is approved: its input, and the defaults of its tool's schema."""

    input: dict[str, object]
    defaults: list[list[str]] = []
    """The members of `input` that are defaults, each by its names from the outside in."""
    left_out: list[str] = []
    """Parameters that are not set and have no default, or null."""
    by_schema: bool = False
    """Whether the defaults are only in the schema: then it depends on the executor whether they are
    applied."""


class OpenCall(Struct, rename="camel", omit_defaults=True):
    call_id: str
    thread_id: str
    title: str
    tool: str
    input: dict[str, object]
    phase: str
    executor: str
    deadline: str | None
    card: str | None
    opened_at: str
    approval_id: str | UnsetType = UNSET
    client_id: str | UnsetType = UNSET
    """The registered client that is asked to execute it."""
    call_title: str | UnsetType = UNSET
    """What to show instead of the tool's name, about this input; `title` is that of the chat."""
    runs_with: RunsWith | UnsetType = UNSET
    """While it waits for an approval, and only if the model left something out."""


class StarterShape(Struct):
    """Something to ask: `title` is on the button, `about` is the line below, `prompt` is what is sent."""

    title: str
    prompt: str
    about: str = ""


class AboutShape(Struct, rename="camel"):
    """What a page shows about its server. `largest_file` is in bytes."""

    model: str
    largest_file: int
    title: str | None = None
    welcome: str | None = None
    starters: list[StarterShape] = []
    logo: str | None = None
    """An address; one that begins with `/` is a path of this server."""
    demo: bool = False
    """Whether the page shows what only a demonstration has."""
    inspector: bool = False
    """Whether there is an Inspector that you may open."""
    words: dict[str, str] | None = None
    """Texts that replace the page's own, by name."""
    reader: str = ""
    """Different for each person who is signed in, but not a name: what a page stores for one person is not
    shown to the next."""


class FailureShape(Struct):
    """Why the last run ended without an answer: a stable code, the cause and the next step."""

    code: str
    message: str


class ThreadShape(Struct, rename="camel"):
    id: str
    title: str
    state: str
    messages: list[UIMessage]
    open_calls: list[OpenCall]
    resume: bool = False
    """An answer is being written: `GET /api/chat/{id}/stream` sends it from its start."""
    run_id: str | UnsetType = UNSET
    """The last run; a run that failed early has no message that would name it."""
    failure: FailureShape | UnsetType = UNSET


class ToolShape(Struct, rename="camel"):
    name: str
    description: str
    input_schema: dict[str, object]
    output_schema: dict[str, object] | None
    executor: str
    approval: bool
    card: str | None
    version: str
    title: str | None = None


class AllowedTool(Struct, rename="camel"):
    """A tool that runs in a chat without approval; `by` are the claims of the person who allowed it."""

    tool: str
    allowed_at: str
    by: dict[str, object]


class AllowedShape(Struct):
    allowed: list[AllowedTool]


class InboxShape(Struct):
    calls: list[OpenCall]


class ToolsShape(Struct):
    tools: list[ToolShape]
