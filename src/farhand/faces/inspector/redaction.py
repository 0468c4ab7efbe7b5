"""Redacts what looks like a secret in what the Inspector shows. Pure; in doubt it redacts.

Text that was streamed in pieces is joined first: half a secret does not look like one.

A value is redacted because of its name, or because of its form: a credential after `Bearer`, a key with a
known prefix, a long string without words in it. The text comes from outside, so every pattern matches in
linear time, and one match attempt sees a slice of the text: an attempt blocks the other threads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from farhand.core.approval import Approval
from farhand.core.call import Call
from farhand.core.event import (
    DELTAS,
    ApprovalAnswered,
    CallOpened,
    CallRejected,
    CallSettled,
    Event,
    InputAdded,
)
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.position import Entry, Happening, News
from farhand.core.thread import AssistantMessage, File, Note, Part, ToolCallPart
from farhand.core.thread import Reasoning as Thought
from farhand.core.thread import Text as Said
from farhand.eventlog.writer import is_same_block
from farhand.faces.event_fields import is_public

MASK = "••••••••"
SLICE_CHARS = 16 * 1024
"""Characters that one match attempt sees, unless a match extends beyond them; more than two overlaps."""
OVERLAP = 512
"""More than any pattern needs to begin a match: a secret at the end of a slice is found in the next one."""


def redact(value: object) -> object:
    """The same JSON, with every secret in it replaced."""
    match value:
        case str():
            return redact_text(value)
        case Mapping():
            return {
                str(key): _hidden(item) if is_secret_name(str(key)) else redact(item)
                for key, item in value.items()
            }
        case Sequence():
            return [redact(item) for item in value]
        case _:
            return value


def redact_text(text: str) -> str:
    """The same text, with every secret in it replaced."""
    text = _without_private_keys(text)
    for pattern, instead in _PATTERNS:
        text = _replaced(pattern, instead, text)
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
# also inside JSON in a string, where quotes are escaped
_IS = r"""[\\"']{0,4}\s{0,8}[=:]\s{0,8}[\\"']{0,4})"""
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----")
_END_OF_KEY = "-----END"
_WEB_TOKEN = re.compile(r"\beyJ[\w-]{5,}+(\.[\w-]*+){0,4}")
_LONG = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
_OWN_ID = re.compile(r"(?:call|run|thr|apr|cli|blob|msg)_[0-9a-f]{32}")
_HEX = re.compile(r"[0-9a-fA-F]{32,}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _if_it_has_parts(found: re.Match[str]) -> str:
    """A web token has dots in it. A text without dots is matched too, so that it is not searched again."""
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


def _without_private_keys(text: str) -> str:
    """Removes each key from its first line to its last, or to the end of the text."""
    kept: list[str] = []
    after = 0
    for found in _matches(_PRIVATE_KEY, text):
        if found.start() < after:
            continue
        kept += [text[after : found.start()], MASK]
        end = text.find(_END_OF_KEY, found.end())
        after = len(text) if end < 0 else end + len(_END_OF_KEY)
    return "".join([*kept, text[after:]])


def _replaced(pattern: re.Pattern[str], instead: _Instead, text: str) -> str:
    """Like `pattern.sub`, slice by slice."""
    kept: list[str] = []
    after = 0
    for found in _matches(pattern, text):
        words = found.expand(instead) if isinstance(instead, str) else instead(found)
        kept += [text[after : found.start()], words]
        after = found.end()
    return "".join([*kept, text[after:]])


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Like `pattern.finditer`, but with a slice of the text at a time."""
    start, end = 0, SLICE_CHARS
    while True:
        found = pattern.search(text, start, end)
        if end < len(text) and (found is None or found.start() >= end - OVERLAP):
            # a match that begins this late may need text after the slice: the next slice finds it
            start = max(start, end - OVERLAP)
            end = start + SLICE_CHARS
        elif found is None:
            return
        elif end < len(text) and found.end() == end:
            # the match may extend beyond the slice
            start, end = found.start(), end + (end - start)
        else:
            yield found
            start = found.end()
            end = start + SLICE_CHARS


def _hidden(value: object) -> object:
    """Every leaf of the value, so that its structure can still be seen."""
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
    # words rarely change between kinds of characters; names in camel case have no digits
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


H = TypeVar("H", bound=Happening)

_WORDS = ("error", "public", "reason", "message", "detail", "text")


def redact_entries(entries: Sequence[Entry]) -> list[Entry]:
    """One entry for each block of text and for each input, with the number of its first piece. Events that
    only the log needs are left out."""
    whole = _joined(entry for entry in entries if is_public(entry.event))
    return [replace(entry, event=redact_event(entry.event)) for entry in whole]


def redact_news(news: News) -> News:
    return replace(news, event=redact_event(news.event))


def redact_event(event: H) -> H:
    match event:
        case InputAdded(text=text):
            return replace(event, text=_masked_json(text))
        case CallRejected():
            return replace(event, input=redact(event.input), **_words(event))
        case CallOpened() | ApprovalAnswered():
            approval = None if event.approval is None else _masked_approval(event.approval)
            return replace(event, input=redact(event.input), approval=approval)
        case CallSettled(outcome=outcome):
            return replace(event, outcome=redact_outcome(outcome))
        case _:
            # every other event: its texts are redacted, too
            return replace(event, **_words(event))


def redact_call(call: Call) -> Call:
    outcome = None if call.outcome is None else redact_outcome(call.outcome)
    return replace(
        call,
        input=redact(call.input),
        outcome=outcome,
        approval=None if call.approval is None else _masked_approval(call.approval),
        metadata=redact(call.metadata),
        title=None if call.title is None else redact_text(call.title),
    )


def redact_step(message: AssistantMessage) -> AssistantMessage:
    return replace(message, parts=tuple(_masked_part(part) for part in message.parts))


def redact_outcome(outcome: Outcome) -> Outcome:
    match outcome:
        case Success(output=output):
            return Success(redact(output))
        case TimedOut():
            return outcome
        case Failure() | Denied() | Cancelled():
            return replace(outcome, **_words(outcome))


def _masked_approval(approval: Approval) -> Approval:
    answer = approval.answer
    if answer is not None:
        answer = replace(answer, reason=redact_text(answer.reason), input=redact(answer.input))
    return replace(approval, answer=answer, asked_input=redact(approval.asked_input))


def _masked_part(part: Part) -> Part:
    match part:
        case ToolCallPart(input=input):
            return replace(part, input=redact(input))
        case Said(text=text) | Thought(text=text) | Note(text=text):
            return replace(part, text=redact_text(text))
        case File():
            return part


def _words(record: Struct) -> dict[str, object]:
    return {name: redact_text(getattr(record, name)) for name in record.__struct_fields__ if name in _WORDS}


def _joined(entries: Iterable[Entry]) -> list[Entry]:
    whole: list[Entry] = []
    inputs: dict[str, int] = {}
    for entry in entries:
        event = entry.event
        into = inputs.get(event.call_id) if isinstance(event, InputAdded) else len(whole) - 1
        if into is not None and into >= 0 and is_same_block(whole[into].event, event):
            whole[into] = _with(whole[into], event)
            continue
        if isinstance(event, InputAdded):
            inputs[event.call_id] = len(whole)
        whole.append(entry)
    return whole


def _with(entry: Entry, more: Event) -> Entry:
    block = entry.event
    assert isinstance(block, DELTAS), "only text comes in pieces"
    assert isinstance(more, DELTAS), "of the same block"
    return replace(entry, event=replace(block, text=block.text + more.text))


def _masked_json(text: str) -> str:
    try:
        understood: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        # incomplete JSON: the names of its values are unknown
        return MASK if text else text
    hidden = redact(understood)
    return text if hidden == understood else msgspec.json.encode(hidden).decode()
