"""A conversation as the server remembers it. A client's copy is never trusted."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from farhand.core.outcome import Outcome, Success
from farhand.core.principal import Owner
from farhand.core.run import RunState


class ThreadCursor(NamedTuple):
    """When a thread was last used: its place in a list, which stays valid when the thread moves on."""

    at: float
    thread_id: str


class Thread(Struct, frozen=True, gc=False, kw_only=True):
    owner: Owner
    thread_id: str
    title: str = ""
    created_at: float
    updated_at: float
    allowed: tuple[str, ...] = ()
    """Tool versions that a person allowed for this whole thread."""

    @property
    def cursor(self) -> ThreadCursor:
        return ThreadCursor(self.updated_at, self.thread_id)


class ListedThread(Thread, frozen=True, gc=False, kw_only=True):
    """A thread as lists show it: with the state of its last run, and how much is in it."""

    run_state: RunState | None = None
    open_calls: int = 0
    runs: int = 0


class Text(Struct, frozen=True, gc=False, tag_field="kind", tag="text"):
    """Text of a message: `Text("Hello")`."""

    text: str


class Reasoning(Struct, frozen=True, gc=False, tag_field="kind", tag="reasoning"):
    """What a model thought: `Reasoning("The user wants the weather.")`.

    `echo` is the provider's own item, which is sent back to it unchanged.
    """

    text: str
    echo: object = None


class File(Struct, frozen=True, gc=False, tag_field="kind", tag="file"):
    """A file of a message: `File("blob_1", "chart.png", "image/png", 2_048)`."""

    ref: str
    name: str
    media_type: str
    size: int


class Note(Struct, frozen=True, gc=False, tag_field="kind", tag="note"):
    """Context that a page sends to the model besides the user's message, such as what it currently shows. It
    is never displayed as if the user had written it."""

    label: str
    text: str


class ToolCallPart(Struct, frozen=True, gc=False, tag_field="kind", tag="asked"):
    """A call that the model requested: `ToolCallPart("call_1", "get_weather", {"location": "Oslo"})`."""

    call_id: str
    tool: str
    input: object
    model_call_id: str | None = None


Part: TypeAlias = Text | Reasoning | File | Note | ToolCallPart


class UserMessage(Struct, frozen=True, gc=False, tag_field="role", tag="user"):
    """A message of a user: `UserMessage("m1", (Text("Hello"),))`."""

    message_id: str
    parts: tuple[Part, ...]


def is_same_message(one: UserMessage, other: UserMessage) -> bool:
    """Whether a message was sent again. Notes do not count: a page may show something else by then."""
    if one == other:
        return True
    return one.message_id == other.message_id and _without_notes(one) == _without_notes(other)


def _without_notes(message: UserMessage) -> list[Part]:
    return [part for part in message.parts if not isinstance(part, Note)]


class AssistantMessage(Struct, frozen=True, gc=False, tag_field="role", tag="assistant"):
    """One step of a run: `AssistantMessage("run_1", 1, (Text("Hello."),))`."""

    run_id: str
    step: int
    parts: tuple[Part, ...]

    @property
    def message_id(self) -> str:
        return f"{self.run_id}:{self.step}"

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        return tuple([part for part in self.parts if isinstance(part, ToolCallPart)])


class CallRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    """What pages show of a finished call, besides its outcome: the model gets none of it."""

    took_sec: float | None = None
    title: str | None = None
    summary: str | None = None
    is_edited: bool = False
    """Whether a person changed the input before approving it."""
    is_always_allowed: bool = False
    """Whether the tool was approved for the whole thread."""
    answered_by: str = ""
    """The name of the person who answered it or decided on it, if the sign-in has one."""


class ToolResultPart(Struct, frozen=True, gc=False):
    """A call and its outcome: `ToolResultPart("call_1", "get_time", {"city": "Oslo"}, Success("12:30"))`."""

    call_id: str
    tool: str
    input: object
    outcome: Outcome
    model_call_id: str | None = None
    untrusted: bool = False
    """Whether the model is warned that the outcome contains text from strangers."""
    record: CallRecord | None = None


class ResultsMessage(Struct, frozen=True, gc=False, tag_field="role", tag="results"):
    """The outcomes of one step in the order of its calls: `ResultsMessage("run_1", 1, (resolved,))`."""

    run_id: str
    step: int
    results: tuple[ToolResultPart, ...]

    @property
    def message_id(self) -> str:
        return f"{self.run_id}:{self.step}:results"


Message: TypeAlias = UserMessage | AssistantMessage | ResultsMessage


def apart(message: Message) -> Message:
    """The same message with its own copies of inputs and outputs: changing them changes no record."""
    if isinstance(message, UserMessage):
        # texts and files are immutable
        return message
    if isinstance(message, ResultsMessage):
        return replace(message, results=tuple(map(_resolved_apart, message.results)))
    return replace(message, parts=tuple(map(_part_apart, message.parts)))


def _part_apart(part: Part) -> Part:
    if isinstance(part, ToolCallPart):
        return replace(part, input=to_builtins(part.input))
    if isinstance(part, Reasoning) and part.echo is not None:
        return replace(part, echo=to_builtins(part.echo))
    return part


def _resolved_apart(resolved: ToolResultPart) -> ToolResultPart:
    outcome = resolved.outcome
    if isinstance(outcome, Success):
        outcome = Success(to_builtins(outcome.output))
    return replace(resolved, input=to_builtins(resolved.input), outcome=outcome)


def printable(text: str) -> str:
    """On one line, without invisible characters that could reorder the rest."""
    visible = text if text.isprintable() else "".join([char if char.isprintable() else " " for char in text])
    return " ".join(visible.split())


def text_of(message: Message) -> str:
    """The text of a message without its other parts: `text_of(UserMessage("m1", (Text("Hi"),))) == "Hi"`."""
    if isinstance(message, ResultsMessage):
        return ""
    return "".join([part.text for part in message.parts if isinstance(part, Text)])
