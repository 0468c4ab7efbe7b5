"""A mismatch is one sentence that a reader can act on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from farhand.core.tool import Schema
from farhand.tools.check import describe_refusal, mismatch
from tests.requirement import requirement

pytestmark = requirement("tools:bad-input")

PLACE: Schema = {
    "type": "object",
    "properties": {"kind": {"const": "place"}, "city": {"type": "string"}},
    "required": ["kind", "city"],
    "unevaluatedProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "value", "sentence"),
    [
        ({"minimum": 1}, 0, "the value must be at least 1"),
        ({"maximum": 1}, 2, "the value must be at most 1"),
        ({"exclusiveMinimum": 1}, 1, "the value must be more than 1"),
        ({"exclusiveMaximum": 1}, 1, "the value must be less than 1"),
        ({"multipleOf": 3}, 4, "the value must be a multiple of 3"),
        ({"minLength": 2}, "a", "the value must have at least 2 character(s)"),
        ({"maxLength": 2}, "abc", "the value must have at most 2 character(s)"),
        ({"minItems": 1}, [], "the value must have at least 1 item(s)"),
        ({"maxItems": 1}, [1, 2], "the value must have at most 1 item(s)"),
        ({"minProperties": 1}, {}, "the value must have at least 1 member(s)"),
        ({"maxProperties": 0}, {"a": 1}, "the value must have at most 0 member(s)"),
        ({"uniqueItems": True}, [1, 1], "the value must not contain the same item twice"),
        ({"pattern": "^a"}, "b", "the value must match the pattern ^a"),
        ({"contains": {"type": "string"}}, [1], "the value does not satisfy `contains`"),
        ({"not": {"type": "string"}}, "a", "the value does not satisfy `not`"),
        ({"enum": ["C", "F"]}, "K", 'the value must be one of "C", "F", got "K"'),
        ({"const": True}, 1.5, "the value must be true, got 1.5"),
        ({"type": ["integer", "string"]}, True, "the value must be an integer or a string, got a boolean"),
        ({"type": "integer"}, 1.5, "the value must be an integer, got a number"),
        ({"type": "array"}, {}, "the value must be an array, got an object"),
        (PLACE, {"kind": "place"}, "`city` is missing"),
        (PLACE, {"kind": "trip", "city": ""}, '`kind` must be "place", got "trip"'),
        (PLACE, {"kind": "place", "city": "", "zip": 1}, "`zip` is not expected"),
        ({"items": {"type": "string"}}, ["a", 1], "`[1]` must be a string, got an integer"),
        ({"properties": {"a": {"items": PLACE}}}, {"a": [{"kind": "place"}]}, "`a[0].city` is missing"),
        ({"prefixItems": [{}], "items": False}, [1, 2], "`[1]` is not expected"),
    ],
)
def test_each_rule_has_its_words(schema: Schema, value: object, sentence: str) -> None:
    assert mismatch(schema, value) == sentence


@pytest.mark.parametrize(
    ("choices", "value", "sentence"),
    [
        ([{"type": "integer"}, {"type": "null"}], "x", "the value must be an integer or null, got a string"),
        (
            [{"type": "integer"}, {"type": ["null", "integer"]}],
            "x",
            "the value must be an integer or null, got a string",
        ),
        ([{"type": "integer", "minimum": 1}, {"type": "null"}], 0, "the value must be at least 1"),
        ([PLACE, {"type": "array"}], {"kind": "place"}, "`city` is missing"),
        ([PLACE, {"type": "array"}], 3, "the value must be an object or an array, got an integer"),
        (
            [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}],
            ["x"],
            "`[0]` must be an integer, got a string",
        ),
    ],
)
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_of_several_choices_the_nearest_one_speaks(
    keyword: str, choices: list[Schema], value: object, sentence: str
) -> None:
    assert mismatch({keyword: choices}, value) == sentence


def test_a_value_may_fit_too_well() -> None:
    assert mismatch({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1) == (
        "the value matches more than one of the alternatives in its schema"
    )


@given(st.text(min_size=1) | st.lists(st.integers() | st.text(), min_size=1), st.text(min_size=1))
def test_a_sentence_never_repeats_a_large_value(part: str | list[object], part_of_key: str) -> None:
    value, key = part * 1_000, part_of_key * 500
    schema: Schema = {"properties": {key: {"enum": ["a"], "maxLength": 1}}, "additionalProperties": False}
    sentence = mismatch(schema, {key: value})
    assert sentence is not None
    assert len(sentence) < 400
    assert "\n" not in sentence


def test_a_refusal_by_a_type_names_the_place_and_not_the_value() -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(dict[str, list[int]]).validate_python({"a": [1, "secret"]})
    assert describe_refusal(refused.value).startswith("`a[1]` was refused: Input should be a valid integer")
    assert "secret" not in describe_refusal(refused.value)
