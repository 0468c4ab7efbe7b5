"""Checks a value against a JSON Schema and describes a mismatch in one sentence for a model or a person.

Owns the compiled validators (draft 2020-12, nothing ever fetched, patterns matched in linear time) and the
wording, which names the place and never quotes more of a value than fits in a line. It must not know tools,
calls or Python signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Never

import msgspec
import pydantic
from jsonschema_rs import Draft202012Validator, ReferencingError, RegexOptions, ValidationError

from farhand.core.outcome import canonical
from farhand.core.tool import Schema
from farhand.errors import BadTool
from farhand.tools.to_json import path_text, shorten

SCHEMAS_KEPT = 512
SMALL = 2_000
"""Nodes. For a larger value, the validator would spend seconds on listing every mismatch under `anyOf`."""


def mismatch(schema: Schema, value: object) -> str | None:
    """What is wrong with the value, as a sentence without a full stop; None if the value matches."""
    return compile_schema(schema).mismatch(value)


def compile_schema(schema: Schema) -> CompiledSchema:
    """The schema, compiled once per content. Raises `BadTool` for what is not a schema."""
    known = _known.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    made = _compile(canonical(schema))
    if len(_known) >= SCHEMAS_KEPT:
        _known.clear()
    _known[id(schema)] = (schema, made)
    return made


class CompiledSchema:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._has_choices = any(mark in canonical(schema) for mark in (b'"anyOf"', b'"oneOf"'))
        self._validator = _validator(schema)

    def mismatch(self, value: object) -> str | None:
        try:
            if self._has_choices and self._validator.is_valid(value):
                return None
            if self._has_choices and not _is_small(value):
                return f"{self._member_at_fault(value)} does not fit its schema"
            self._validator.validate(value)
        except ValidationError as error:
            return describe_mismatch(error)
        except ValueError:
            # the validator cannot read it: bytes, a key that is not a string, a cycle, a lone surrogate
            return "the value is not JSON or is nested too deeply"
        return None

    def _member_at_fault(self, value: object) -> str:
        """A large value is checked member by member, which at least names the one at fault."""
        members = value if isinstance(value, dict) else {}
        alone = _validator({key: rule for key, rule in self._schema.items() if key != "required"})
        for name, member in members.items():
            if not alone.is_valid({name: member}):
                return path_text((name,))
        return "the value"


_known: dict[int, tuple[Schema, CompiledSchema]] = {}
"""By identity of the schema, which is kept as well: a tool's schema never changes, and encoding a large one
for each look-up is slow."""


@lru_cache(maxsize=SCHEMAS_KEPT)
def _compile(schema: bytes) -> CompiledSchema:
    return CompiledSchema(msgspec.json.decode(schema))


def _refuse_remote(uri: str) -> Never:
    raise ValueError(f"{uri} is a reference to another document")


def _validator(schema: Schema) -> Draft202012Validator:
    try:
        return Draft202012Validator(schema, pattern_options=RegexOptions(), retriever=_refuse_remote)
    except (ValueError, ReferencingError) as error:
        why = shorten(str(error).partition("\n")[0])
        raise BadTool(
            f"A schema is not valid: {why}.",
            hint="Use JSON Schema 2020-12 with local references and patterns without look-around.",
        ) from error


def _is_small(value: object) -> bool:
    return sum(1 for _ in islice(nodes_of(value), SMALL + 1)) <= SMALL


def nodes_of(value: object) -> Iterator[object]:
    """The value itself and everything in it."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, dict):
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def describe_mismatch(error: ValidationError) -> str:
    """Most keywords share one sentence about the value at the place of the error; the others are below."""
    keyword = error.kind.name
    if keyword in _OWN:
        return _OWN[keyword](error)
    where = _where(error)
    rule = error.kind.as_dict()
    if keyword in _RULES:
        limit = shorten(str(next(iter(rule.values()), "")))
        return f"{where} must {_RULES[keyword].format(limit)}"
    return f"{where} does not satisfy `{shorten(keyword)}`"


def describe_refusal(error: pydantic.ValidationError) -> str:
    """The same for a value that fits the schema but not the type, such as a date that does not exist."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{path_text(first['loc'])} was refused: {shorten(first['msg'], 300).rstrip('.')}"


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
    "uniqueItems": "not contain the same item twice",
    "pattern": "match the pattern {}",
}


def _missing(error: ValidationError) -> str:
    return f"{path_text((*error.instance_path, error.kind.as_dict()['property']))} is missing"


def _unexpected(error: ValidationError) -> str:
    first = error.kind.as_dict()["unexpected"][0]
    return f"{path_text((*error.instance_path, first))} is not expected"


def _not_allowed(error: ValidationError) -> str:
    return f"{_where(error)} is not expected"


def _wrong_type(error: ValidationError) -> str:
    return _must_be(error, error.kind.as_dict()["types"])


def _not_listed(error: ValidationError) -> str:
    options = ", ".join(_quoted(option) for option in error.kind.as_dict()["options"])
    return f"{_where(error)} must be one of {shorten(options, 300)}, got {_quoted(error.instance)}"


def _not_constant(error: ValidationError) -> str:
    expected = _quoted(error.kind.as_dict()["expected_value"])
    return f"{_where(error)} must be {expected}, got {_quoted(error.instance)}"


def _no_choice_fits(error: ValidationError) -> str:
    """Types are joined ("an integer or null"); otherwise the closest alternative says what is missing."""
    choices: list[list[ValidationError]] = error.kind.as_dict()["context"]
    if not all(choices):
        return f"{_where(error)} matches more than one of the alternatives in its schema"
    near = [choice for choice in choices if not _types_refused(choice, error)]
    if near:
        return describe_mismatch(min(near, key=len)[0])
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
    """The types that this alternative requires, if the value has another type."""
    first = choice[0]
    if first.kind.name != "type" or first.instance_path != error.instance_path:
        return []
    return list(first.kind.as_dict()["types"])


def _must_be(error: ValidationError, types: list[str]) -> str:
    wanted = " or ".join(_TYPES[name] for name in dict.fromkeys(types))
    return f"{_where(error)} must be {wanted}, got {_TYPE_OF.get(type(error.instance), 'null')}"


def _where(error: ValidationError) -> str:
    return path_text(tuple(error.instance_path))


def _quoted(value: object) -> str:
    return shorten(canonical(value).decode(), 60)
