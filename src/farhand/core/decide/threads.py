"""The rules of a thread: how it starts, its title, what is allowed in it."""

from __future__ import annotations

import re

from farhand.core.decide.decision import Decision
from farhand.core.event import Event, ThreadCreated, ThreadRenamed, ToolDisallowed
from farhand.core.state import ThreadState
from farhand.core.thread import File, UserMessage, printable, text_of

TITLE_CHARS = 80
LOOKED_AT_CHARS = 4_000

_CODE = re.compile(r"```.*?(?:```|$)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,100})\]\([^()\n]{0,300}\)")
_ADDRESS = re.compile(r"https?://(?:www\.)?([^/\s]+)\S*")
_MARKS = re.compile(r"(?:(?<=\s)|^)(?:[#>*`~]{1,6}(?=\s|\w|$)|-(?=\s))|(?<=\S)[*`~]{1,3}(?=[\s.,;:!?]|$)")


def created(thread: ThreadState, title: str) -> tuple[Event, ...]:
    """The start of a first append; nothing for an existing thread."""
    return () if thread.exists else (ThreadCreated(title),)


def title_of(message: UserMessage) -> str:
    """The first words of a message without Markdown, code and the paths of URLs; or the names of its
    files."""
    text = text_of(message)[:LOOKED_AT_CHARS]
    # a message that is only code gets its title from the code
    said = _plain(_CODE.sub(" ", text)) or _plain(text)
    return _shorten(said or ", ".join([part.name for part in message.parts if isinstance(part, File)]))


def tidy_title(title: str) -> str:
    """A title that a person wrote, on one line and cut to the maximum length."""
    return _shorten(printable(title))


def _plain(text: str) -> str:
    return printable(_MARKS.sub("", _ADDRESS.sub(r"\1", _LINK.sub(r"\1", text))))


def _shorten(title: str) -> str:
    if len(title) <= TITLE_CHARS:
        return title
    words = title[:TITLE_CHARS].rpartition(" ")[0]
    return f"{words or title[: TITLE_CHARS - 1]}…"


def rename(thread: ThreadState, title: str) -> Decision[bool]:
    """False if there is no such thread."""
    if not thread.exists:
        return Decision(False)
    return Decision(True, (ThreadRenamed(title),))


def disallow(thread: ThreadState, tool: str) -> Decision[bool]:
    """Withdraws a permission for the whole thread; False if there was none."""
    if all(each.tool != tool for each in thread.allowed.values()):
        return Decision(False)
    return Decision(True, (ToolDisallowed(tool),))
