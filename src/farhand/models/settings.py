"""The settings of a provider: address, key, name of the model, timeout, options of a request, and its client.

Each is checked when a model is created: a mistake is a `BadSetting` with the name of the setting, not an
error of some library hours later. It must not know any provider's members of a request.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Generic, TypeVar
from urllib.parse import SplitResult, urlsplit

from farhand.errors import BadSetting

TIMEOUT_SEC = 600.0
"""How long a provider may be silent, before the first event and between two: some think for minutes."""
CONNECT_SEC = 10.0
"""How long opening a connection may take: a server that is up accepts one at once."""
SETUP_ERRORS = (ValueError, TypeError, ImportError)
"""What a library raises for its own settings, such as an unusable proxy in the environment."""

_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")
_LONGEST_MODEL = 200
_LONGEST_QUOTE = 80


def check_base_url(address: str, setting: str) -> str:
    """Returns the address unchanged."""
    try:
        parts = urlsplit(address)
        good = parts.port != 0 and parts.scheme in {"http", "https"} and _is_host(parts)
    except ValueError:
        good = False
    if not good or not address.isascii() or not _is_one_word(address):
        # an address may contain a password
        shown = "" if "@" in address else f" '{one_line(address)}'"
        raise BadSetting(
            f"{setting}{shown} is not the address of a model server.",
            hint="Examples: https://api.example.com/v1, http://127.0.0.1:11434/v1.",
        )
    return address


def check_model(name: str, example: str) -> str:
    """Returns the name unchanged."""
    if not _is_one_word(name) or len(name) > _LONGEST_MODEL:
        raise BadSetting(f"'{one_line(name)}' is not the name of a model.", hint=f"Example: {example}.")
    return name


def check_key(key: str, setting: str) -> str:
    """Returns the key unchanged; it is never part of a message."""
    if not key.isascii() or not _is_one_word(key):
        raise BadSetting(
            f"{setting} is not a valid key: it has spaces, line breaks or non-ASCII characters.",
            hint="Copy it again.",
        )
    return key


# `object`: not everybody runs a type checker
def check_timeout(seconds: object) -> float:
    """Returns the timeout unchanged."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise BadSetting(
            f"timeout_sec must be a number of seconds above 0, not {one_line(repr(seconds))}.",
            hint=f"The default is {TIMEOUT_SEC:g}.",
        )
    return seconds


def one_line(text: str) -> str:
    """The text on one short line, whatever it contains."""
    plain = text if text.isprintable() else text.encode("unicode_escape", "backslashreplace").decode()
    return plain if len(plain) <= _LONGEST_QUOTE else f"{plain[:_LONGEST_QUOTE]}…"


def _is_host(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    if ":" in host:
        ip_address(host)
        return True
    return _HOST.fullmatch(host) is not None


def _is_one_word(text: str) -> bool:
    return text.isprintable() and len(text.split()) == 1 and text == text.strip()


_BODY = "extra_body"
_TOOLS = "tools"


def request_options(
    create: Callable[..., object], options: Mapping[str, object] | None, reserved: AbstractSet[str]
) -> dict[str, Any]:
    """Arguments for the library's function; members that it does not know go into the body of the request."""
    given = dict(options or {})
    check_reserved(given, reserved)
    extra = given.pop(_BODY, None) or {}
    if not isinstance(extra, Mapping):
        raise BadSetting("options: 'extra_body' must be an object.")
    check_reserved(extra, reserved)
    if not isinstance(given.get(_TOOLS, ()), list | tuple):
        raise BadSetting("options: 'tools' must be a list of the provider's own tools.")
    known = parameters_of(create)
    more = {name: value for name, value in given.items() if name not in known}
    body = {**extra, **more}
    arguments = {name: value for name, value in given.items() if name in known}
    return {**arguments, _BODY: body} if body else arguments


def check_reserved(options: Mapping[str, object], reserved: AbstractSet[str]) -> None:
    taken = sorted(name for name in options if name in reserved)
    if taken:
        raise BadSetting(
            f"options: '{one_line(taken[0])}' is set by farhand.",
            hint="Remove it; the agent or an argument of the model sets it.",
        )


def parameters_of(function: Callable[..., object]) -> AbstractSet[str]:
    return inspect.signature(function).parameters.keys()


C = TypeVar("C")


class ProviderConnection(Generic[C]):
    """The client of a provider. Its sockets belong to one event loop: another loop gets its own client."""

    def __init__(self, make: Callable[[], C], shut: Callable[[C], Awaitable[object]]) -> None:
        """The first client is created at once, so that a bad setting is reported at once."""
        self._make = make
        self._shut = shut
        self._client: C | None = make()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def first(self) -> C:
        """The first client, before it is used."""
        assert self._client is not None, "the first client exists until it was used and closed"
        return self._client

    async def client(self) -> C:
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            await self.close()
        if self._client is None:
            self._client = self._make()
        self._loop = loop
        return self._client

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is None or self._loop is None:
            return
        if self._loop is asyncio.get_running_loop():
            await self._shut(client)
        elif self._loop.is_closed():
            # its sockets ended with its loop, and some clients fail for that reason
            with suppress(RuntimeError):
                await self._shut(client)
