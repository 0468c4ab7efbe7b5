"""The rules of a thread: how it begins, what it is called, what is allowed in it."""

from __future__ import annotations

from farhand.core.decide.decision import Decision
from farhand.core.event import Event, ThreadCreated, ThreadRenamed, ToolDisallowed
from farhand.core.state import ThreadState
from farhand.core.thread import File, UserMessage, printable, text_of

TITLE_CHARS = 80


def created(thread: ThreadState, title: str) -> tuple[Event, ...]:
    """What a first append begins with; nothing for a thread that exists."""
    return () if thread.exists else (ThreadCreated(title),)


def title_of(message: UserMessage) -> str:
    """The first words of a message, or the names of its files."""
    said = text_of(message) or ", ".join([part.name for part in message.parts if isinstance(part, File)])
    return printable(said)[:TITLE_CHARS]


def rename(thread: ThreadState, title: str) -> Decision[bool]:
    """False if there is no such thread."""
    if not thread.exists:
        return Decision(False)
    return Decision(True, (ThreadRenamed(title),))


def disallow(thread: ThreadState, tool: str) -> Decision[bool]:
    """Takes back what was allowed for the whole thread; False if nothing was."""
    if all(each.tool != tool for each in thread.allowed.values()):
        return Decision(False)
    return Decision(True, (ToolDisallowed(tool),))
