"""The cost of checking a value against a schema."""

from __future__ import annotations

import pytest

from farhand.core.tool import Schema
from farhand.tools.schema_admission import (
    COMPARED_NODE,
    LARGEST_PROGRAM,
    ODD_FRACTION,
    SMALLEST_PROGRAM,
    TOO_MUCH,
    CheckCost,
    Subschemas,
    check_cost,
    program_size,
)
from tests.requirement import requirement


def of(schema: Schema) -> CheckCost:
    return check_cost(Subschemas(schema))


@requirement("tools:gate")
def test_members_with_names_count_by_the_worst_of_them() -> None:
    heavy: Schema = {"allOf": [{}, {}, {}]}
    assert of({"properties": {"a": heavy, "b": {}, "c": True}}) == CheckCost(5)


@requirement("tools:gate")
def test_parts_that_may_meet_on_one_value_add_up() -> None:
    assert of({"anyOf": [{}, {}], "items": {}, "contains": {}}) == CheckCost(5)


@requirement("tools:gate")
def test_a_recursion_of_one_grows_with_the_levels_and_a_branching_one_beyond_all_bounds() -> None:
    assert of({"properties": {"next": {"$ref": "#"}}}).steps < 1_000
    branching: Schema = {
        "$defs": {"t": {"anyOf": [{"items": {"$ref": "#/$defs/t"}}, {"items": {"$ref": "#/$defs/t"}}]}},
        "$ref": "#/$defs/t",
    }
    assert of(branching).steps == TOO_MUCH


@requirement("tools:gate")
def test_a_tree_whose_branches_have_names_of_their_own_is_light() -> None:
    assert of({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}).steps < 1_000


@requirement("tools:gate")
def test_what_is_too_much_to_weigh_is_too_much_to_check() -> None:
    wide: Schema = {"properties": {f"p{n}": {"$ref": "#"} for n in range(1_000)}}
    assert of(wide).steps == TOO_MUCH
    long: Schema = {
        "$ref": "#/$defs/d0",
        "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}]} for n in range(400)} | {"d400": {}},
    }
    assert of(long).steps == TOO_MUCH


@requirement("tools:gate")
def test_what_is_compared_as_a_whole_and_odd_fractions_weigh_more() -> None:
    assert of({"enum": ["a", "b"], "const": 3, "multipleOf": 2}) == CheckCost(1)
    assert of({"enum": [{"a": [1]}, "b"]}) == CheckCost(1 + 3 * COMPARED_NODE)
    assert of({"const": {"a": 1}, "enum": "broken"}) == CheckCost(1 + 2 * COMPARED_NODE)
    assert of({"multipleOf": 0.1}) == CheckCost(1 + ODD_FRACTION)


@requirement("tools:gate")
def test_patterns_weigh_as_much_as_they_are_large() -> None:
    small = of({"properties": {"a": {"pattern": "^a+$"}}, "patternProperties": {"^b": {}}})
    assert small.matching == 2 * SMALLEST_PROGRAM
    assert of({"pattern": "[ab]*a[ab]{100}c"}).matching > 4 * SMALLEST_PROGRAM
    assert of({"pattern": 3, "patternProperties": []}).matching == 0


@requirement("tools:gate")
@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(", r"(\p{L}{50}){20}"])
def test_a_pattern_that_is_none_or_too_large_has_no_size(pattern: str) -> None:
    assert program_size(pattern) == TOO_MUCH > LARGEST_PROGRAM
