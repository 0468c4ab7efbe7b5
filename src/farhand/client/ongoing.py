"""A call while its handler works on it, as the handler sees it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar

from farhand.errors import Misuse

log = logging.getLogger("farhand.client")


class Ongoing:
    """`title` and `metadata` may be set by the handler: people are shown them, the model is not."""

    def __init__(self, call_id: str, tool: str, thread_id: str, alive: Callable[[], None]) -> None:
        self.call_id = call_id
        self.tool = tool
        self.thread_id = thread_id
        self.title: str | None = None
        self.metadata: dict[str, object] | None = None
        self._alive = alive

    def progress(self, text: str) -> None:
        """Says how far it is: into the log, and to the server that it is still being worked on.

        From any thread. It does not extend the deadline: nothing does.
        """
        log.info("call %s of %s: %s", self.call_id, self.tool, text)
        self._alive()


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
