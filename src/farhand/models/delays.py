"""Tells whoever listens to a model that its provider is busy and is asked again, while that goes on.

The libraries retry by themselves, inside one `await`; nothing can be yielded from there. So the listener is
found through the context, which model, library and listener share.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeAlias

Listening: TypeAlias = Callable[[str], None]

_listening: ContextVar[Listening | None] = ContextVar("farhand_delays", default=None)


@contextmanager
def hearing_delays(listening: Listening) -> Iterator[None]:
    """Within this, `listening` is told of every delay, as a sentence."""
    token = _listening.set(listening)
    try:
        yield
    finally:
        _listening.reset(token)


class _Sent(Protocol):
    @property
    def headers(self) -> Mapping[str, str]: ...


class _Answered(Protocol):
    @property
    def status_code(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def request(self) -> _Sent: ...


def watch(provider: str, max_retries: int) -> Callable[[_Answered], Awaitable[None]]:
    """A hook for the HTTP client of a library: sees every answer, the refused ones too."""

    async def hook(answered: _Answered) -> None:
        listening = _listening.get()
        if listening is not None and _comes_again(answered, max_retries):
            after = answered.headers.get("retry-after", "")
            when = f" in {after} s" if after.replace(".", "", 1).isdigit() else ""
            listening(f"{provider} is busy ({answered.status_code}); it is asked again{when}.")

    return hook


def _comes_again(answered: _Answered, max_retries: int) -> bool:
    """As the libraries decide it; they number their tries in a header."""
    if answered.headers.get("x-should-retry") == "false":
        return False
    tried = answered.request.headers.get("x-stainless-retry-count", "0")
    passing = answered.status_code in {408, 409, 429} or answered.status_code >= 500
    return passing and tried.isdigit() and int(tried) < max_retries
