"""A tool as the model, the store and a far hand know it: no function, only facts."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

from msgspec import Struct

from farhand.core.card import is_answered_by_a_press
from farhand.core.outcome import digest

Schema = dict[str, object]


class Executor(StrEnum):
    """Who runs a tool."""

    SERVER = "server"
    FRONTEND = "frontend"
    CLIENT = "client"


class Tool(Struct, frozen=True, kw_only=True, dict=True):
    name: str
    description: str
    input_schema: Schema
    executor: Executor = Executor.SERVER
    output_schema: Schema | None = None
    timeout_sec: float | None = None
    approval_timeout_sec: float | None = None
    may_ask: bool = False
    """True if some of its calls may need a person's approval."""
    idempotent: bool = False
    returns_text: bool = False
    """True for a declared return type of `str`: such an output is never parsed as JSON."""
    returns_nothing: bool = False
    """True for a declared return type of `None`: a person only says that it is done. Any output is taken."""
    card: str | None = None
    client_id: str | None = None
    """The registered client that runs it, if any."""
    is_foreign: bool = False
    """True if its schemas come from outside, so a value that would take too long to check is refused."""
    title: str | None = None
    """What people see instead of its name: a template over the input (`template.py`)."""
    needs_approval: bool = False
    """True if its client wants a person's approval for each of its calls, whatever the server's policy is."""
    applies_defaults: bool = False
    """True if its function's own signature made the schema, so that the defaults in it are what runs. The
    defaults of any other schema are what its author wrote there."""
    untrusted: bool = False
    """True if its output may contain text from strangers: the model is told that it is not instructions."""

    @cached_property
    def version(self) -> str:
        """A digest of everything that a person who approves the tool relies on. Cached, since every call
        needs it."""
        promised = (self.name, self.description, self.input_schema, self.executor, self.output_schema)
        # an attribute that most tools lack must not change the versions of the others
        return digest(promised if self.title is None else (*promised, self.title))[:32]

    @property
    def shown_output_schema(self) -> Schema | None:
        """What pages make its card from."""
        return {"type": "null"} if self.returns_nothing else self.output_schema

    @cached_property
    def is_typed(self) -> bool:
        """Whether a person who answers it in a page takes longer than a press. Cached, since every call needs
        it."""
        return self.executor is Executor.FRONTEND and not is_answered_by_a_press(self)


def digest_of_approval(tool_version: str, input: dict[str, object]) -> str:
    """A digest of what a person approved: this version of the tool with this input."""
    return digest((tool_version, input))
