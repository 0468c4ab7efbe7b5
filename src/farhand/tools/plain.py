"""Turns what a Python function returned into plain JSON builtins, or says in one sentence why it cannot.

Owns the question "can JSON hold this, and read it back the same?". It must not know tools or calls. It is
stricter than the encoders below it, which write NaN as null and bytes as text without a word.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address, IPv6Address
from math import isfinite
from pathlib import PurePath
from uuid import UUID

import msgspec
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

DEEPEST = 64
LONGEST_INTEGER = 10**64

Place = tuple[str | int, ...]


class NotJson(ValueError):
    """The message is one sentence without a full stop that names the place."""

    def __init__(self, place: Place, why: str) -> None:
        super().__init__(f"{name_of(place)} {why}")


def plain(value: object) -> object:
    """The same value in dicts, lists, strings, numbers, booleans and None alone; a copy, never an alias."""
    return _plain(value, ())


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


_AS_IS = (bool, type(None))
_WRITTEN = (date, time, timedelta, UUID, Decimal, IPv4Address, IPv6Address)
_ARRAYS = (list, tuple, set, frozenset)


def _plain(value: object, place: Place) -> object:
    # a value that contains itself is met here too: it is deeper than anything
    if len(place) > DEEPEST:
        raise NotJson(place[:3], f"nests deeper than {DEEPEST} levels, or contains itself")
    if isinstance(value, _AS_IS):
        return value
    if isinstance(value, Enum):
        return _plain(value.value, place)
    if isinstance(value, str | int | float):
        return _scalar(value, place)
    if isinstance(value, Mapping):
        return {_key(key, place): _plain(item, (*place, key)) for key, item in value.items()}
    if isinstance(value, _ARRAYS):
        return [_plain(item, (*place, index)) for index, item in enumerate(value)]
    return _plain(_opened(value, place), place)


def _scalar(value: str | float, place: Place) -> object:
    if isinstance(value, str):
        return _text(value, place)
    if isinstance(value, int):
        return _whole(value, place)
    if not isfinite(value):
        raise NotJson(place, "is not a finite number")
    return float(value)


def _text(value: str, place: Place) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise NotJson(place, "is text with half a surrogate pair") from error
    # a subclass, as of StrEnum, becomes an exact str
    return str.__str__(value)


def _whole(value: int, place: Place) -> int:
    if abs(value) >= LONGEST_INTEGER:
        raise NotJson(place, "is an integer of more than 64 digits")
    return int(value)


def _key(key: object, place: Place) -> str:
    if not isinstance(key, str):
        raise NotJson(place, f"has a key of type {type(key).__name__}; JSON keys are strings")
    return _text(key, place)


def _opened(value: object, place: Place) -> object:
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
    raise NotJson(place, f"is a {type(value).__name__}")
