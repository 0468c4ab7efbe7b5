"""The guarded reader compared with the reference: both accept the same bodies and read the same values."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farhand.errors import Malformed
from farhand.wire.json_reader import read_json
from tests.unit.wire.reference_reader import RefusedError, read

pytestmark = pytest.mark.slow
fuzz = settings(max_examples=100, deadline=None)

blank = st.text(" \t\r\n", max_size=2)
number = st.one_of(
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?[0-9]{1,70}(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,4})?", fullmatch=True),
    st.sampled_from(["NaN", "-Infinity", "1e400", "-0", "00", "1.", "1" * 64, "1" * 65, "0." + "1" * 70]),
)
pieces = [*'[]{},:"\\abé', '\\"', "\\\\", "\\n", "\\u0061", "\\ud83d\\ude00", "\\ud83d", "\\x"]
character = st.one_of(st.characters(codec="utf-8"), st.sampled_from(pieces))
string = st.lists(character, max_size=6).map(lambda parts: '"' + "".join(parts) + '"')
key = st.one_of(st.sampled_from(['"a"', '"\\u0061"', '"b"', '":"', '"]"', '"a\\\\"', '""']), string)
scalar = st.one_of(number, string, st.sampled_from(["true", "false", "null", ""]))


def _array(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.tuples(blank, inner, blank).map("".join), max_size=4).map(
        lambda parts: f"[{','.join(parts)}]"
    )


def _object(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    entry = st.tuples(blank, key, blank, st.just(":"), blank, inner).map("".join)
    return st.lists(entry, max_size=4).map(lambda parts: f"{{{','.join(parts)}}}")


document = st.recursive(scalar, lambda inner: st.one_of(_array(inner), _object(inner)), max_leaves=8)


def assert_same_as_reference(body: bytes) -> None:
    try:
        expected = read(body)
    except RefusedError:
        with pytest.raises(Malformed):
            read_json(body)
    else:
        assert repr(read_json(body)) == repr(expected)


@fuzz
@given(document)
def test_the_guard_takes_what_the_slow_reference_takes(text: str) -> None:
    assert_same_as_reference(text.encode("utf-8", "surrogatepass"))


@fuzz
@given(document, st.integers(0, 200), st.binary(max_size=3), st.integers(0, 3))
def test_the_guard_agrees_with_the_reference_on_damaged_bodies(
    text: str, at: int, new: bytes, cut: int
) -> None:
    body = text.encode()
    assert_same_as_reference(body[:at] + new + body[at + cut :])


@settings(max_examples=100, deadline=None)
@given(st.integers(62, 66), st.sampled_from(["[", '{"a":', '["]",', '[["["],']), scalar)
def test_the_guard_agrees_with_the_reference_around_the_depth_limit(
    levels: int, opening: str, text: str
) -> None:
    closing = "}" if opening.startswith("{") else "]"
    assert_same_as_reference((opening * levels + text + closing * levels).encode())


@given(st.recursive(st.text() | st.integers(-(10**63), 10**63), lambda inner: st.lists(inner, max_size=70)))
@settings(max_examples=50, deadline=None)
def test_what_was_written_by_others_is_read_back(value: object) -> None:
    assert read_json(json.dumps(value).encode()) == value
    assert read_json(json.dumps(value, ensure_ascii=False, indent=2).encode()) == value
