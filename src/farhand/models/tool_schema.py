"""A tool in a form that every provider accepts: a schema whose top level is a plain object.

Providers refuse `anyOf`, `oneOf`, `allOf` and similar keywords at the top of an input schema, and one of them
refuses unusual property names. The desk checks every input against the full schema, so a provider gets a
wider one, and the model reads the rest in the description.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from farhand.core.outcome import canonical
from farhand.core.tool import Tool

_ANY = ("anyOf", "oneOf")
_REFUSED_AT_TOP = frozenset({*_ANY, "allOf", "not", "enum", "const", "$ref"})
# properties of a branch are not at the top: a closed object could have none of them
_CLOSING = frozenset({"additionalProperties", "unevaluatedProperties", "required"})
_DEPTH = 8
"""Of nested combinations; deeper ones are only in the description."""
_LONGEST_RULE = 4_096
"""Characters. A longer rule is left to the desk, which says what is wrong with an input."""

Schema = Mapping[str, object]


class ToolDefinition(Struct, frozen=True):
    """`name` is the tool's name at the provider."""

    name: str
    description: str
    schema: dict[str, object]


def define_tool(tool: Tool, name: str, *, members: re.Pattern[str] | None = None) -> ToolDefinition:
    """`members` matches the property names that the provider accepts; None accepts all."""
    schema = tool.input_schema
    rest = {word: value for word, value in schema.items() if word in _REFUSED_AT_TOP}
    properties, required = _members(schema, schema, ())
    odd = {each for each in properties if members is not None and not members.fullmatch(each)}
    if not rest and not odd:
        # every input is an object, whatever else the schema would allow
        return ToolDefinition(name, tool.description, {**schema, "type": "object"})
    if odd:
        rest["properties"] = {each: properties[each] for each in sorted(odd)}
    wider = {word: value for word, value in schema.items() if word not in _REFUSED_AT_TOP | _CLOSING}
    plain = {each: rule for each, rule in properties.items() if each not in odd}
    wider |= {"type": "object", "properties": plain}
    if required - odd:
        wider["required"] = sorted(required - odd)
    return ToolDefinition(name, _describe(tool, rest), wider)


def _describe(tool: Tool, rest: Schema) -> str:
    rule = f"The input must also fit this JSON Schema: {canonical(rest).decode()}"
    words = (tool.description, rule if len(rule) <= _LONGEST_RULE else "")
    return "\n\n".join(filter(None, words))


def _members(schema: Schema, whole: Schema, trail: tuple[str, ...]) -> tuple[dict[str, object], set[str]]:
    """All properties of any branch, and those that every input must have. `trail`: references followed."""
    properties = dict(_object(schema.get("properties")))
    names = schema.get("required")
    required = {name for name in names if isinstance(name, str)} if isinstance(names, list | tuple) else set()
    here = str(schema.get("$ref", ""))
    if len(trail) == _DEPTH or (here and here in trail):
        return properties, required
    trail = (*trail, here)
    for branch in (*_branches(schema, "allOf"), *_referenced(schema, whole)):
        more, wanted = _members(branch, whole, trail)
        properties = {**more, **properties}
        required |= wanted
    for word in _ANY:
        found = [_members(branch, whole, trail) for branch in _branches(schema, word)]
        for more, _ in found:
            properties = _either(properties, more)
        if found:
            required |= set.intersection(*(wanted for _, wanted in found))
    return properties, required


def _either(known: dict[str, object], more: Mapping[str, object]) -> dict[str, object]:
    """Both; a property that two branches define differently may match either."""
    merged = dict(known)
    for name, schema in more.items():
        if name not in merged or merged[name] == schema:
            merged[name] = schema
        else:
            before = merged[name]
            options = before["anyOf"] if isinstance(before, dict) and set(before) == {"anyOf"} else [before]
            merged[name] = {"anyOf": options if schema in options else [*options, schema]}
    return merged


def _branches(schema: Schema, word: str) -> Sequence[Schema]:
    found = schema.get(word)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list | tuple) else []


def _referenced(schema: Schema, whole: Schema) -> Sequence[Schema]:
    """The target of a `$ref` inside the schema: nothing is ever fetched."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return []
    found: object = whole
    for step in reference[2:].split("/"):
        found = _object(found).get(step.replace("~1", "/").replace("~0", "~"))
    return [found] if isinstance(found, Mapping) else []


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
