"""What a person is shown of an input: what the model wrote, and the defaults of the schema for the rest."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from farhand import tool
from farhand.core.tool import Schema
from farhand.tools.defaults import MOST_RULES, CompleteInput, complete_input
from farhand.tools.schema_admission import admit_schema
from tests.requirement import requirement

pytestmark = requirement("approval:defaults")

TEXT: Schema = {"type": "string"}
PARCEL: Schema = {
    "type": "object",
    "properties": {"weight": {"type": "integer"}, "unit": {**TEXT, "default": "kg"}},
    "required": ["weight"],
}


def of(properties: Schema, input: dict[str, object], **more: object) -> CompleteInput:
    return complete_input({"type": "object", "properties": properties, **more}, input)


def test_a_member_that_is_missing_has_its_default_and_one_that_is_there_stays() -> None:
    rules: Schema = {"to": TEXT, "urgent": {"type": "boolean", "default": True}, "copies": {"default": 0}}
    assert of(rules, {"to": "Ada"}) == CompleteInput(
        {"to": "Ada", "urgent": True, "copies": 0}, (("urgent",), ("copies",)), ()
    )
    assert of(rules, {"to": "Ada", "urgent": False, "copies": None}) == CompleteInput(
        {"to": "Ada", "urgent": False, "copies": None}, (), ()
    )


def test_parameters_without_a_value_are_named() -> None:
    rules: Schema = {"to": TEXT, "note": {"anyOf": [TEXT, {"type": "null"}], "default": None}, "cc": TEXT}
    assert of(rules, {"to": "Ada"}) == CompleteInput({"to": "Ada"}, (), ("note", "cc"))
    # only parameters: what is inside of one is the tool's own
    assert of({"at": {"properties": {"note": TEXT}}}, {"at": {}}).left_out == ()


def test_two_rules_of_an_input_add_up() -> None:
    named: Schema = {"properties": {"note": TEXT, "cc": TEXT}}
    given: Schema = {"properties": {"note": {"default": "none"}}}
    assert complete_input({"allOf": [named, given]}, {}) == CompleteInput(
        {"note": "none"}, (("note",),), ("cc",)
    )


@pytest.mark.parametrize(
    "rule",
    [
        {"$ref": "#/$defs/Parcel"},
        {"$ref": "#/$defs/Parcel", "description": "What is sent."},
        {"$ref": "#/$defs/Alias"},
        {"allOf": [{"$ref": "#/$defs/Parcel"}]},
        {"anyOf": [{"$ref": "#/$defs/Parcel"}, {"type": "null"}]},
        {"oneOf": [TEXT, {"$ref": "#/$defs/Parcel"}]},
        {"oneOf": [TEXT, {**PARCEL, "type": ["object", "null"]}]},
        {"oneOf": [TEXT, {key: rule for key, rule in PARCEL.items() if key != "type"}]},
    ],
)
def test_objects_inside_have_their_defaults_wherever_their_rule_stands(rule: Schema) -> None:
    defs = {"Parcel": PARCEL, "Alias": {"$ref": "#/$defs/Parcel"}}
    assert of({"parcel": rule}, {"parcel": {"weight": 3}}, **{"$defs": defs}) == CompleteInput(
        {"parcel": {"weight": 3, "unit": "kg"}}, (("parcel", "unit"),), ()
    )


def test_what_a_reference_leads_to_may_have_the_default() -> None:
    defs = {"Unit": {**TEXT, "default": "kg"}}
    assert of({"unit": {"$ref": "#/$defs/Unit"}}, {}, **{"$defs": defs}).input == {"unit": "kg"}
    assert of({"unit": {"$ref": "https://elsewhere.example/unit"}}, {}).input == {}


def test_items_and_other_members_have_theirs_and_each_is_named_once() -> None:
    parcels: Schema = {"type": "array", "items": PARCEL}
    assert of(
        {"parcels": parcels}, {"parcels": [{"weight": 1}, {"weight": 2, "unit": "lb"}, {"weight": 3}]}
    ) == (
        CompleteInput(
            {
                "parcels": [
                    {"weight": 1, "unit": "kg"},
                    {"weight": 2, "unit": "lb"},
                    {"weight": 3, "unit": "kg"},
                ]
            },
            (("parcels", "unit"),),
            (),
        )
    )
    by_name: Schema = {"type": "object", "additionalProperties": PARCEL}
    assert of({"by_name": by_name}, {"by_name": {"a": {"weight": 1}}}).input == {
        "by_name": {"a": {"weight": 1, "unit": "kg"}}
    }
    pair: Schema = {"type": "array", "prefixItems": [TEXT, PARCEL], "items": PARCEL}
    assert of({"pair": pair}, {"pair": ["a", {"weight": 1}, {"weight": 2}]}).input == {
        "pair": ["a", {"weight": 1, "unit": "kg"}, {"weight": 2, "unit": "kg"}]
    }
    assert of({"pair": pair}, {"pair": ["a"]}).input == {"pair": ["a"]}


def test_of_alternatives_the_only_one_that_fits_counts() -> None:
    by_post = {
        "type": "object",
        "properties": {"kind": {"const": "post"}, "express": {"default": True}},
        "required": ["kind"],
    }
    by_hand = {
        "type": "object",
        "properties": {"kind": {"enum": ["hand", "bike"]}, "bell": {"default": "twice"}},
        "required": ["kind"],
        "additionalProperties": False,
    }
    rule: Schema = {"how": {"anyOf": [by_post, by_hand]}}
    assert of(rule, {"how": {"kind": "post"}}).input == {"how": {"kind": "post", "express": True}}
    assert of(rule, {"how": {"kind": "bike"}}).input == {"how": {"kind": "bike", "bell": "twice"}}
    # both, none, and one with a member that the other does not take
    open_both: Schema = {"how": {"anyOf": [PARCEL, {**PARCEL, "properties": {"weight": {}}}]}}
    assert of(open_both, {"how": {"weight": 1}}).defaults == ()
    assert of(rule, {"how": {"kind": "boat"}}).defaults == ()
    assert of(rule, {"how": {"kind": "bike", "more": 1}}).defaults == ()
    assert of(rule, {"how": {}}).defaults == ()
    assert of(
        {"how": {"anyOf": [TEXT, {"type": "array", "items": PARCEL}]}}, {"how": [{"weight": 1}]}
    ).input == {"how": [{"weight": 1, "unit": "kg"}]}


def test_a_rule_that_leads_to_itself_ends() -> None:
    loop: Schema = {"$ref": "#/$defs/Loop", "properties": {"a": {"default": 1}}}
    assert of({"it": {"$ref": "#/$defs/Loop"}}, {"it": {}}, **{"$defs": {"Loop": loop}}).input == {
        "it": {"a": 1}
    }
    wide: Schema = {"anyOf": [{"$ref": "#/$defs/Wide"}], "properties": {"a": {"default": 1}}}
    assert of({"it": {"$ref": "#/$defs/Wide"}}, {"it": {}}, **{"$defs": {"Wide": wide}}).input == {
        "it": {"a": 1}
    }
    assert MOST_RULES < 100


def test_nothing_of_the_input_or_the_schema_is_changed() -> None:
    schema: Schema = {"type": "object", "properties": {"parcel": PARCEL, "tags": {"default": ["a"]}}}
    input: dict[str, object] = {"parcel": {"weight": 1}}
    before = copy.deepcopy((schema, input))
    complete_input(schema, input)
    assert (schema, input) == before


@pytest.mark.parametrize("rule", [True, {"properties": 1, "required": 1}, {"items": True, "prefixItems": {}}])
def test_rules_without_members_add_nothing(rule: object) -> None:
    for value in ({"a": 1}, [1], "text", None):
        assert complete_input({"properties": {"it": rule}}, {"it": value}).input == {"it": value}


class Place(BaseModel):
    town: str
    country: str = "UK"
    tags: list[str] = Field(default_factory=list)


@dataclass
class Visit:
    place: Place
    minutes: int = 30


class ByPost(BaseModel):
    kind: Literal["post"] = "post"
    express: bool = False


class ByHand(BaseModel):
    kind: Literal["hand"]
    tip: int = 2


def test_what_is_shown_is_what_a_declared_tool_runs_with() -> None:
    @tool
    def plan(
        visits: list[Visit],
        how: ByPost | ByHand,
        back: Place | None = None,
        start: Place = Place(town="Ayr"),  # noqa: B008
        urgent: bool = True,
    ) -> str:
        """Plan visits.

        Args:
            visits: Where to.
            how: How.
            back: The end.
            start: The beginning.
            urgent: Soon.
        """
        return repr((visits, how, back, start, urgent))

    input: dict[str, object] = {
        "visits": [{"place": {"town": "Bath"}}],
        "how": {"kind": "hand"},
        "back": {"town": "Cork"},
    }
    whole = complete_input(plan.tool.input_schema, input)
    assert plan.tool.applies_defaults
    assert whole.defaults == (
        ("visits", "place", "country"),
        ("visits", "minutes"),
        ("how", "tip"),
        ("back", "country"),
        ("start",),
        ("urgent",),
    )
    short, long = plan.bind(input), plan.bind(whole.input)
    assert isinstance(short, dict)
    assert isinstance(long, dict)
    # Callable[..., str]: the arguments are those that a call would bind
    run: Callable[..., str] = plan
    assert run(**short) == run(**long)


@pytest.mark.parametrize("schema", [{"type": "object", "properties": {"a": {"default": 1}}}])
def test_schemas_from_outside_are_read_in_the_same_way(schema: Schema) -> None:
    assert complete_input(admit_schema(schema, "The schema"), {}).input == {"a": 1}
