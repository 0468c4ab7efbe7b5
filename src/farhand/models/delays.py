"""Decides how long a busy provider is waited for, and tells whoever listens to a model about it.

The libraries retry by themselves, inside one `await`; nothing can be yielded from there. So the listener is
found through the context, which model, library and listener share. And they obey what an answer asks for, one
of them for weeks: so each answer is looked at before they see it, and too long a wait is none.
"""

from __future__ import annotations

import email.utils
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from farhand.clock import SystemClock
from farhand.models.faults import in_words

log = logging.getLogger("farhand.models")

LONGEST_WAIT_SEC = 120.0
"""Whoever wants to be left alone for longer is not asked again: a person decides."""

Listening: TypeAlias = Callable[[str], None]


class Hearing(Struct, eq=False):
    """Within this, `listening` is told of every delay, as a sentence.

    Also keeps whether the last try got an answer: a connection that failed gives none.
    """

    listening: Listening
    answered: bool = True
    _before: Token[Hearing | None] | None = None

    def __enter__(self) -> None:
        self._before = _hearing.set(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._before is not None, "it was entered"
        _hearing.reset(self._before)


_clock = SystemClock()
_hearing: ContextVar[Hearing | None] = ContextVar("farhand_delays", default=None)


def tell_delay(sentence: str) -> None:
    hearing = _hearing.get()
    if hearing is not None:
        hearing.listening(sentence)


class _Sent(Protocol):
    @property
    def headers(self) -> Mapping[str, str]: ...


class _Answered(Protocol):
    @property
    def status_code(self) -> int: ...

    @property
    def headers(self) -> MutableMapping[str, str]: ...

    @property
    def request(self) -> _Sent: ...


# Any: hooks for requests and for answers stand side by side
def watching(provider: str, max_retries: int) -> dict[str, list[Callable[..., Any]]]:
    """Both hooks, as the HTTP client of a library takes them."""
    return {"request": [watch_tries(provider)], "response": [watch(provider, max_retries)]}


def watch(provider: str, max_retries: int) -> Callable[[_Answered], Awaitable[None]]:
    """A hook for the HTTP client of a library: sees every answer before the library does."""

    async def hook(answered: _Answered) -> None:
        wait = wait_asked_for(answered.headers)
        _settle(answered.headers, wait)
        if hearing := _hearing.get():
            hearing.answered = True
        if _comes_again(answered, max_retries):
            log.info("%s is busy (%d); it is asked again", provider, answered.status_code)
            tell_delay(busy(wait))

    return hook


def watch_tries(provider: str) -> Callable[[_Sent], Awaitable[None]]:
    """A hook that sees every request before it is sent: of a connection that failed, nothing else tells."""

    async def hook(sent: _Sent) -> None:
        hearing = _hearing.get()
        if hearing is None:
            return
        if _tries(sent) and not hearing.answered:
            log.info("%s could not be reached; it is asked again", provider)
            tell_delay("The model could not be reached; it is asked again.")
        hearing.answered = False

    return hook


def busy(wait: float | None) -> str:
    """For people who chat: whose model it is and where is the operator's business."""
    when = f" in {in_words(wait)}" if wait else ""
    return f"The model is busy; it is asked again{when}."


def wait_asked_for(headers: Mapping[str, str]) -> float | None:
    """How many seconds an answer asks to be left alone; None if it does not, or makes no sense.

    In the libraries' order: `retry-after-ms`, then `retry-after` as a number or as a date.
    """
    in_ms, after = _number(headers.get("retry-after-ms")), headers.get("retry-after")
    in_sec = _number(after)
    wait = in_ms / 1000 if in_ms is not None else in_sec if in_sec is not None else _until(after)
    return wait if wait is not None and wait > 0 else None


def _settle(headers: MutableMapping[str, str], wait: float | None) -> None:
    """Leaves the library one reading: the wait that is told, its own short one, or none at all."""
    if wait is not None and wait > LONGEST_WAIT_SEC:
        headers["x-should-retry"] = "false"
        return
    for name in ("retry-after-ms", "retry-after"):
        headers.pop(name, None)
    if wait is not None:
        headers["retry-after"] = f"{wait:.3f}"


def _comes_again(answered: _Answered, max_retries: int) -> bool:
    """As the libraries decide it; they number their tries in a header."""
    told = answered.headers.get("x-should-retry")
    # an answer that is none of trouble is given to whoever asked, whatever it says
    if told == "false" or answered.status_code < 400:
        return False
    passing = told == "true" or answered.status_code in {408, 409, 429} or answered.status_code >= 500
    return passing and _tries(answered.request) < max_retries


def _tries(sent: _Sent) -> int:
    """How often it was sent before."""
    tried = sent.headers.get("x-stainless-retry-count", "0")
    return int(tried) if tried.isdigit() else 0


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _until(date: str | None) -> float | None:
    """Seconds from now to a date of HTTP."""
    try:
        parsed = email.utils.parsedate_tz(date) if date else None
        return None if parsed is None else email.utils.mktime_tz(parsed) - _clock.now()
    except (ValueError, OverflowError, OSError):
        return None
