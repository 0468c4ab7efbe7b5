"""How both APIs of OpenAI judge a tool's name and schema, an id's length and an image."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.fakes.images import wrong_with_url
from tests.fakes.provider import Json, Refusal

_REFUSED_AT_TOP = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
_NAME = re.compile(r"[a-zA-Z0-9_-]+")


def check_functions(functions: Sequence[Json], place: str) -> None:
    """`place` has a `#` where the number of the tool stands."""
    for number, function in enumerate(functions):
        named = f"{place.replace('#', str(number))}.name"
        name = str(function.get("name"))
        check_length(name, named, 64)
        if _NAME.fullmatch(name) is None:
            raise bad(
                f"Invalid '{named}': string does not match pattern. Expected a string that matches the "
                "pattern '^[a-zA-Z0-9_-]+$'.",
                param=named,
                code="invalid_value",
            )
        _check_schema(name, function.get("parameters") or {}, f"{place.replace('#', str(number))}.parameters")


def _check_schema(name: str, schema: Json, place: str) -> None:
    kind, wrong = schema.get("type"), ""
    if kind != "object":
        shown = "None" if kind is None else kind
        wrong = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{shown}\"'."
    elif not _REFUSED_AT_TOP.isdisjoint(schema):
        refused = "'oneOf'/'anyOf'/'allOf'/'enum'/'not'"
        wrong = f"schema must have type 'object' and not have {refused} at the top level."
    if wrong:
        raise bad(
            f"Invalid schema for function '{name}': {wrong}", param=place, code="invalid_function_parameters"
        )


def check_length(text: str, place: str, longest: int) -> None:
    if len(text) > longest:
        raise bad(
            f"Invalid '{place}': string too long. Expected a string with maximum length {longest}, but got a "
            f"string with length {len(text)} instead.",
            param=place,
            code="string_above_max_length",
        )


def check_image(url: object, place: str) -> None:
    wrong = wrong_with_url(url)
    if wrong is not None:
        raise bad(f"Invalid '{place}': {wrong}.", param=place, code="invalid_value")


def bad(message: str, *, param: str, code: str | None = None) -> Refusal:
    return Refusal(400, message, code=code, param=param)
