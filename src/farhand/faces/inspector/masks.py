"""Hides what looks like a secret in what the Inspector shows. Pure; in doubt it hides.

A value is hidden for the name it stands under, or for what it looks like itself: a credential behind
`Bearer`, a key with a known beginning, a long string without words in it. The text comes from outside, so
every pattern matches in linear time, and one match attempt sees a slice of the text: a thread holds the
interpreter for as long as one attempt lasts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

MASK = "••••••••"
SLICE = 16 * 1024
"""Characters that one match attempt sees, unless a match goes on behind them."""
OVERLAP = 512
"""More than any pattern needs to begin a match: a secret across the end of a slice is found in the next."""


def masked(value: object) -> object:
    """The same JSON, with every secret in it replaced."""
    match value:
        case str():
            return masked_text(value)
        case Mapping():
            return {str(key): _under(str(key), item) for key, item in value.items()}
        case Sequence():
            return [masked(item) for item in value]
        case _:
            return value


def masked_text(text: str, *, slice_of: int = SLICE) -> str:
    """The same words, with every secret among them replaced. A slice has to be longer than two overlaps."""
    text = _without_private_keys(text, slice_of)
    for pattern, instead in _PATTERNS:
        text = _replaced(pattern, instead, text, slice_of)
    return text


def is_secret_name(name: str) -> bool:
    """True for `password`, `apiKey`, `X-Auth-Token` and the like."""
    words = [word.lower() for word in _WORD.findall(name)]
    if any(part in "".join(words) for part in _TELLING_PARTS):
        return True
    if "token" in words:
        return _COUNTED.isdisjoint(words)
    return not _TELLING_WORDS.isdisjoint(words)


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_TELLING_PARTS = (
    "password", "passwd", "passphrase", "secret", "authorization", "apikey", "accesskey", "privatekey",
    "signingkey", "accesstoken", "refreshtoken", "authtoken", "sessiontoken", "credential", "cookie",
    "bearer",
)  # fmt: skip
_TELLING_WORDS = frozenset({"pwd", "auth", "jwt", "otp", "pin", "cvv", "cvc"})
# "token_count" is about money, not about access
_COUNTED = frozenset({"count", "limit", "budget", "type"})

_NAMED = (
    r"(?i)((?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|token(?!s)|authorization|credential)[\w-]{0,40}"
)
# also inside JSON that is itself a text, where quotes are escaped
_IS = r"""[\\"']{0,4}\s{0,8}[=:]\s{0,8}[\\"']{0,4})"""
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----")
_END_OF_KEY = "-----END"
_WEB_TOKEN = re.compile(r"\beyJ[\w-]{5,}+(\.[\w-]*+){0,4}")
_LONG = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
_OWN_ID = re.compile(r"(?:call|run|thr|apr|cli|blob|msg)_[0-9a-f]{32}")
_HEX = re.compile(r"[0-9a-fA-F]{32,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _if_it_has_parts(found: re.Match[str]) -> str:
    """A web token has dots in it. What has none is matched all the same, so that it is not searched again."""
    return found[0] if found[1] is None else MASK


def _unless_harmless(found: re.Match[str]) -> str:
    text = found[0]
    # slashes are part of base64, and of every path
    return MASK if any(_looks_random(part) for part in (text, *text.split("/"))) else text


_Instead: TypeAlias = str | Callable[[re.Match[str]], str]
_PATTERNS: tuple[tuple[re.Pattern[str], _Instead], ...] = (
    (re.compile(r"(?i)\b(bearer)\s{1,8}[\w.~+/=:-]{4,}"), rf"\1 {MASK}"),
    (re.compile(r"\b([Bb]asic)\s{1,8}(?=[\w+/]{0,200}(?:[0-9=]|[a-z][A-Z]))[\w+/]{8,}={0,2}"), rf"\1 {MASK}"),
    (re.compile(r"(://[^/\s:@]{0,200}):[^/\s@]{1,200}@"), rf"\1:{MASK}@"),
    (_WEB_TOKEN, _if_it_has_parts),
    (re.compile(r"\b(?:sk|pk|rk|gh[opsu]|github_pat|glpat|xox[a-z]|hf|npm|pypi)[-_][\w-]{12,}"), MASK),
    (re.compile(r"\b(?:AKIA|ASIA|AIza)[\w-]{12,}"), MASK),
    (re.compile(_NAMED + _IS + r"""(?!bearer\b|basic\b|•)[^\s"'\\,;&}]+"""), rf"\1{MASK}"),
    (_LONG, _unless_harmless),
)


def _without_private_keys(text: str, slice_of: int) -> str:
    """From each beginning to its end, or to the end of the text."""
    kept: list[str] = []
    after = 0
    for found in _matches(_PRIVATE_KEY, text, slice_of):
        if found.start() < after:
            continue
        kept += [text[after : found.start()], MASK]
        end = text.find(_END_OF_KEY, found.end())
        after = len(text) if end < 0 else end + len(_END_OF_KEY)
    return "".join([*kept, text[after:]])


def _replaced(pattern: re.Pattern[str], instead: _Instead, text: str, slice_of: int) -> str:
    """As `pattern.sub` does it, slice by slice."""
    kept: list[str] = []
    after = 0
    for found in _matches(pattern, text, slice_of):
        words = found.expand(instead) if isinstance(instead, str) else instead(found)
        kept += [text[after : found.start()], words]
        after = found.end()
    return "".join([*kept, text[after:]])


def _matches(pattern: re.Pattern[str], text: str, slice_of: int) -> Iterator[re.Match[str]]:
    """As `pattern.finditer` finds them, though it sees a slice of the text at a time."""
    start, end = 0, slice_of
    while True:
        found = pattern.search(text, start, end)
        if end < len(text) and (found is None or found.start() >= end - OVERLAP):
            # what begins this late may need text behind the slice: it is looked for in the next one
            start = max(start, end - OVERLAP)
            end = start + slice_of
        elif found is None:
            return
        elif end < len(text) and found.end() == end:
            # it may go on behind the slice
            start, end = found.start(), end + (end - start)
        else:
            yield found
            start = found.end()
            end = start + slice_of


def _under(name: str, value: object) -> object:
    return _hidden(value) if is_secret_name(name) else masked(value)


def _hidden(value: object) -> object:
    """Every leaf of it, so that its shape can still be seen."""
    match value:
        case None | bool():
            return value
        case Mapping():
            return {str(key): _hidden(item) for key, item in value.items()}
        case str():
            return MASK if value else value
        case Sequence():
            return [_hidden(item) for item in value]
        case _:
            return MASK


def _looks_random(text: str) -> bool:
    if len(text) < 24 or _OWN_ID.fullmatch(text) or _UUID.fullmatch(text):
        return False
    if _HEX.fullmatch(text):
        return True
    changes = sum(_changes_kind(before, after) for before, after in pairwise(text))
    # words keep their kind of character for long; a name in camel case has no digits
    enough = 0.25 if any(char.isdigit() for char in text) else 0.4
    return changes / len(text) >= enough


def _changes_kind(before: str, after: str) -> bool:
    if not (before.isalnum() and after.isalnum()):
        return False
    return _kind(before) != _kind(after)


def _kind(char: str) -> str:
    if char.isdigit():
        return "digit"
    return "upper" if char.isupper() else "lower"
