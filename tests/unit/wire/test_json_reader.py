"""Every hostile body is refused with a reason, and nothing else is."""

from __future__ import annotations

import json

import msgspec
import pytest

from farhand.errors import Malformed
from farhand.wire import json_reader
from farhand.wire.json_reader import MAX_NODES, read_as, read_json
from tests.requirement import requirement


class Pet(msgspec.Struct):
    name: str
    legs: int = 4


class StrictPet(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class Box(msgspec.Struct):
    content: object


def as_list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def refusal(body: bytes) -> str:
    with pytest.raises(Malformed) as caught:
        read_json(body)
    return caught.value.message


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"{}", {}),
        (b" [1, 1.0, -0.5e3, true, false, null] ", [1, 1.0, -500.0, True, False, None]),
        (b'{"a":{"a":{"a":[]}},"b":{"a":1}}', {"a": {"a": {"a": []}}, "b": {"a": 1}}),
        (b'"\\ud83d\\ude00 \\u0000 \\" \\\\"', '\U0001f600 \0 " \\'),
        (b'{"a\\\\":1,"a\\"":2,"a":3}', {"a\\": 1, 'a"': 2, "a": 3}),
        ('"ünïcode"'.encode(), "ünïcode"),
        (b"1" * 64, int("1" * 64)),
        (b"-" + b"1" * 64, -int("1" * 64)),
        (b"0." + b"1" * 100, 0.1111111111111111),
        (b"1e-999", 0.0),
        (b'"' + b"1" * 100 + b'"', "1" * 100),
        (b'["' + b"[{" * 100 + b'"]', ["[{" * 100]),
    ],
)
def test_sound_json_is_read_as_it_stands(body: bytes, value: object) -> None:
    assert read_json(body) == value


def test_integers_and_floats_stay_apart() -> None:
    assert repr(read_json(b"[1, 1.0, 1e2, 123456789012345678901234567890]")) == (
        "[1, 1.0, 100.0, 123456789012345678901234567890]"
    )


@requirement("attack:hostile-json")
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"]":', b"}]")])
def test_sixty_four_levels_pass_and_one_more_is_refused(opening: bytes, closing: bytes) -> None:
    levels = 64 // sum(opening.count(bracket) for bracket in (b"[", b"{"))
    assert read_json(opening * levels + b"0" + closing * levels)
    assert "nested deeper than 64" in refusal(b"[" + opening * levels + b"0" + closing * levels + b"]")


@requirement("attack:hostile-json")
@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 900 + b"]" * 900])
def test_a_bottomless_body_is_refused_not_a_stack_overflow(body: bytes) -> None:
    assert "nested deeper" in refusal(body)


@requirement("attack:hostile-json")
def test_brackets_inside_strings_hide_no_depth() -> None:
    assert "nested deeper" in refusal(b'["]",' * 65 + b"0" + b',"["]' * 65)
    assert "nested deeper" in refusal(b'["\\"]",' * 65 + b"0" + b',"\\\\","["]' * 65)
    assert read_json(b'["[",' * 64 + b"0" + b"]" * 64)


@pytest.mark.parametrize("node", [b"0", b'"a,[b"', b"[]", b"{}", b'"\\","'])
def test_a_hundred_thousand_nodes_pass_and_one_more_is_refused(node: bytes) -> None:
    most = b"[" + b",".join([node] * (MAX_NODES - 1)) + b"]"
    assert read_json(most)
    assert "more than 100000 values" in refusal(most[:-1] + b"," + node + b"]")


def test_nodes_in_objects_are_counted_without_their_keys() -> None:
    entries = b",".join(b'"%d":0' % number for number in range(MAX_NODES - 1))
    assert read_json(b"{" + entries + b"}")
    assert "more than" in refusal(b"{" + entries + b',"x":0}')


@pytest.mark.parametrize("node", [b'""', b"[]", b"0"])
def test_a_body_of_a_million_nodes_is_refused(node: bytes) -> None:
    assert "more than" in refusal(b"[" + b",".join([node] * 1_000_000) + b"]")


def test_a_long_text_full_of_commas_is_one_node() -> None:
    text = ",[{" * 200_000
    assert read_json(json.dumps(text).encode()) == text


@requirement("attack:hostile-json")
@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"a":1}',
        b'{"a":1,"\\u0061":2}',
        b'{ "a" : "\\"" , "b":":", "a"\n:2}',
        b'[[{"x":{"a":{},"b":"a","a":[]}}]]',
    ],
)
def test_a_key_that_stands_twice_is_refused_and_named(body: bytes) -> None:
    assert refusal(body) == 'The key "a" is duplicated in an object.'


@requirement("attack:hostile-json")
@pytest.mark.parametrize("levels", [1, 70, *range(850, 1001)])
def test_a_double_key_over_a_deep_value_is_refused(levels: int) -> None:
    assert refusal(b'{"a":' + b"[" * levels + b"]" * levels + b',"a":1}')


@pytest.mark.parametrize("body", [b"1e999", b"[-1e999]", b"1" + b"0" * 400 + b".0", b'{"a":1.8e308}'])
def test_a_number_that_overflows_is_refused(body: bytes) -> None:
    assert refusal(body) == "A number is too large."


@pytest.mark.parametrize("token", [b"NaN", b"Infinity", b"-Infinity"])
def test_what_is_no_number_is_refused(token: bytes) -> None:
    assert refusal(b'{"a":' + token + b"}").startswith("NaN and Infinity are not JSON (byte ")


@pytest.mark.parametrize("digits", [65, 300, 4_000, 100_000])
def test_an_integer_of_more_than_sixty_four_digits_is_refused(digits: int) -> None:
    assert refusal(b'{"a":"x","b":[-' + b"7" * digits + b"]}") == (
        f"An integer has {digits} digits; the maximum is 64."
    )


def test_long_digits_of_fractions_exponents_and_texts_are_no_integers() -> None:
    body = b'["' + b"1" * 70 + b'", 0.' + b"2" * 70 + b", 1e-" + b"0" * 70 + b"1, 1E+" + b"0" * 70 + b"]"
    assert read_json(body) == ["1" * 70, float("0." + "2" * 70), 0.1, 1.0]


@pytest.mark.parametrize("number", [b"1.1e+300", b"1E0300", b"-5e-324", b"11e289", b"1e200"])
def test_many_numbers_that_take_long_to_read_are_refused_before_they_are_read(
    number: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = b"[" + b",".join([number] * 1_000) + b"]"
    assert len(as_list(read_json(few))) == 1_000
    # reading them would take most of a second
    monkeypatch.delattr(json_reader, "_decode")
    assert "exponent" in refusal(b"[" + b",".join([number] * 90_000) + b"]")


def test_words_that_look_like_large_exponents_are_words() -> None:
    body = b'["' + b'1e300 \\" 5e-324,' * 10_000 + b'"]'
    assert len(body) > 6_000
    read_json(body)
    small = b"[" + b",".join([b"1.5e-199"] * 5_000) + b"]"
    assert len(as_list(read_json(small))) == 5_000


def test_a_body_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A typed body is made of the plain objects: reading the bytes again would cost as much as at first."""
    decode, read = msgspec.json.decode, []

    def counted(body: bytes) -> object:
        read.append(body)
        return decode(body)

    monkeypatch.setattr(json_reader, "_decode", counted)
    monkeypatch.setattr(msgspec.json, "decode", counted)
    body = b'{"content":[{"k":1.5,"s":"abc"}]}'
    assert read_as(body, Box) == Box([{"k": 1.5, "s": "abc"}])
    assert read == [body]


@pytest.mark.parametrize(
    "body", [b'"\\ud800"', b'"\\udc00"', b'{"\\uDBFF":1}', b'"\\ud800\\ud800"', b'"\\ud800 and on"']
)
def test_half_a_surrogate_pair_is_refused(body: bytes) -> None:
    assert refusal(body) == "A string contains half of a surrogate pair."


@pytest.mark.parametrize("text", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"])
def test_bytes_that_are_no_utf_8_are_refused_with_their_place(text: bytes) -> None:
    assert refusal(b'{"a":"' + text + b'"}') == "The body is not valid UTF-8 (byte 6)."


def test_a_byte_order_mark_is_refused() -> None:
    assert "byte order mark" in refusal(b"\xef\xbb\xbf{}")


@pytest.mark.parametrize("body", [b"", b"  \r\n\t"])
def test_an_empty_body_is_refused(body: bytes) -> None:
    assert refusal(body) == "The body is empty."


@pytest.mark.parametrize("body", [b'{"a":', b"[1, 2", b'"abc', b"tru"])
def test_a_body_that_was_cut_is_refused(body: bytes) -> None:
    assert refusal(body) == "The JSON is incomplete."


@pytest.mark.parametrize(
    ("body", "place"),
    [(b"{} {}", 4), (b"[1,]", 3), (b"{'a':1}", 1), (b"01", 1), (b'"a\nb"', 2), (b"\0", 0)],
)
def test_what_is_no_json_is_refused_with_its_place(body: bytes, place: int) -> None:
    assert f"(byte {place})" in refusal(body)


@pytest.mark.parametrize(
    "field", [b'"\xff"', b'"\\ud800"', b"1e999", b"1" * 65, b'{"a":1,"a":2}', b"[" * 70 + b"]" * 70]
)
def test_fields_that_the_shape_does_not_name_are_guarded_too(field: bytes) -> None:
    with pytest.raises(Malformed):
        read_as(b'{"name":"Rex","other":' + field + b"}", Pet)
    with pytest.raises(Malformed):
        read_as(b'{"content":' + field + b"}", Box)


def test_a_typed_body_ignores_other_fields() -> None:
    assert read_as(b'{"name":"Rex","colour":"red"}', Pet) == Pet("Rex")
    assert read_as(b'{"content": [1, 2] }', Box).content == [1, 2]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{}", "Object missing required field `name`."),
        (b'{"name":1}', "Expected `str`, got `int` - at `$.name`."),
        (b'{"name":"Rex","legs":"4"}', "Expected `int`, got `str` - at `$.legs`."),
        (b"[]", "Expected `object`, got `array`."),
    ],
)
def test_a_body_of_another_shape_is_refused_with_the_place(body: bytes, reason: str) -> None:
    with pytest.raises(Malformed) as caught:
        read_as(body, Pet)
    assert caught.value.message == reason
    assert caught.value.__cause__ is None


def test_a_shape_may_forbid_other_fields() -> None:
    with pytest.raises(Malformed, match="unknown field"):
        read_as(b'{"name":"Rex","colour":"red"}', StrictPet)
