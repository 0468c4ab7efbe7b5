"""What a call runs with: the input as the model wrote it, and the defaults of its schema for the rest.

Pure, and only for people who decide about a call: the stored input stays as it is, and whoever runs the tool
applies the defaults. It must not know calls, or who runs a tool.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from farhand.core.tool import Schema
from farhand.tools.schema_admission import target_of

Path: TypeAlias = tuple[str, ...]

MOST_RULES = 64
"""For one value: references and alternatives that lead to each other. The rest of them adds nothing."""


class CompleteInput(Struct, frozen=True):
    input: dict[str, object]
    defaults: tuple[Path, ...]
    """The members that are defaults. A member that every item of a list has is named once, without an
    index."""
    left_out: tuple[str, ...]
    """Parameters that the input lacks and whose default is null, or that have none in the schema."""


def complete_input(schema: Schema, input: dict[str, object]) -> CompleteInput:
    """The input with the defaults of all objects that are in it. Where it fits several alternatives of the
    schema, or none, nothing is added."""
    filler = _Filler(schema)
    filled = {**input}
    for rule in filler.rules(schema, input):
        filled = filler.members(rule, filled, ())
    # one rule may name a parameter, and another one its default
    left_out = tuple(name for name in filler.left_out if name not in filled)
    return CompleteInput(filled, tuple(filler.defaults), left_out)


class _Filler:
    def __init__(self, root: Schema) -> None:
        self._root = root
        # dicts as sets that keep their order
        self.defaults: dict[Path, None] = {}
        self.left_out: dict[str, None] = {}

    def members(self, rule: Schema, value: dict[str, object], path: Path) -> dict[str, object]:
        known = _rule(rule.get("properties"))
        filled = {
            name: self._value(known.get(name, rule.get("additionalProperties")), each, (*path, name))
            for name, each in value.items()
        }
        for name, own in known.items():
            if name in filled:
                continue
            default = self._default(own)
            if default is not None:
                filled[name] = default
                self.defaults[(*path, name)] = None
            elif not path:
                self.left_out[name] = None
        return filled

    def rules(self, rule: object, value: object) -> list[Schema]:
        """The rule, and those that it leads to for this value: by reference, or as the only alternative that
        fits."""
        found: list[Schema] = []
        waiting = [rule]
        while waiting and len(found) < MOST_RULES:
            linked = self._linked(waiting.pop(0))
            found += linked
            for each in linked:
                for choices in (_list(each.get("anyOf")), _list(each.get("oneOf"))):
                    fitting = [choice for choice in choices if self._fits(choice, value)]
                    waiting += fitting if len(fitting) == 1 else []
        return found

    def _value(self, rule: object, value: object, path: Path) -> object:
        if isinstance(value, dict):
            for each in self.rules(rule, value):
                value = self.members(each, value, path)
        elif isinstance(value, list):
            for each in self.rules(rule, value):
                value = self._items(each, value, path)
        return value

    def _items(self, rule: Schema, value: list[object], path: Path) -> list[object]:
        first = _list(rule.get("prefixItems"))
        rest = [rule.get("items")] * (len(value) - len(first))
        # there may be more rules than items
        return [self._value(own, each, path) for own, each in zip([*first, *rest], value, strict=False)]

    def _default(self, rule: object) -> object:
        return next((each["default"] for each in self._linked(rule) if each.get("default") is not None), None)

    def _fits(self, choice: object, value: object) -> bool:
        """Only what distinguishes alternatives: the type, the names of members, and constants."""
        kind = "object" if isinstance(value, dict) else "array"
        rules = self._linked(choice)
        if not any(kind in _types(each) for each in rules):
            return False
        return not isinstance(value, dict) or all(self._has_members_of(each, value) for each in rules)

    def _has_members_of(self, rule: Schema, value: dict[str, object]) -> bool:
        known = _rule(rule.get("properties"))
        if rule.get("additionalProperties") is False and not value.keys() <= known.keys():
            return False
        return all(name in value for name in _list(rule.get("required"))) and all(
            value[name] in _values(each)
            for name, own in known.items()
            if name in value
            for each in self._linked(own)
            if _values(each)
        )

    def _linked(self, rule: object) -> list[Schema]:
        """The rule and what it refers to."""
        found: list[Schema] = []
        waiting = [rule]
        while waiting and len(found) < MOST_RULES:
            each = _rule(waiting.pop(0))
            found.append(each)
            reference = each.get("$ref")
            waiting += [target_of(self._root, reference)] if isinstance(reference, str) else []
            waiting += _list(each.get("allOf"))
        return found


def _types(rule: Schema) -> list[object]:
    named = rule.get("type", "object" if "properties" in rule else None)
    return named if isinstance(named, list) else [named]


def _values(rule: Schema) -> list[object]:
    """The only values that a rule allows; empty if it does not list them."""
    return [rule["const"]] if "const" in rule else _list(rule.get("enum"))


def _rule(value: object) -> Schema:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
