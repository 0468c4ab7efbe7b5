"""The call that a handler executes: its ids, progress, and what people are shown about it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar

import msgspec

from farhand.errors import Misuse

log = logging.getLogger("farhand.client")


TITLE_BYTES = 256
METADATA_BYTES = 16 * 1024


class CallContext:
    """The call that a handler was started for; `current()` returns it.

    The handler may set `title` and `metadata`: people see them, the model does not.

        @client.tool
        def convert(path: str) -> str:
            '''Convert a video.'''
            call = current()
            for percent in converting(path):
                call.progress(f"{percent} % done")
            call.title = f"Converted {path}"
            return "done"
    """

    def __init__(self, call_id: str, tool: str, thread_id: str, report: Callable[[str], None]) -> None:
        self.call_id = call_id
        self.tool = tool
        self.thread_id = thread_id
        self.title: str | None = None
        self.metadata: dict[str, object] | None = None
        self._report = report

    def progress(self, text: str) -> None:
        """Report progress to people who watch the call. Of several texts within half a second, only the last
        one is sent.

        Each report restarts the call's timeout, up to ten times the timeout in total. Safe to call from any
        thread.
        """
        log.info("call %s of %s: %s", self.call_id, self.tool, text)
        self._report(fit_text(text))

    def extras(self) -> dict[str, object]:
        """Title and metadata that the server accepts: the result must not be lost because of either."""
        extras: dict[str, object] = {} if self.title is None else {"title": fit_text(self.title)}
        if self.metadata is not None and self._is_valid(self.metadata):
            extras["metadata"] = self.metadata
        return extras

    def _is_valid(self, metadata: object) -> bool:
        try:
            size = len(msgspec.json.encode(metadata))
        except (TypeError, ValueError, RecursionError) as error:
            log.warning("ignoring the metadata of call %s: %s", self.call_id, error)
            return False
        if size > METADATA_BYTES or not isinstance(metadata, dict):
            log.warning("ignoring the metadata of call %s: not an object, or too large", self.call_id)
            return False
        return True


def fit_text(text: object) -> str:
    """Text for people, cut to what the server accepts."""
    return str(text).encode(errors="replace")[:TITLE_BYTES].decode(errors="ignore")


_current: ContextVar[CallContext] = ContextVar("farhand.client.call_context")


def current() -> CallContext:
    """The call that this handler was started for. Raises `Misuse` outside of a handler.

    @client.tool
    def where_am_i() -> str:
        '''Say which call this is.'''
        return current().call_id
    """
    try:
        return _current.get()
    except LookupError:
        raise Misuse(
            "current() was called outside of a handler.",
            hint="Call it in a function that is a tool of the client.",
        ) from None


def enter(call: CallContext) -> None:
    """Makes this call the `current()` one for this task and for the threads that it starts."""
    _current.set(call)
