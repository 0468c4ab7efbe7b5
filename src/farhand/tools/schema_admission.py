"""Decides which JSON Schemas from outside are safe to validate against.

Owns the rules: an object, references only inside the schema and never in a loop, a bounded size, and a
bounded cost for every input. The cost is an upper bound, computed before anything is validated, because the
author of a schema must not be able to block the event loop. Nothing is ever fetched. It must not know clients
or wires.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import unquote

import msgspec
from jsonschema_rs import Draft202012Validator, RegexOptions
from msgspec import Struct

from farhand.core.outcome import canonical
from farhand.core.tool import Schema, Tool
from farhand.errors import BadTool
from farhand.tools.check import compile_schema, nodes_of
from farhand.tools.docstring import clean_text
from farhand.tools.to_json import shorten

MOST_BYTES = 32 * 1024
MOST_NODES = 10_000
DEEPEST = 16
LONGEST_PATTERN = 256

MOST_STEPS = 2_000_000
"""Validation steps for one input: about 50 ms, during which the process does nothing else."""
MOST_MATCHING = 150_000_000
"""Bytes of compiled patterns times characters of the input: about the same time."""

SMALL_INPUT = 64
"""Bytes. A schema that is too expensive even for an input of this size is refused."""

COSTS_KEPT = 512

DEEPEST_VALUE = 64
"""Levels of a value: the limit of the JSON reader."""

MOST_WEIGHED = 20_000
"""Subschemas times levels: computing the cost must itself be cheap."""

LONGEST_PATH = 256
"""Subschemas in one chain: more than anyone writes, and fewer than the stack holds."""

TOO_MUCH = 1_000_000_000

# measured with jsonschema-rs, in units of one plain check, which takes about 25 ns
COMPARED_NODE = 25
ODD_FRACTION = 2_500

SMALLEST_PROGRAM = 512
LARGEST_PROGRAM = 128 * 1024
"""Bytes of a compiled pattern."""


def admit_schema(schema: object, what: str) -> Schema:
    """The schema of an input, as it is stored. Raises `BadTool` for a schema that is not admitted."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise BadTool(f"{what} does not describe an object.", hint='Send {"type": "object", …}, or {}.')
    return admit_output_schema({"type": "object", **schema}, what)


def admit_output_schema(schema: object, what: str) -> Schema:
    """The same for the schema of an output, which may be of any type. Its descriptions are cleaned."""
    if not isinstance(schema, dict):
        raise BadTool(f"{what} is not a JSON Schema.", hint="Send an object, such as {}.")
    if len(canonical(schema)) > MOST_BYTES:
        raise BadTool(f"{what} is larger than {MOST_BYTES} bytes.")
    kept = _clean_descriptions(schema, what)
    _refuse_keywords(kept, what)
    _refuse_structure(kept, what)
    _refuse_cost(kept, what)
    try:
        compile_schema(kept)
    except BadTool as error:
        raise BadTool(f"{what} cannot be used. {error.message}", hint=error.hint) from error
    return kept


def check_input(tool: Tool, input: object) -> str | None:
    """What is wrong with an input of this tool, as a sentence without a full stop; None if it fits."""
    return _check(tool, tool.input_schema, input)


def check_output(tool: Tool, output: object) -> str | None:
    """The same for an output; without a schema, every output fits."""
    return None if tool.output_schema is None else _check(tool, tool.output_schema, output)


def _check(tool: Tool, schema: Schema, value: object) -> str | None:
    too_large = _refuse_value(schema, value) if tool.is_foreign else None
    return too_large or compile_schema(schema).mismatch(value)


def _refuse_value(schema: Schema, value: object) -> str | None:
    """A value that would take too long to check against this schema is refused before it is checked."""
    size = len(canonical(value))
    cost = _cost(canonical(schema))
    # a node of JSON takes at least two bytes
    if cost.steps * (size // 2) > MOST_STEPS or cost.matching * size > MOST_MATCHING:
        return f"a value of {size} bytes is too large to be checked against the schema of this tool"
    return None


@lru_cache(maxsize=COSTS_KEPT)
def _cost(schema: bytes) -> CheckCost:
    return check_cost(Subschemas(msgspec.json.decode(schema)))


_REFUSED = {
    "$id": "a schema from outside must not have its own address",
    "id": "a schema from outside must not have its own address",
    "$anchor": "use a reference that begins with #/",
    "$dynamicAnchor": "use $defs and $ref",
    "$dynamicRef": "use $defs and $ref",
    "$recursiveRef": "use $defs and $ref",
    "$recursiveAnchor": "use $defs and $ref",
    "$vocabulary": "the vocabulary is that of 2020-12",
    "unevaluatedProperties": "use additionalProperties",
    "unevaluatedItems": "use items",
}
_DRAFTS = ("http://json-schema.org/", "https://json-schema.org/")


def _refuse_keywords(schema: Schema, what: str) -> None:
    """Anywhere in the schema, also in a definition that nothing refers to."""
    objects = (node for node in nodes_of(schema) if isinstance(node, dict))
    for key, value in (member for node in objects for member in node.items()):
        # a property may have any name; its value is a schema, and none of these keywords takes one
        if key in _REFUSED and (isinstance(value, str) or key.startswith("unevaluated")):
            raise BadTool(
                f"{what} uses `{key}`, which is not supported.", hint=f"{_REFUSED[key].capitalize()}."
            )
        if key == "$schema" and isinstance(value, str) and not value.startswith(_DRAFTS):
            raise BadTool(f"{what} is written in an unknown dialect.", hint="Use JSON Schema 2020-12.")
        if key == "$ref" and isinstance(value, str) and target_of(schema, value) is None:
            raise BadTool(
                f"{what} refers to '{shorten(value)}', which is not in the schema.",
                hint="Use references inside the schema, such as #/$defs/item.",
            )


def _refuse_structure(schema: Schema, what: str) -> None:
    parts = Subschemas(schema)
    if parts.has_idle_loop():
        raise BadTool(
            f"{what} has references that form a loop or a chain that is too long.",
            hint="Inline the referenced schemas.",
        )
    if parts.depth() > DEEPEST:
        raise BadTool(f"{what} is nested more than {DEEPEST} levels deep.")
    if parts.size(at_most=MOST_NODES) > MOST_NODES:
        raise BadTool(f"{what} has more than {MOST_NODES} subschemas when its references are followed.")
    _refuse_patterns(list(parts.patterns()), what)


def _refuse_patterns(patterns: list[object], what: str) -> None:
    total = 0
    for pattern in patterns:
        if not isinstance(pattern, str) or len(pattern) > LONGEST_PATTERN:
            raise BadTool(
                f"{what} has a pattern that is not a string or has more than {LONGEST_PATTERN} characters."
            )
        size = program_size(pattern)
        if size > LARGEST_PROGRAM:
            raise BadTool(
                f"{what} has a pattern that cannot be matched in linear time: {shorten(pattern, 60)}",
                hint="Avoid look-around, back references and large repetitions.",
            )
        total += size
    # all patterns are compiled at once, which blocks the event loop
    if total > 4 * LARGEST_PROGRAM:
        raise BadTool(f"{what} has too many large patterns.", hint="Use fewer or simpler ones.")


def _refuse_cost(schema: Schema, what: str) -> None:
    """Even a small input must be cheap to check: a recursion may multiply the work on each level."""
    cost = _cost(canonical(schema))
    if cost.steps > MOST_STEPS // SMALL_INPUT or cost.matching > MOST_MATCHING // SMALL_INPUT:
        raise BadTool(f"{what} would take too long to check.", hint="Simplify its choices and patterns.")


_DESCRIPTIONS = ("description", "title", "$comment")


def _clean_descriptions(value: Schema, what: str) -> Schema:
    return {key: _clean(key, member, what) for key, member in value.items()}


def _clean(key: str, member: object, what: str) -> object:
    """Descriptions are shown to the model and must not contain invisible text."""
    if isinstance(member, str):
        return clean_text(member, what) if key in _DESCRIPTIONS else member
    if isinstance(member, dict):
        return _clean_descriptions(member, what)
    if isinstance(member, list):
        return [_clean("", each, what) for each in member]
    return member


class CheckCost(Struct, frozen=True):
    """`steps` on one path from the root of a value to a leaf; `matching` in bytes of compiled patterns."""

    steps: int = 0
    matching: int = 0

    def __add__(self, other: CheckCost) -> CheckCost:
        return CheckCost(
            min(self.steps + other.steps, TOO_MUCH), min(self.matching + other.matching, TOO_MUCH)
        )

    def __or__(self, other: CheckCost) -> CheckCost:
        """The worse of two alternatives."""
        return CheckCost(max(self.steps, other.steps), max(self.matching, other.matching))


UNBOUNDED = CheckCost(TOO_MUCH, TOO_MUCH)


def check_cost(parts: Subschemas) -> CheckCost:
    """For a schema without loops that consume nothing of the value."""
    return _CostModel(parts).cost(parts.root, DEEPEST_VALUE)


@lru_cache(maxsize=1024)
def program_size(pattern: str) -> int:
    """Approximately how large it is when compiled, found by trying wider and wider limits.

    `TOO_MUCH` for a pattern that fits no limit or cannot be matched in linear time.
    """
    size = SMALLEST_PROGRAM
    while size <= LARGEST_PROGRAM:
        try:
            Draft202012Validator({"pattern": pattern}, pattern_options=RegexOptions(size_limit=size))
        except ValueError:
            size *= 2
        else:
            return size
    return TOO_MUCH


class _CostModel:
    def __init__(self, parts: Subschemas) -> None:
        self._parts = parts
        self._known: dict[tuple[int, int], CheckCost] = {}
        self._read: dict[int, _PartCost] = {}
        self._path_length = 0

    def cost(self, part: Subschema, levels: int) -> CheckCost:
        """For a value of at most this many levels."""
        if isinstance(part, bool) or levels == 0:
            return CheckCost(1)
        key = (id(part), levels)
        if key not in self._known:
            if self._path_length > LONGEST_PATH or len(self._known) > MOST_WEIGHED:
                return UNBOUNDED
            self._path_length += 1
            self._known[key] = self._cost_of(part, levels)
            self._path_length -= 1
        return self._known[key]

    def _cost_of(self, part: Schema, levels: int) -> CheckCost:
        read = self._read.get(id(part)) or self._read_part(part)
        total, named = read.own, CheckCost()
        for inner in read.same_value:
            total += self.cost(inner, levels)
        for inner in read.members:
            total += self.cost(inner, levels - 1)
        for inner in read.named_members:
            named |= self.cost(inner, levels - 1)
        return total + named

    def _read_part(self, part: Schema) -> _PartCost:
        parts = self._parts
        read = _PartCost(
            _own_cost(part),
            parts.on_the_same_value(part),
            parts.on_members(part),
            parts.on_named_members(part),
        )
        self._read[id(part)] = read
        return read


class _PartCost(Struct, frozen=True):
    """One subschema, taken apart once for all levels."""

    own: CheckCost
    same_value: list[Subschema]
    members: list[Subschema]
    named_members: list[Subschema]


def _own_cost(part: Schema) -> CheckCost:
    """Without the subschemas in it."""
    choices = part.get("enum")
    compared = [*(choices if isinstance(choices, list) else ()), part.get("const")]
    nested = (value for value in compared if isinstance(value, dict | list))
    steps = 1 + COMPARED_NODE * sum(1 for value in nested for _ in nodes_of(value))
    if isinstance(part.get("multipleOf"), float):
        steps += ODD_FRACTION
    named = part.get("patternProperties")
    patterns = [part.get("pattern"), *(named if isinstance(named, dict) else ())]
    matching = sum(program_size(pattern) for pattern in patterns if isinstance(pattern, str))
    return CheckCost(steps, matching)


Subschema: TypeAlias = dict[str, object] | bool

# a keyword holds one schema, a list of them, or one for each name
_ONE = {"not", "if", "then", "else", "additionalProperties", "items", "contains", "propertyNames"}
_LIST = {"allOf", "anyOf", "oneOf", "prefixItems"}

_SAME_VALUE = ("not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas")
_MEMBERS = ("additionalProperties", "items", "contains", "propertyNames", "prefixItems", "patternProperties")
_NAMED_MEMBERS = ("properties",)
_DEFINITIONS = ("$defs", "definitions")
_ALL = (*_SAME_VALUE, *_MEMBERS, *_NAMED_MEMBERS, *_DEFINITIONS)


class Subschemas:
    """One schema as a graph of subschemas. References without a target are skipped."""

    def __init__(self, schema: Schema) -> None:
        self.root = schema

    def on_the_same_value(self, part: Subschema) -> list[Subschema]:
        """Subschemas that apply to the same value as this one."""
        reference = None if isinstance(part, bool) else part.get("$ref")
        target = target_of(self.root, reference) if isinstance(reference, str) else None
        written = _subschemas_under(part, _SAME_VALUE)
        return written if target is None else [*written, target]

    def on_members(self, part: Subschema) -> list[Subschema]:
        """Subschemas for members or items of the value; several may apply to the same member."""
        return _subschemas_under(part, _MEMBERS)

    def on_named_members(self, part: Subschema) -> list[Subschema]:
        """Subschemas for named members: only one applies to each member."""
        return _subschemas_under(part, _NAMED_MEMBERS)

    def all(self) -> list[Schema]:
        """Every subschema that is written or referenced, once."""
        found: dict[int, Schema] = {}
        waiting: list[Subschema] = [self.root]
        while waiting:
            part = waiting.pop()
            if isinstance(part, bool) or id(part) in found:
                continue
            found[id(part)] = part
            waiting += [*self._below(part), *_subschemas_under(part, _DEFINITIONS)]
        return list(found.values())

    def patterns(self) -> Iterator[object]:
        for part in self.all():
            if "pattern" in part:
                yield part["pattern"]
            named = part.get("patternProperties")
            yield from named if isinstance(named, dict) else ()

    def depth(self) -> int:
        """How deeply subschemas are nested in the text; references are not followed."""
        deepest = 0
        level: list[Subschema] = [self.root]
        while level:
            deepest += 1
            level = [inner for part in level for inner in _subschemas_under(part, _ALL)]
        return deepest

    def size(self, *, at_most: int) -> int:
        """The number of subschemas, each counted as often as it is referenced; a recursion ends the count.

        Counting stops beyond `at_most`.
        """
        return self._size(self.root, {}, [], at_most)

    def has_idle_loop(self) -> bool:
        """True if following references leads back without consuming a level of the value."""
        done: set[int] = set()
        for start in self.all():
            path: list[tuple[int, list[Subschema]]] = [(id(start), self.on_the_same_value(start))]
            while path:
                here, ahead = path[-1]
                if not ahead:
                    done.add(here)
                    path.pop()
                    continue
                part = ahead.pop()
                if any(id(part) == passed for passed, _ in path) or len(path) > LONGEST_PATH:
                    return True
                if not isinstance(part, bool) and id(part) not in done:
                    path.append((id(part), self.on_the_same_value(part)))
        return False

    def _below(self, part: Subschema) -> list[Subschema]:
        return [*self.on_the_same_value(part), *self.on_members(part), *self.on_named_members(part)]

    def _size(self, part: Subschema, known: dict[int, int], path: list[int], at_most: int) -> int:
        if isinstance(part, bool) or id(part) in path:
            return 1
        if len(path) > LONGEST_PATH:
            return at_most + 1
        if id(part) not in known:
            path.append(id(part))
            total = 1
            for inner in self._below(part):
                total += self._size(inner, known, path, at_most)
                if total > at_most:
                    break
            path.pop()
            known[id(part)] = total
        return known[id(part)]


def target_of(schema: Schema, reference: str) -> Subschema | None:
    """The target of a reference inside the schema; None for any other reference."""
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


def _subschemas_under(part: Subschema, keywords: Sequence[str]) -> list[Subschema]:
    """The schemas under these keywords."""
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
