"""What a user set for a provider: an address, a key, a model's name. Each is checked when a model is made.

A mistake in one is a `BadSetting` with the setting's name, not an error of some library hours later.
"""

from __future__ import annotations

import math
import re
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from farhand.errors import BadSetting

TIMEOUT_SEC = 600.0
"""How long a provider may be silent, before its first word and between two: some think for minutes."""
CONNECT_SEC = 10.0
"""How long a connection may take: whoever is there takes one at once."""
UNUSABLE = (ValueError, TypeError, ImportError)
"""What a library raises on settings of its own: a proxy of the environment that it cannot use, for one."""

_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")
_LONGEST_MODEL = 200
_SHOWN = 80


def checked_address(address: str, setting: str) -> str:
    """The address as it was set."""
    try:
        parts = urlsplit(address)
        good = parts.port != 0 and parts.scheme in {"http", "https"} and _is_host(parts)
    except ValueError:
        good = False
    if not good or not address.isascii() or not _is_one_word(address):
        # an address may carry a password
        shown = "" if "@" in address else f" '{shown_as_set(address)}'"
        raise BadSetting(
            f"{setting}{shown} is no address of a model server.",
            hint="It looks like https://api.example.com/v1 or http://127.0.0.1:11434/v1.",
        )
    return address


def checked_model(name: str, example: str) -> str:
    """The name as it was set."""
    if not _is_one_word(name) or len(name) > _LONGEST_MODEL:
        raise BadSetting(f"'{shown_as_set(name)}' is no name of a model.", hint=f"One looks like {example}.")
    return name


def checked_key(key: str, setting: str) -> str:
    """The key as it was set; it is never shown."""
    if not key.isascii() or not _is_one_word(key):
        raise BadSetting(
            f"{setting} holds what no key has: blanks, line breaks or letters beyond ASCII.",
            hint="Copy it again.",
        )
    return key


# `object`: types are promises of those who check them, and not everybody does
def checked_timeout(seconds: object) -> float:
    """The time as it was set."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise BadSetting(
            f"timeout_sec is a number of seconds above 0, not {shown_as_set(repr(seconds))}.",
            hint=f"Without it, it is {TIMEOUT_SEC:g}.",
        )
    return seconds


def shown_as_set(text: str) -> str:
    """In one line of bearable length, whatever is in it."""
    plain = text if text.isprintable() else text.encode("unicode_escape", "backslashreplace").decode()
    return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]}…"


def _is_host(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    if ":" in host:
        ip_address(host)
        return True
    return _HOST.fullmatch(host) is not None


def _is_one_word(text: str) -> bool:
    return text.isprintable() and len(text.split()) == 1 and text == text.strip()
