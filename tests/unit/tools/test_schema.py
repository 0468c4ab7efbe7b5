"""A signature becomes JSON Schema, and JSON becomes the arguments of that signature."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Optional
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from pydantic import BaseModel, Field, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

from farhand.core.tool import Schema
from farhand.errors import BadTool
from farhand.tools.check import mismatch
from farhand.tools.schema import ToolSignature, read_signature
from tests.requirement import requirement


class Unit(Enum):
    C = "celsius"
    F = "fahrenheit"


class Place(BaseModel):
    city: str
    title: str = "home"


@dataclasses.dataclass
class Span:
    first: date
    days: int = 1


class Options(TypedDict):
    verbose: bool


class Tree(BaseModel):
    children: list[Tree] = []


class Alone:
    """A class that says nothing about its fields."""


class Odd:
    """A type that writes its own schema."""

    schema: ClassVar[Schema]

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: Callable[[object], CoreSchema]
    ) -> CoreSchema:
        return handler(str)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        return cls.schema


class LooksAround(Odd):
    schema: ClassVar[Schema] = {"type": "string", "pattern": "(?=a)"}


class Remote(Odd):
    schema: ClassVar[Schema] = {"$ref": "https://example.com/remote.json"}


def with_hint(hint: object, *defaults: object, returns: object = None) -> ToolSignature:
    """The shape of a function whose only parameter, `x`, has this hint."""

    def function(x: object) -> None:
        """Do it.

        Args:
            x: What to do it to.
        """

    # set afterwards, since a table of hints cannot be written as source text
    function.__annotations__ = {"x": hint, "return": returns}
    function.__defaults__ = defaults
    return read_signature(function, "f")


def get_weather(
    location: str,
    days: int = 3,
    unit: Unit = Unit.C,
    *,
    detail: Literal["low", "high"] = "low",
    near: Optional[Place] = None,  # noqa: UP045
) -> dict[str, object]:
    """Tell the weather.

    Args:
        location: City or postcode.
        days: How far to look ahead.
        unit: Of the temperature.
        detail: How much to tell.
        near: Somewhere close by.
    """
    return {}


@requirement("tools:schema")
def test_a_signature_becomes_an_object_schema_that_allows_nothing_else() -> None:
    shape = read_signature(get_weather, "get_weather")
    assert shape.description == "Tell the weather."
    assert shape.arguments.schema == snapshot(
        {
            "$defs": {
                "Place": {
                    "properties": {
                        "city": {"type": "string"},
                        "title": {"default": "home", "type": "string"},
                    },
                    "required": ["city"],
                    "title": "Place",
                    "type": "object",
                },
                "Unit": {"enum": ["celsius", "fahrenheit"], "title": "Unit", "type": "string"},
            },
            "additionalProperties": False,
            "properties": {
                "location": {"description": "City or postcode.", "type": "string"},
                "days": {"default": 3, "description": "How far to look ahead.", "type": "integer"},
                "unit": {"$ref": "#/$defs/Unit", "default": "celsius", "description": "Of the temperature."},
                "detail": {
                    "default": "low",
                    "description": "How much to tell.",
                    "enum": ["low", "high"],
                    "type": "string",
                },
                "near": {
                    "anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}],
                    "default": None,
                    "description": "Somewhere close by.",
                },
            },
            "required": ["location"],
            "type": "object",
        }
    )


@requirement("tools:schema")
def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def now() -> str:
        """Say what time it is."""
        return ""

    assert read_signature(now, "now").arguments.schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


@requirement("tools:schema")
@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (int, {"type": "integer"}),
        (bool, {"type": "boolean"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (date, {"type": "string", "format": "date"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (Path, {"type": "string", "format": "path"}),
        (Decimal, {"anyOf": [{"type": "number"}, {"type": "string"}]}),
        (Annotated[int, Field(ge=1)], {"type": "integer", "minimum": 1}),
        (Any, {}),
    ],
)
def test_hints_become_schemas(hint: object, schema: Schema) -> None:
    properties = with_hint(hint).arguments.schema["properties"]
    assert properties == {"x": {**schema, "description": "What to do it to."}}


@requirement("tools:schema")
@pytest.mark.parametrize("hint", [Place, Span, Options, Tree, list[Place]])
def test_nested_types_are_local_definitions(hint: object) -> None:
    schema = with_hint(hint).arguments.schema
    assert "$defs" in schema
    references = [part.split('"')[0] for part in json.dumps(schema).split('"$ref": "')[1:]]
    assert references
    assert all(reference.startswith("#/$defs/") for reference in references)


@requirement("tools:schema")
@pytest.mark.parametrize("default", [math.inf, math.nan, object()])
def test_a_default_that_json_cannot_hold_makes_the_parameter_optional_without_being_shown(
    default: object,
) -> None:
    schema = with_hint(float, default).arguments.schema
    assert schema["properties"] == {"x": {"type": "number", "description": "What to do it to."}}
    assert "required" not in schema


@requirement("tools:schema")
def test_names_that_pydantic_keeps_for_itself_are_good_parameters() -> None:
    def odd(_private: int, json: str, model_config: bool, self: float = 1.0) -> None:
        """Use odd names.

        Args:
            _private: One.
            json: Two.
            model_config: Three.
            self: Four.
        """

    arguments = read_signature(odd, "odd").arguments
    assert list(arguments.schema["properties"]) == ["_private", "json", "model_config", "self"]  # type: ignore[call-overload]
    given_input = {"_private": 1, "json": "x", "model_config": True}
    assert arguments.bind(msgspec.json.encode(given_input)) == given_input


@requirement("tools:schema")
def test_an_alias_in_a_hint_does_not_rename_the_parameter() -> None:
    with pytest.warns(UserWarning, match="which has no effect"):
        arguments = with_hint(Annotated[int, Field(alias="renamed")]).arguments
    assert arguments.bind(b'{"x": 1}') == {"x": 1}


@requirement("tools:schema")
def test_a_parameter_may_be_described_in_its_hint() -> None:
    def look(at: Annotated[str, Field(description="A star.")]) -> None:
        """Look."""

    properties = read_signature(look, "look").arguments.schema["properties"]
    assert properties == {"at": {"type": "string", "description": "A star."}}


@requirement("tools:schema")
@pytest.mark.parametrize(
    ("returns", "schema", "text"),
    [
        (str, {"type": "string"}, True),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        (Literal["yes", "no"], {"type": "string", "enum": ["yes", "no"]}, True),
        (Unit, {"type": "string", "enum": ["celsius", "fahrenheit"]}, True),
        (str | int, {"anyOf": [{"type": "string"}, {"type": "integer"}]}, False),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, False),
        (bool, {"type": "boolean"}, False),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, False),
        (list[int], {"type": "array", "items": {"type": "integer"}}, False),
        (dict, None, False),
        (dict[str, object], None, False),
        (object, None, False),
        (Any, None, False),
        (None, None, False),
    ],
)
def test_the_return_annotation_becomes_the_output_schema_where_it_says_something(
    returns: object, schema: Schema | None, text: bool
) -> None:
    shape = with_hint(int, returns=returns)
    assert shape.output_schema == schema
    assert shape.returns_text is text


@pytest.mark.parametrize(("returns", "nothing"), [(None, True), (str | None, False), (object, False)])
def test_only_a_declared_return_type_of_none_says_that_nothing_comes_back(
    returns: object, nothing: bool
) -> None:
    assert with_hint(int, returns=returns).returns_nothing is nothing


@requirement("tools:schema")
def test_without_a_return_annotation_there_is_no_output_schema() -> None:
    def free(x: int):  # type: ignore[no-untyped-def]
        """Do it.

        Args:
            x: What to do it to.
        """

    shape = read_signature(free, "free")
    assert (shape.output_schema, shape.returns_nothing) == (None, False)


@pytest.mark.parametrize(
    "hint",
    [
        Alone,
        Remote,
        Callable[[int], int],
        int | Callable[[int], int],
        5,
        Annotated[str, Field(pattern="(?=a)")],
        "Nowhere",
    ],
)
def test_a_type_that_json_cannot_describe_is_refused(hint: object) -> None:
    with pytest.raises(BadTool, match=r"(Parameter `x` of|A type hint of) tool `f`") as refused:
        with_hint(hint)
    assert "\n" not in str(refused.value)


def test_a_return_type_that_json_cannot_describe_is_refused() -> None:
    with pytest.raises(
        BadTool, match=r"The result of tool `f` has a type that JSON Schema cannot describe: .*Alone"
    ):
        with_hint(int, returns=Alone)


def test_a_type_with_a_schema_that_we_do_not_take_is_refused() -> None:
    with pytest.raises(BadTool, match=r"Parameter `x` of tool `f` cannot be checked. A schema is not valid"):
        with_hint(LooksAround)


def _untyped(x) -> None:  # type: ignore[no-untyped-def]
    """Do it.

    Args:
        x: One.
    """


class _Cupboard:
    def open(self, x: int) -> None:
        """Do it.

        Args:
            x: One.
        """


def _undocumented(x: int) -> None:
    """Do it."""


def _empty(x: int) -> None:
    """Do it.

    Args:
        x:
    """


def _stranger(x: int) -> None:
    """Do it.

    Args:
        x: One.
        y: Two.
    """


def _many(*x: int) -> None:
    """Do it."""


def _named(**x: int) -> None:
    """Do it."""


def _positional(x: int, /) -> None:
    """Do it."""


def _field_default(x: int = Field(3)) -> None:
    """Do it.

    Args:
        x: One.
    """


def _hidden_default(x: Annotated[int, Field(default=3)]) -> None:
    """Do it.

    Args:
        x: One.
    """


@pytest.mark.parametrize(
    ("hint", "default", "words"),
    [
        (int, "a", "the default 'a', which its type does not allow: `x` must be an integer, got a string."),
        (str, None, "the default None, which its type does not allow: `x` must be a string, got null."),
        (
            Annotated[int, Field(gt=0)],
            0,
            "the default 0, which its type does not allow: `x` must be more than 0.",
        ),
        (
            list[int],
            [1, "b"],
            "the default [1, 'b'], which its type does not allow: `x[1]` must be an integer",
        ),
        (Literal["a", "b"], "c", "the default 'c', which its type does not allow: `x` must be one of"),
    ],
)
def test_a_default_that_its_own_type_refuses_is_refused_in_words(
    hint: object, default: object, words: str
) -> None:
    with pytest.raises(BadTool) as refused:
        with_hint(hint, default)
    assert str(refused.value).startswith(f"Parameter `x` of tool `f` has {words}")


@pytest.mark.parametrize(
    ("hint", "default"),
    [
        (float, 1),
        (str | None, None),
        (Decimal, Decimal("1.5")),
        (date, date(2026, 11, 16)),
        (set[int], {1, 2}),
        (tuple[int, str], (1, "a")),
        (bytes, b"ab"),
        (Unit, Unit.C),
    ],
    ids=str,
)
def test_a_default_of_the_type_itself_is_taken_however_json_spells_it(hint: object, default: object) -> None:
    assert "default" in with_hint(hint, default).arguments.schema["properties"]["x"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (_untyped, "Parameter `x` of tool `f` has no type hint. Write `x: <type>` in the signature."),
        (
            _Cupboard.open,
            "`f` is a method without its object. Leave out @tool, and pass it from an object: tools=",
        ),
        (_undocumented, "Parameter `x` of tool `f` has no description. Describe it under `Args:`"),
        (_empty, "Parameter `x` of tool `f` has no description."),
        (_stranger, "The docstring of tool `f` describes `y`, which is not a parameter."),
        (_many, "Parameter `x` of tool `f` is variadic positional; a model passes arguments by name."),
        (_named, "Parameter `x` of tool `f` is variadic keyword;"),
        (_positional, "Parameter `x` of tool `f` is positional-only;"),
        (_field_default, "Parameter `x` of tool `f` has its default inside `Field`"),
        (_hidden_default, "Parameter `x` of tool `f` has its default inside `Field`"),
    ],
)
def test_what_a_model_could_only_guess_is_refused(function: Callable[..., object], sentence: str) -> None:
    with pytest.raises(BadTool) as refused:
        read_signature(function, "f")
    assert str(refused.value).startswith(sentence)


def _trip(
    place: Place, span: Span, unit: Unit, options: Options, at: datetime, budget: Decimal, tags: set[str]
) -> None:
    """Plan a trip.

    Args:
        place: Where.
        span: When.
        unit: Of temperatures.
        options: How.
        at: Departure.
        budget: In euros.
        tags: Words for it.
    """


@given(
    st.fixed_dictionaries(
        {
            "place": st.builds(Place, city=st.text()),
            "span": st.builds(Span, first=st.dates()),
            "unit": st.sampled_from(Unit),
            "options": st.fixed_dictionaries({"verbose": st.booleans()}),
            "at": st.datetimes(),
            "budget": st.decimals(allow_nan=False, allow_infinity=False),
            "tags": st.sets(st.text(), max_size=3),
        }
    )
)
def test_the_schema_accepts_what_the_function_takes_and_gives_it_back(values: dict[str, Any]) -> None:
    shape = _TRIP
    written = TypeAdapter(dict[str, Any]).dump_python(values, mode="json")
    assert mismatch(shape.arguments.schema, written) is None
    assert shape.arguments.bind(msgspec.json.encode(written)) == values


_TRIP = read_signature(_trip, "trip")


def test_what_the_input_leaves_out_is_left_to_the_function() -> None:
    assert read_signature(get_weather, "f").arguments.bind(b'{"location": "Bonn"}') == {"location": "Bonn"}
