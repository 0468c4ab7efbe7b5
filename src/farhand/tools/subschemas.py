"""The parts of a JSON Schema and how they hang together: which apply to the same value, which to its members.

Knows the keywords of draft 2020-12 that hold schemas. It must not know which schemas are welcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias
from urllib.parse import unquote

from farhand.core.tool import Schema

Part: TypeAlias = dict[str, object] | bool

# a keyword holds one schema, a list of them, or one for each name
_ONE = {"not", "if", "then", "else", "additionalProperties", "items", "contains", "propertyNames"}
_LIST = {"allOf", "anyOf", "oneOf", "prefixItems"}

SAME_VALUE = ("not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas")
MEMBERS = ("additionalProperties", "items", "contains", "propertyNames", "prefixItems", "patternProperties")
NAMED_MEMBERS = ("properties",)
DEFINITIONS = ("$defs", "definitions")

LONGEST_WAY = 256
"""Parts one behind the other; more than anybody writes, and less than a stack holds."""


class Subschemas:
    """One schema, seen part by part. References that lead nowhere are passed over."""

    def __init__(self, schema: Schema) -> None:
        self.root = schema

    def on_the_same_value(self, part: Part) -> list[Part]:
        """Parts that a value is checked against together with this one."""
        reference = None if isinstance(part, bool) else part.get("$ref")
        target = target_of(self.root, reference) if isinstance(reference, str) else None
        written = _held(part, SAME_VALUE)
        return written if target is None else [*written, target]

    def on_members(self, part: Part) -> list[Part]:
        """Parts for members or items of the value, of which several may meet on one of them."""
        return _held(part, MEMBERS)

    def on_named_members(self, part: Part) -> list[Part]:
        """Parts for members with a name each: a member has only one of them."""
        return _held(part, NAMED_MEMBERS)

    def all(self) -> list[Schema]:
        """Every part that is written or reached, once."""
        found: dict[int, Schema] = {}
        waiting: list[Part] = [self.root]
        while waiting:
            part = waiting.pop()
            if isinstance(part, bool) or id(part) in found:
                continue
            found[id(part)] = part
            waiting += [*self._below(part), *_held(part, DEFINITIONS)]
        return list(found.values())

    def patterns(self) -> Iterator[object]:
        for part in self.all():
            if "pattern" in part:
                yield part["pattern"]
            named = part.get("patternProperties")
            yield from named if isinstance(named, dict) else ()

    def depth(self) -> int:
        """How deeply parts are written into each other; references are not followed."""
        deepest = 0
        level: list[Part] = [self.root]
        while level:
            deepest += 1
            level = [inner for part in level for inner in _held(part, _ALL)]
        return deepest

    def size(self, *, at_most: int) -> int:
        """How many parts there are, each counted as often as it is reached; a recursion ends the count.

        Beyond `at_most` it is not counted to the end.
        """
        return self._size(self.root, {}, [], at_most)

    def has_idle_loop(self) -> bool:
        """True if following references comes back without having gone into the value."""
        done: set[int] = set()
        for start in self.all():
            way: list[tuple[int, list[Part]]] = [(id(start), self.on_the_same_value(start))]
            while way:
                here, ahead = way[-1]
                if not ahead:
                    done.add(here)
                    way.pop()
                    continue
                part = ahead.pop()
                if any(id(part) == passed for passed, _ in way) or len(way) > LONGEST_WAY:
                    return True
                if not isinstance(part, bool) and id(part) not in done:
                    way.append((id(part), self.on_the_same_value(part)))
        return False

    def _below(self, part: Part) -> list[Part]:
        return [*self.on_the_same_value(part), *self.on_members(part), *self.on_named_members(part)]

    def _size(self, part: Part, known: dict[int, int], way: list[int], at_most: int) -> int:
        if isinstance(part, bool) or id(part) in way:
            return 1
        if len(way) > LONGEST_WAY:
            return at_most + 1
        if id(part) not in known:
            way.append(id(part))
            total = 1
            for inner in self._below(part):
                total += self._size(inner, known, way, at_most)
                if total > at_most:
                    break
            way.pop()
            known[id(part)] = total
        return known[id(part)]


def target_of(schema: Schema, reference: str) -> Part | None:
    """What a reference inside the schema points at; None for one that leads elsewhere or nowhere."""
    if reference == "#":
        return schema
    if not reference.startswith("#/"):
        return None
    here: object = schema
    for step in unquote(reference[2:]).split("/"):
        here = _member(here, step.replace("~1", "/").replace("~0", "~"))
    return here if isinstance(here, dict | bool) else None


def _member(value: object, name: str) -> object:
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, list) and name in map(str, range(len(value))):
        return value[int(name)]
    return None


_ALL = (*SAME_VALUE, *MEMBERS, *NAMED_MEMBERS, *DEFINITIONS)


def _held(part: Part, keywords: Sequence[str]) -> list[Part]:
    """The schemas that are written under these keywords."""
    if isinstance(part, bool):
        return []
    held: list[object] = []
    for keyword in keywords:
        value = part.get(keyword)
        if keyword in _ONE:
            held.append(value)
        elif keyword in _LIST:
            held += value if isinstance(value, list) else ()
        else:
            held += value.values() if isinstance(value, dict) else ()
    return [each for each in held if isinstance(each, dict | bool)]
