"""A call while its handler works on it, as the handler sees it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar

import msgspec

from farhand.errors import Misuse

log = logging.getLogger("farhand.client")


TITLE_BYTES = 256
METADATA_BYTES = 16 * 1024


class Ongoing:
    """`title` and `metadata` may be set by the handler: people are shown them, the model is not."""

    def __init__(self, call_id: str, tool: str, thread_id: str, say: Callable[[str], None]) -> None:
        self.call_id = call_id
        self.tool = tool
        self.thread_id = thread_id
        self.title: str | None = None
        self.metadata: dict[str, object] | None = None
        self._say = say

    def progress(self, text: str) -> None:
        """Says how far it is, to the people who watch. Of what is said in quick succession they see the last.

        From any thread. It does not extend the deadline: nothing does.
        """
        log.info("call %s of %s: %s", self.call_id, self.tool, text)
        self._say(fitting(text))

    def shown(self) -> dict[str, object]:
        """Title and metadata as the wire takes them: a decoration must not cost anybody a result."""
        shown: dict[str, object] = {} if self.title is None else {"title": fitting(self.title)}
        if self.metadata is not None and self._is_fit(self.metadata):
            shown["metadata"] = self.metadata
        return shown

    def _is_fit(self, metadata: object) -> bool:
        try:
            size = len(msgspec.json.encode(metadata))
        except (TypeError, ValueError, RecursionError) as error:
            log.warning("the metadata of call %s is left out: %s", self.call_id, error)
            return False
        if size > METADATA_BYTES or not isinstance(metadata, dict):
            log.warning("the metadata of call %s is left out: no object, or too large", self.call_id)
            return False
        return True


def fitting(text: object) -> str:
    """A line for people, cut to what the server takes; what is no text is shown as one."""
    return str(text).encode(errors="replace")[:TITLE_BYTES].decode(errors="ignore")


_current: ContextVar[Ongoing] = ContextVar("farhand.client.ongoing")


def current() -> Ongoing:
    """The call that this handler was started for."""
    try:
        return _current.get()
    except LookupError:
        raise Misuse("No call is under way here.", hint="Use current() inside a handler.") from None


def begin(ongoing: Ongoing) -> None:
    """From here on, in this task and in threads it starts, `current()` is this one."""
    _current.set(ongoing)
