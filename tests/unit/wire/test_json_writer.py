"""Everything that is sent is JSON, whatever the model streamed."""

from __future__ import annotations

import json

import msgspec
import pytest

from farhand.wire.json_reader import read_json
from farhand.wire.json_writer import encode


class Delta(msgspec.Struct, rename="camel"):
    text_delta: str
    input: msgspec.Raw = msgspec.Raw(b"null")


def test_json_leaves_without_blanks_and_line_breaks() -> None:
    assert encode({"a": [1, 1.0, None], "b": "é\n\u2028"}) == '{"a":[1,1.0,null],"b":"é\\n\u2028"}'.encode()


def test_integers_of_any_length_are_written_as_they_are() -> None:
    assert encode(int("7" * 64)) == b"7" * 64


def test_half_a_character_is_escaped_and_the_reader_joins_both_halves() -> None:
    halves = [Delta("\ud83d", msgspec.Raw(b'{"a": "\xc3\xa9"}')), Delta("\ude00")]
    assert encode(halves[0]) == b'{"textDelta":"\\ud83d","input":{"a":"\\u00e9"}}'
    joined = "".join(json.loads(encode(half))["textDelta"] for half in halves)
    assert joined.encode("utf-16", "surrogatepass").decode("utf-16") == "\U0001f600"


def test_numbers_as_keys_become_text_on_both_ways() -> None:
    assert encode({1: "a"}) == b'{"1":"a"}'
    assert encode({1: "\ud83d"}) == b'{"1":"\\ud83d"}'


def test_what_json_has_no_form_for_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        encode(object())
    with pytest.raises(TypeError, match="object cannot be encoded as JSON"):
        encode(["\ud83d", object()])


def test_what_was_written_passes_the_guard() -> None:
    value = {"a": [1, {"b": '"\\\n'}], "c": -0.5}
    assert read_json(encode(value)) == value
