"""The subschemas of a schema and their references."""

from __future__ import annotations

import pytest

from farhand.core.tool import Schema
from farhand.tools.schema_admission import Subschemas, target_of
from tests.requirement import requirement

LEAF: Schema = {"type": "string"}


@requirement("tools:gate")
@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#", "root"),
        ("#/$defs/a", {"x": 1}),
        ("#/$defs/a~1b", True),
        ("#/$defs/a~0b", False),
        ("#/$defs/with%20space", {"y": 1}),
        ("#/anyOf/1", {"z": 1}),
        ("#/anyOf/9", None),
        ("#/anyOf/01", None),
        ("#/anyOf/one", None),
        ("#/$defs/none", None),
        ("#/$defs/a/x", None),
        ("#/$defs/a/x/y", None),
        ("#name", None),
        ("http://127.0.0.1/x#/$defs/a", None),
        ("other.json", None),
        ("", None),
    ],
)
def test_a_reference_leads_to_a_part_or_nowhere(reference: str, target: object) -> None:
    schema: Schema = {
        "$defs": {"a": {"x": 1}, "a/b": True, "a~b": False, "with space": {"y": 1}},
        "anyOf": [{}, {"z": 1}],
    }
    assert target_of(schema, reference) == (schema if target == "root" else target)


@requirement("tools:gate")
def test_parts_are_told_apart_by_what_they_apply_to() -> None:
    schema: Schema = {
        "allOf": [{"const": 1}, True],
        "not": {"const": 2},
        "dependentSchemas": {"a": {"const": 3}},
        "$ref": "#/$defs/d",
        "items": {"const": 4},
        "prefixItems": [{"const": 5}],
        "patternProperties": {"^x": {"const": 6}},
        "properties": {"p": {"const": 7}, "broken": 3},
        "anyOf": "no list",
        "oneOf": [3],
        "if": None,
        "$defs": {"d": {"const": 8}},
    }
    parts = Subschemas(schema)
    assert parts.on_the_same_value(schema) == [
        {"const": 2},
        {"const": 1},
        True,
        {"const": 3},
        {"const": 8},
    ]
    assert parts.on_members(schema) == [{"const": 4}, {"const": 5}, {"const": 6}]
    assert parts.on_named_members(schema) == [{"const": 7}]
    assert parts.on_the_same_value(True) == []
    assert parts.on_the_same_value({"$ref": "#/nowhere"}) == []
    assert {"const": 8} in parts.all()


@requirement("tools:gate")
def test_every_part_is_found_once_however_often_it_is_reached() -> None:
    schema: Schema = {
        "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/x"}},
        "$defs": {"x": {}},
    }
    assert len(Subschemas(schema).all()) == 4


@requirement("tools:gate")
def test_patterns_are_found_wherever_they_stand() -> None:
    schema: Schema = {
        "properties": {"a": {"pattern": "^a"}},
        "patternProperties": {"^b": {}},
        "$defs": {"unused": {"pattern": 3}},
        "not": {"patternProperties": "broken"},
    }
    assert sorted(map(str, Subschemas(schema).patterns())) == ["3", "^a", "^b"]


@requirement("tools:gate")
def test_depth_counts_what_is_written_and_follows_no_reference() -> None:
    assert Subschemas({}).depth() == 1
    assert Subschemas({"properties": {"a": {"items": LEAF}}}).depth() == 3
    assert Subschemas({"properties": {"a": {"$ref": "#"}}}).depth() == 2
    assert Subschemas({"$defs": {"a": {"not": {"not": True}}}}).depth() == 4


@requirement("tools:gate")
def test_size_counts_a_part_as_often_as_it_is_reached() -> None:
    doubled: Schema = {
        "$ref": "#/$defs/d0",
        "$defs": {
            **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)},
            "d30": LEAF,
        },
    }
    assert Subschemas(doubled).size(at_most=10_000) > 10_000
    assert Subschemas({"properties": {"a": LEAF, "b": True}}).size(at_most=10) == 3


@requirement("tools:gate")
def test_a_recursion_ends_the_count() -> None:
    assert Subschemas({"properties": {"kids": {"items": {"$ref": "#"}}}}).size(at_most=100) == 4


@requirement("tools:gate")
def test_a_chain_without_end_is_larger_than_anything() -> None:
    chain: Schema = {
        "$ref": "#/$defs/d0",
        "$defs": {**{f"d{n}": {"items": {"$ref": f"#/$defs/d{n + 1}"}} for n in range(400)}, "d400": LEAF},
    }
    assert Subschemas(chain).size(at_most=10_000) > 10_000


@requirement("tools:gate")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"$defs": {"a": {"anyOf": [LEAF, {"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}},
        {"properties": {"x": {"allOf": [{"$ref": "#/properties/x"}]}}},
        {
            "$ref": "#/$defs/d0",
            "$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(400)} | {"d400": LEAF},
        },
    ],
)
def test_a_loop_that_never_goes_into_the_value_is_noticed(schema: Schema) -> None:
    assert Subschemas(schema).has_idle_loop()


@requirement("tools:gate")
@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}},
        {"$defs": {"a": LEAF}, "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}, True]},
    ],
)
def test_a_loop_through_the_value_is_none(schema: Schema) -> None:
    assert not Subschemas(schema).has_idle_loop()
