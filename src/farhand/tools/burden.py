"""How much work a schema can make, for each node and each character of the value that is checked.

An upper bound, found before anything is checked: whoever writes a schema must not be able to stop the loop.
The figures were measured with jsonschema-rs. It must not know where the schema came from.
"""

from __future__ import annotations

from functools import lru_cache

from jsonschema_rs import Draft202012Validator, RegexOptions
from msgspec import Struct

from farhand.core.tool import Schema
from farhand.tools.subschemas import LONGEST_WAY, Part, Subschemas

DEEPEST_VALUE = 64
"""Levels of a value: the reader of JSON takes no more."""

MOST_WEIGHED = 20_000
"""Parts times levels: weighing must not be a burden itself."""

TOO_MUCH = 1_000_000_000

# in units of one plain check, which takes about 25 ns
COMPARED_NODE = 25
ODD_FRACTION = 2_500

SMALLEST_PROGRAM = 512
LARGEST_PROGRAM = 128 * 1024
"""Bytes of a compiled pattern."""


class Burden(Struct, frozen=True):
    """`steps` on one way from the root of a value to a leaf; `matching` in bytes of compiled patterns."""

    steps: int = 0
    matching: int = 0

    def __add__(self, other: Burden) -> Burden:
        return Burden(min(self.steps + other.steps, TOO_MUCH), min(self.matching + other.matching, TOO_MUCH))

    def __or__(self, other: Burden) -> Burden:
        """Whichever of the two comes: the worse."""
        return Burden(max(self.steps, other.steps), max(self.matching, other.matching))


HOPELESS = Burden(TOO_MUCH, TOO_MUCH)


def burden_of(parts: Subschemas) -> Burden:
    """Of a schema without idle loops."""
    return _Weighing(parts).weigh(parts.root, DEEPEST_VALUE)


@lru_cache(maxsize=1024)
def program_size(pattern: str) -> int:
    """About how large it is when compiled, found by trying wider and wider limits.

    `TOO_MUCH` for one that fits none, or cannot be matched in linear time.
    """
    size = SMALLEST_PROGRAM
    while size <= LARGEST_PROGRAM:
        try:
            Draft202012Validator(
                {"pattern": pattern}, pattern_options=RegexOptions(size_limit=size), offline=True
            )
        except ValueError:
            size *= 2
        else:
            return size
    return TOO_MUCH


class _Weighing:
    def __init__(self, parts: Subschemas) -> None:
        self._parts = parts
        self._known: dict[tuple[int, int], Burden] = {}
        self._read: dict[int, _Read] = {}
        self._way = 0

    def weigh(self, part: Part, levels: int) -> Burden:
        """For a value that has so many levels at most."""
        if isinstance(part, bool) or levels == 0:
            return Burden(1)
        key = (id(part), levels)
        if key not in self._known:
            if self._way > LONGEST_WAY or len(self._known) > MOST_WEIGHED:
                return HOPELESS
            self._way += 1
            self._known[key] = self._weigh(part, levels)
            self._way -= 1
        return self._known[key]

    def _weigh(self, part: Schema, levels: int) -> Burden:
        read = self._read.get(id(part)) or self._read_part(part)
        total, named = read.own, Burden()
        for inner in read.same_value:
            total += self.weigh(inner, levels)
        for inner in read.members:
            total += self.weigh(inner, levels - 1)
        for inner in read.named_members:
            named |= self.weigh(inner, levels - 1)
        return total + named

    def _read_part(self, part: Schema) -> _Read:
        parts = self._parts
        read = _Read(
            _own(part), parts.on_the_same_value(part), parts.on_members(part), parts.on_named_members(part)
        )
        self._read[id(part)] = read
        return read


class _Read(Struct, frozen=True):
    """One part, taken apart once for all levels."""

    own: Burden
    same_value: list[Part]
    members: list[Part]
    named_members: list[Part]


def _own(part: Schema) -> Burden:
    """Without the schemas it holds."""
    choices = part.get("enum")
    compared = [*(choices if isinstance(choices, list) else ()), part.get("const")]
    steps = 1 + COMPARED_NODE * sum(_nodes(value) for value in compared if isinstance(value, dict | list))
    if isinstance(part.get("multipleOf"), float):
        steps += ODD_FRACTION
    named = part.get("patternProperties")
    patterns = [part.get("pattern"), *(named if isinstance(named, dict) else ())]
    matching = sum(program_size(pattern) for pattern in patterns if isinstance(pattern, str))
    return Burden(steps, matching)


def _nodes(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(_nodes(each) for each in inner)
