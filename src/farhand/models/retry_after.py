"""Limits how long a busy provider is waited for, and reports each delay to the reader of a model.

The libraries retry inside one `await`, from where nothing can be yielded, so the listener is found through a
context variable that model, library and listener share. They also obey every `Retry-After`, even one of
weeks, so each response is inspected before the library sees it, and a wait that is too long ends the retries.
"""

from __future__ import annotations

import email.utils
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from farhand.clock import SystemClock
from farhand.models.error_messages import format_duration

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger("farhand.models")

LONGEST_WAIT_SEC = 120.0
"""There is no retry after a longer wait: a person decides."""

OnDelay: TypeAlias = Callable[[str], None]


class DelayListener(Struct, eq=False):
    """A context in which `on_delay` is called with a sentence for every delay.

    It also remembers whether the last try got a response: a failed connection gives none.
    """

    on_delay: OnDelay
    answered: bool = True
    _before: Token[DelayListener | None] | None = None

    def __enter__(self) -> None:
        self._before = _listener.set(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._before is not None, "exited before it was entered"
        _listener.reset(self._before)


_clock = SystemClock()
_listener: ContextVar[DelayListener | None] = ContextVar("farhand_delays", default=None)


def report_delay(sentence: str) -> None:
    listener = _listener.get()
    if listener is not None:
        listener.on_delay(sentence)


# Any: hooks for requests and for responses have different types
def retry_hooks(provider: str, max_retries: int) -> dict[str, list[Callable[..., Any]]]:
    """Both hooks in the form that the HTTP client of a library takes."""
    return {"request": [request_hook(provider)], "response": [response_hook(provider, max_retries)]}


def response_hook(provider: str, max_retries: int) -> Callable[[httpx2.Response], Awaitable[None]]:
    """A hook for the HTTP client of a library that sees every response before the library does."""

    async def hook(answered: httpx2.Response) -> None:
        wait = retry_after_sec(answered.headers)
        _limit_wait(answered.headers, wait)
        if listener := _listener.get():
            listener.answered = True
        if _will_retry(answered, max_retries):
            log.info("%s is busy (%d); retrying", provider, answered.status_code)
            report_delay(busy_message(wait))

    return hook


def request_hook(provider: str) -> Callable[[httpx2.Request], Awaitable[None]]:
    """A hook that sees every request before it is sent: nothing else reports a failed connection."""

    async def hook(sent: httpx2.Request) -> None:
        listener = _listener.get()
        if listener is None:
            return
        if _tries(sent) and not listener.answered:
            log.info("%s could not be reached; retrying", provider)
            report_delay("The model could not be reached; trying again.")
        listener.answered = False

    return hook


def busy_message(wait: float | None) -> str:
    """For people in the chat; it does not name the provider."""
    when = f" in {format_duration(wait)}" if wait else ""
    return f"The model is busy; trying again{when}."


def retry_after_sec(headers: Mapping[str, str]) -> float | None:
    """The seconds that a response asks to wait; None if it does not, or if the value makes no sense.

    In the libraries' order: `retry-after-ms`, then `retry-after` as a number or as a date.
    """
    in_ms, after = _number(headers.get("retry-after-ms")), headers.get("retry-after")
    in_sec = _number(after)
    wait = in_ms / 1000 if in_ms is not None else in_sec if in_sec is not None else _until(after)
    return wait if wait is not None and wait > 0 else None


def _limit_wait(headers: MutableMapping[str, str], wait: float | None) -> None:
    """Leaves the library one interpretation: the reported wait, its own short one, or no retry at all."""
    if wait is not None and wait > LONGEST_WAIT_SEC:
        headers["x-should-retry"] = "false"
        return
    for name in ("retry-after-ms", "retry-after"):
        headers.pop(name, None)
    if wait is not None:
        headers["retry-after"] = f"{wait:.3f}"


def _will_retry(answered: httpx2.Response, max_retries: int) -> bool:
    """True if the library will retry; it counts its tries in a header."""
    advice = answered.headers.get("x-should-retry")
    # a response that is not an error is never retried, whatever its header says
    if advice == "false" or answered.status_code < 400:
        return False
    passing = advice == "true" or answered.status_code in {408, 409, 429} or answered.status_code >= 500
    return passing and _tries(answered.request) < max_retries


def _tries(sent: httpx2.Request) -> int:
    """How often the request was sent before."""
    tried = sent.headers.get("x-stainless-retry-count", "0")
    return int(tried) if tried.isdigit() else 0


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _until(date: str | None) -> float | None:
    """Seconds from now to an HTTP date."""
    try:
        parsed = email.utils.parsedate_tz(date) if date else None
        return None if parsed is None else email.utils.mktime_tz(parsed) - _clock.now()
    except (ValueError, OverflowError, OSError):
        return None
