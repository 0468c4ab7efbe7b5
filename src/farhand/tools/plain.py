"""Turns what a Python function returned into plain JSON builtins, or says in one sentence why it cannot.

Owns the question "can JSON hold this, and read it back the same?". It must not know tools or calls. It is
stricter than the encoders below it, which write NaN as null and bytes as text without a word.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address, IPv6Address
from math import isfinite
from pathlib import PurePath
from typing import Any
from uuid import UUID

import msgspec
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

DEEPEST = 64
LONGEST_INTEGER = 10**64
SMALL = 16 * 1024
"""Members and letters, all counted."""

Place = tuple[str | int, ...]


class NotJson(ValueError):
    """As text it is one sentence without a full stop that names the place."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.place: Place = ()

    def inside(self, step: str | int) -> NotJson:
        """The same fault, seen from the value around it. So only a fault pays for its place."""
        self.place = (step, *self.place)
        return self

    def __str__(self) -> str:
        return f"{name_of(self.place)} {self.why}"


def plain(value: object) -> object:
    """The same value in dicts, lists, strings, numbers, booleans and None alone; a copy, never an alias."""
    return _plain(value, DEEPEST)


def is_small(value: object, at_most: int = SMALL) -> bool:
    """Whether it becomes JSON in no time. False also where that can't be told without doing it."""
    left, pending = at_most, [value]
    while pending:
        here = pending.pop()
        left -= len(here) if isinstance(here, _SIZED) else 1
        if left < 0 or not isinstance(here, (*_SIZED, *_SCALARS)):
            return False
        if isinstance(here, Mapping):
            pending += here.values()
        elif isinstance(here, list | tuple | set | frozenset):
            pending += here
    return True


def size_of(value: object) -> int:
    """Bytes of JSON, given what `plain` made. Part by part: one long encoding would hold up other threads."""
    match value:
        case dict() if not is_small(value):
            return 1 + sum(size_of(name) + size_of(member) + 2 for name, member in value.items())
        case list() if not is_small(value):
            return 1 + sum(size_of(member) + 1 for member in value)
        case _:
            return len(msgspec.json.encode(value))


def is_text(value: str) -> bool:
    """Whether it can leave as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def why_not_json(value: object) -> str:
    """A sentence without a full stop about a value that no JSON writer took as it is."""
    try:
        plain(value)
    except NotJson as error:
        return str(error)
    return "the value is not JSON"


def name_of(place: Place, *, root: str = "the value") -> str:
    """`rows[3].price`, in back-quotes; `root` for the whole."""
    if not place:
        return root
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return f"`{shortened(text.removeprefix('.'))}`"


def shortened(text: str, at_most: int = 120) -> str:
    """Fit to be quoted in a sentence: never long, never more than one line, always encodable."""
    readable = "".join(letter if letter.isprintable() else "�" for letter in text[: at_most + 1])
    return readable if len(readable) <= at_most else f"{readable[: at_most - 1]}…"


_SIZED = (str, Mapping, list, tuple, set, frozenset)
_SCALARS = (int, float, type(None))
_WRITTEN = (date, time, timedelta, UUID, Decimal, IPv4Address, IPv6Address)


def _plain(value: object, room: int) -> object:
    """`room` is how many levels may follow: a value that contains itself runs out of it like a deep one."""
    known = _BY_TYPE.get(type(value))
    if known is not None:
        return known(value, room)
    if isinstance(value, Enum):
        return _plain(value.value, room)
    for kind, make in _BY_KIND:
        if isinstance(value, kind):
            return make(value, room)
    return _plain(_opened(value), room)


def _same(value: object, room: int) -> object:
    return value


def _text(value: str, room: int) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise NotJson("is text with half a surrogate pair") from error
    # a subclass, as of StrEnum, becomes an exact str
    return str.__str__(value)


def _whole(value: int, room: int) -> int:
    if not -LONGEST_INTEGER < value < LONGEST_INTEGER:
        raise NotJson("is an integer of more than 64 digits")
    return int(value)


def _fraction(value: float, room: int) -> float:
    if not isfinite(value):
        raise NotJson("is not a finite number")
    return float(value)


def _object(value: Mapping[object, object], room: int) -> dict[str, object]:
    _check_room(room)
    made: dict[str, object] = {}
    for key, member in value.items():
        if not isinstance(key, str):
            raise NotJson(f"has a key of type {type(key).__name__}; JSON keys are strings")
        name = _text(key, room)
        try:
            made[name] = _plain(member, room - 1)
        except NotJson as error:
            raise error.inside(name) from None
    return made


def _array(value: Iterable[object], room: int) -> list[object]:
    _check_room(room)
    made: list[object] = []
    for item in value:
        try:
            made.append(_plain(item, room - 1))
        except NotJson as error:
            raise error.inside(len(made)) from None
    return made


def _check_room(room: int) -> None:
    if room <= 0:
        raise NotJson(f"nests deeper than {DEEPEST} levels, or contains itself")


# Any: each function takes the kind it stands beside
_Make = Callable[[Any, int], object]
_BY_TYPE: dict[type, _Make] = {
    type(None): _same,
    bool: _same,
    str: _text,
    int: _whole,
    float: _fraction,
    dict: _object,
    list: _array,
}
_BY_KIND: tuple[tuple[type | tuple[type, ...], _Make], ...] = (
    (str, _text),
    (int, _whole),
    (float, _fraction),
    (Mapping, _object),
    ((list, tuple, set, frozenset), _array),
)


def _opened(value: object) -> object:
    """One layer off: an object with fields becomes a dict, a date or an id becomes its text."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value, enc_hook=plain)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, _WRITTEN):
        return to_jsonable_python(value)
    raise NotJson(f"is a {type(value).__name__}")
