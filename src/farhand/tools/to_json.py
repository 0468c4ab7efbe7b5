"""Converts what a Python function returned to JSON builtins, or says in one sentence why it cannot.

Owns the question "can JSON represent this value and read it back unchanged?". It must not know tools or
calls. It is stricter than the encoders below it, which silently write NaN as null and bytes as text.
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
"""Members and characters together."""

Place = tuple[str | int, ...]


class NotJson(ValueError):
    """Its text is one sentence without a full stop that names the place."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.place: Place = ()

    def inside(self, step: str | int) -> NotJson:
        """The same error, seen from the enclosing value. Paths are built only when there is an error."""
        self.place = (step, *self.place)
        return self

    def __str__(self) -> str:
        return f"{path_text(self.place)} {self.why}"


def to_json(value: object) -> object:
    """The same value in dicts, lists, strings, numbers, booleans and None; always a copy."""
    return _convert(value, DEEPEST)


def is_small(value: object) -> bool:
    """True if it converts to JSON quickly; False if that cannot be known without converting it."""
    left, pending = SMALL, [value]
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


def json_size(value: object) -> int:
    """Bytes of JSON, for a result of `to_json`. In parts: one long encoding would block other threads."""
    match value:
        case dict() if not is_small(value):
            return 1 + sum(json_size(name) + json_size(member) + 2 for name, member in value.items())
        case list() if not is_small(value):
            return 1 + sum(json_size(member) + 1 for member in value)
        case _:
            return len(msgspec.json.encode(value))


def is_text(value: str) -> bool:
    """True if it can be encoded as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def why_not_json(value: object) -> str:
    """A sentence without a full stop about a value that the JSON encoder refused."""
    try:
        to_json(value)
    except NotJson as error:
        return str(error)
    return "the value is not JSON"


def path_text(place: Place) -> str:
    """`rows[3].price`, in back-quotes; "the value" for the whole."""
    if not place:
        return "the value"
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return f"`{shorten(text.removeprefix('.'))}`"


def shorten(text: str, at_most: int = 120) -> str:
    """The text as it can be quoted in a sentence: short, on one line, always encodable."""
    readable = "".join(letter if letter.isprintable() else "�" for letter in text[: at_most + 1])
    return readable if len(readable) <= at_most else f"{readable[: at_most - 1]}…"


_SIZED = (str, Mapping, list, tuple, set, frozenset)
_SCALARS = (int, float, type(None))
_WRITTEN = (date, time, timedelta, UUID, Decimal, IPv4Address, IPv6Address)


def _convert(value: object, levels: int) -> object:
    """`levels` is how many more are allowed; a value that contains itself exceeds any number."""
    known = _BY_TYPE.get(type(value))
    if known is not None:
        return known(value, levels)
    if isinstance(value, Enum):
        return _convert(value.value, levels)
    for kind, make in _BY_KIND:
        if isinstance(value, kind):
            return make(value, levels)
    return _convert(_unwrap(value), levels)


def _same(value: object, levels: int) -> object:
    return value


def _text(value: str, levels: int) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise NotJson("is text with a lone surrogate") from error
    # a subclass, as of StrEnum, becomes an exact str
    return str.__str__(value)


def _integer(value: int, levels: int) -> int:
    if not -LONGEST_INTEGER < value < LONGEST_INTEGER:
        raise NotJson("is an integer of more than 64 digits")
    return int(value)


def _float(value: float, levels: int) -> float:
    if not isfinite(value):
        raise NotJson("is not a finite number")
    return float(value)


def _object(value: Mapping[object, object], levels: int) -> dict[str, object]:
    _check_levels(levels)
    made: dict[str, object] = {}
    for key, member in value.items():
        if not isinstance(key, str):
            raise NotJson(f"has a key of type {type(key).__name__}; JSON keys are strings")
        name = _text(key, levels)
        try:
            made[name] = _convert(member, levels - 1)
        except NotJson as error:
            raise error.inside(name) from None
    return made


def _array(value: Iterable[object], levels: int) -> list[object]:
    _check_levels(levels)
    made: list[object] = []
    for item in value:
        try:
            made.append(_convert(item, levels - 1))
        except NotJson as error:
            raise error.inside(len(made)) from None
    return made


def _check_levels(levels: int) -> None:
    if levels <= 0:
        raise NotJson(f"is nested more than {DEEPEST} levels deep or contains itself")


# Any: each function takes values of the type beside it
_Make = Callable[[Any, int], object]
_BY_TYPE: dict[type, _Make] = {
    type(None): _same,
    bool: _same,
    str: _text,
    int: _integer,
    float: _float,
    dict: _object,
    list: _array,
}
_BY_KIND: tuple[tuple[type | tuple[type, ...], _Make], ...] = (
    (str, _text),
    (int, _integer),
    (float, _float),
    (Mapping, _object),
    ((list, tuple, set, frozenset), _array),
)


def _unwrap(value: object) -> object:
    """Unwraps one layer: an object with fields becomes a dict, a date or an id becomes its text."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value, enc_hook=to_json)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, _WRITTEN):
        return to_jsonable_python(value)
    raise NotJson(f"is a {type(value).__name__}")
