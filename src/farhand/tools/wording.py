"""Words for a value that does not fit its schema: one sentence that a model or a person can act on.

It names the place and never quotes more of a value than fits in a line. It must not know where the schema or
the value came from.
"""

from __future__ import annotations

from collections.abc import Callable

import pydantic
from jsonschema_rs import ValidationError

from farhand.core.outcome import canonical
from farhand.tools.plain import name_of, shortened


def sentence(error: ValidationError) -> str:
    """Most kinds are about the value at the error's place; the others have a sentence of their own below."""
    keyword = error.kind.name
    if keyword in _OWN:
        return _OWN[keyword](error)
    where = _where(error)
    rule = error.kind.as_dict()
    if keyword in _RULES:
        limit = shortened(str(next(iter(rule.values()), "")))
        return f"{where} must {_RULES[keyword].format(limit)}"
    return f"{where} does not satisfy `{shortened(keyword)}`"


def refusal(error: pydantic.ValidationError) -> str:
    """The same for what passed the schema but not the type: a date that is none, a validator that objects."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{name_of(first['loc'])} was refused: {shortened(first['msg'], 300).rstrip('.')}"


_RULES = {
    "minimum": "be at least {}",
    "maximum": "be at most {}",
    "exclusiveMinimum": "be more than {}",
    "exclusiveMaximum": "be less than {}",
    "multipleOf": "be a multiple of {}",
    "minLength": "have at least {} character(s)",
    "maxLength": "have at most {} character(s)",
    "minItems": "have at least {} item(s)",
    "maxItems": "have at most {} item(s)",
    "minProperties": "have at least {} member(s)",
    "maxProperties": "have at most {} member(s)",
    "uniqueItems": "not hold the same item twice",
    "pattern": "match the pattern {}",
}


def _missing(error: ValidationError) -> str:
    return f"{name_of((*error.instance_path, error.kind.as_dict()['property']))} is missing"


def _unexpected(error: ValidationError) -> str:
    first = error.kind.as_dict()["unexpected"][0]
    return f"{name_of((*error.instance_path, first))} is not expected"


def _not_allowed(error: ValidationError) -> str:
    return f"{_where(error)} is not expected"


def _wrong_type(error: ValidationError) -> str:
    return _must_be(error, error.kind.as_dict()["types"])


def _not_listed(error: ValidationError) -> str:
    options = ", ".join(_quoted(option) for option in error.kind.as_dict()["options"])
    return f"{_where(error)} must be one of {shortened(options, 300)}, got {_quoted(error.instance)}"


def _not_constant(error: ValidationError) -> str:
    expected = _quoted(error.kind.as_dict()["expected_value"])
    return f"{_where(error)} must be {expected}, got {_quoted(error.instance)}"


def _no_choice_fits(error: ValidationError) -> str:
    """Types are joined ("an integer or null"); else the choice that is nearest tells what it lacks."""
    choices: list[list[ValidationError]] = error.kind.as_dict()["context"]
    if not all(choices):
        return f"{_where(error)} fits more than one of the forms its schema allows"
    near = [choice for choice in choices if not _types_refused(choice, error)]
    if near:
        return sentence(min(near, key=len)[0])
    return _must_be(error, [name for choice in choices for name in _types_refused(choice, error)])


_OWN: dict[str, Callable[[ValidationError], str]] = {
    "falseSchema": _not_allowed,
    "required": _missing,
    "additionalProperties": _unexpected,
    "unevaluatedProperties": _unexpected,
    "type": _wrong_type,
    "enum": _not_listed,
    "const": _not_constant,
    "anyOf": _no_choice_fits,
    "oneOf": _no_choice_fits,
}
_TYPES = {
    "null": "null",
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "array": "an array",
    "object": "an object",
}
_TYPE_OF: dict[type, str] = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def _types_refused(choice: list[ValidationError], error: ValidationError) -> list[str]:
    """The types this choice wanted, if the value is of another type altogether."""
    first = choice[0]
    if first.kind.name != "type" or first.instance_path != error.instance_path:
        return []
    return list(first.kind.as_dict()["types"])


def _must_be(error: ValidationError, types: list[str]) -> str:
    wanted = " or ".join(_TYPES[name] for name in dict.fromkeys(types))
    return f"{_where(error)} must be {wanted}, got {_TYPE_OF.get(type(error.instance), 'null')}"


def _where(error: ValidationError) -> str:
    return name_of(tuple(error.instance_path))


def _quoted(value: object) -> str:
    return shortened(canonical(value).decode(), 60)
