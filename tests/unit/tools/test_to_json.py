"""What a function returns becomes plain JSON, or a sentence that names the place."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from ipaddress import ip_address
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from farhand.tools.to_json import (
    DEEPEST,
    SMALL,
    NotJson,
    is_small,
    is_text,
    json_size,
    path_text,
    shorten,
    to_json,
)
from tests.requirement import requirement


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Word(StrEnum):
    YES = "yes"


class Place(BaseModel):
    city: str
    since: date = Field(default=date(2020, 1, 2), serialization_alias="sinceDay")


@dataclasses.dataclass
class Trip:
    to: Place
    legs: list[int]


class Point(NamedTuple):
    x: int
    y: int


class Box(msgspec.Struct, rename="camel"):
    inner_size: int
    place: Place


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Word.YES, "yes"),
        ((1, 2.5), [1, 2.5]),
        ({3}, [3]),
        (frozenset({"a"}), ["a"]),
        (Point(1, 2), [1, 2]),
        (MappingProxyType({"a": 1}), {"a": 1}),
        ({Word.YES: 1}, {"yes": 1}),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00Z"),
        (date(2026, 1, 2), "2026-01-02"),
        (time(3, 4), "03:04:00"),
        (timedelta(days=1), "P1D"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.10"), "1.10"),
        (PurePosixPath("a/b"), "a/b"),
        (ip_address("::1"), "::1"),
        (Place(city="Bonn"), {"city": "Bonn", "sinceDay": "2020-01-02"}),
        (
            Trip(Place(city="Bonn"), [1]),
            {"to": {"city": "Bonn", "sinceDay": "2020-01-02"}, "legs": [1]},
        ),
        (
            Box(3, Place(city="Bonn")),
            {"innerSize": 3, "place": {"city": "Bonn", "sinceDay": "2020-01-02"}},
        ),
        (10**63, 10**63),
    ],
)
def test_values_become_plain_builtins(value: object, expected: object) -> None:
    made = to_json(value)
    assert made == expected
    assert json.loads(json.dumps(made)) == made


def test_a_subclass_of_a_builtin_becomes_the_builtin() -> None:
    assert type(to_json(Word.YES)) is str
    assert type(to_json(Level.HIGH)) is int


def _loop() -> list[object]:
    inside: list[object] = []
    inside.append(inside)
    return inside


def _numbers() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"rows": [1, {"price": math.nan}]}, "`rows[1].price` is not a finite number"),
        (math.inf, "the value is not a finite number"),
        ([-math.inf], "`[0]` is not a finite number"),
        ({"a": {1: 2}}, "`a` has a key of type int; JSON keys are strings"),
        (b"raw", "the value is a bytes"),
        ({"raw": bytearray(b"x")}, "`raw` is a bytearray"),
        ("\ud800", "the value is text with a lone surrogate"),
        ({"\udfff": 1}, "the value is text with a lone surrogate"),
        (object(), "the value is a object"),
        (Place, "the value is a ModelMetaclass"),
        (Trip, "the value is a type"),
        (_numbers(), "the value is a generator"),
        (10**64, "the value is an integer of more than 64 digits"),
        (-(10**64), "the value is an integer of more than 64 digits"),
        (Trip(Place(city="x"), [b"x"]), "`legs[0]` is a bytes"),  # type: ignore[list-item]
    ],
)
def test_what_json_cannot_hold_is_named_with_its_place(value: object, sentence: str) -> None:
    with pytest.raises(NotJson) as refused:
        to_json(value)
    assert str(refused.value) == sentence


def _nested(levels: int) -> object:
    value: object = 0
    for _ in range(levels):
        value = [value]
    return value


def test_what_nests_too_deeply_or_contains_itself_is_refused() -> None:
    assert to_json(_nested(DEEPEST)) == _nested(DEEPEST)
    for value in (_nested(DEEPEST + 1), _nested(100_000), _loop()):
        with pytest.raises(
            NotJson, match=rf"`\[0\].* is nested more than {DEEPEST} levels deep or contains itself"
        ):
            to_json(value)


def test_the_result_is_a_copy() -> None:
    given_value = {"rows": [1]}
    made = to_json(given_value)
    given_value["rows"].append(2)
    assert made == {"rows": [1]}


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**63), 10**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    # the default alphabet holds no half surrogate pairs
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(_json)
def test_json_passes_unchanged(value: object) -> None:
    assert to_json(value) == value
    msgspec.json.encode(to_json(value))


_anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.dates()
    | st.timedeltas()
    | st.uuids()
    | st.decimals(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(_anything)
def test_whatever_is_let_through_is_read_back_the_same(value: object) -> None:
    try:
        made = to_json(value)
    except NotJson:
        return
    assert msgspec.json.decode(msgspec.json.encode(made)) == made


def test_places_are_short_and_on_one_line() -> None:
    assert path_text(()) == "the value"
    assert path_text(("a", 0, "b")) == "`a[0].b`"
    assert path_text(("line\nfeed\u202e",)) == "`line�feed�`"
    assert len(path_text(("x" * 10_000,))) < 130


def test_long_text_is_cut_with_a_mark() -> None:
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd", 3) == "ab…"


def _cyclic() -> list[object]:
    around: list[object] = []
    around.append(around)
    return around


@requirement("tools:exception")
@pytest.mark.parametrize(
    ("value", "small"),
    [
        ("words", True),
        ({"a": [1, 2.0, None, True, ("x",)], "b": {}}, True),
        ("a" * SMALL, True),
        ("a" * (SMALL + 1), False),
        ([0] * (SMALL + 1), False),
        ([["a" * 1000] * 10] * 10, False),
        (_cyclic(), False),
        (Colour.RED, False),
        ({"at": date(2026, 1, 1)}, False),
    ],
)
def test_small_values_are_told_from_large_ones_and_from_those_nobody_knows(
    value: object, *, small: bool
) -> None:
    assert is_small(value) is small


@requirement("tools:exception")
@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"é": [1, 2.5, "a\n"]},
        ["x" * 1000] * 100,
        {"rows": [{"id": n, "name": "n" * 50} for n in range(1000)], "next": None},
        {str(n): "y" for n in range(20_000)},
    ],
)
def test_the_size_is_that_of_the_json_whichever_way_it_is_counted(value: object) -> None:
    assert json_size(value) == len(msgspec.json.encode(value))


@pytest.mark.parametrize(("value", "encodable"), [("", True), ("naïve 🐚", True), ("\ud800", False)])
def test_text_that_cannot_be_encoded_is_recognized(value: str, *, encodable: bool) -> None:
    assert is_text(value) is encodable
