"""The gate for schemas that come from outside: what passes can be checked against without harm.

Owns the rules: an object, references inside the schema alone and never in a circle, a bounded size, and a
bounded cost for every input. Nothing is ever fetched. It must not know clients or wires.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from farhand.core.outcome import canonical
from farhand.core.tool import Schema, Tool
from farhand.errors import BadTool
from farhand.tools.burden import LARGEST_PROGRAM, Burden, burden_of, program_size
from farhand.tools.check import checker
from farhand.tools.docstring import cleaned
from farhand.tools.plain import shortened
from farhand.tools.subschemas import Subschemas, target_of

MOST_BYTES = 32 * 1024
MOST_NODES = 10_000
DEEPEST = 16
LONGEST_PATTERN = 256

MOST_STEPS = 2_000_000
"""Of checking, for one input: about 50 ms, in which nothing else happens in the process."""
MOST_MATCHING = 150_000_000
"""Bytes of compiled patterns times characters of the input: about the same time."""

SMALL_INPUT = 64
"""Bytes. A tool whose schema can't even be used for that much is not taken."""

BURDENS_KEPT = 512


def admitted(schema: object, what: str) -> Schema:
    """The schema of an input as it is kept. Anything that does not pass is `BadTool`."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise BadTool(f"{what} does not describe an object.", hint='Send {"type": "object", …}, or {}.')
    return admitted_output({"type": "object", **schema}, what)


def admitted_output(schema: object, what: str) -> Schema:
    """The same for an output, which may be anything. Its words are cleaned."""
    if not isinstance(schema, dict):
        raise BadTool(f"{what} is not a JSON Schema.", hint="Send an object, such as {}.")
    if len(canonical(schema)) > MOST_BYTES:
        raise BadTool(f"{what} is larger than {MOST_BYTES} bytes.")
    kept = _in_clean_words(schema, what)
    _refuse_keywords(kept, what)
    _refuse_shape(kept, what)
    _refuse_burden(kept, what)
    try:
        checker(kept)
    except BadTool as error:
        raise BadTool(f"{what} cannot be used. {error.message}", hint=error.hint) from error
    return kept


def complaint_about(tool: Tool, input: object) -> str | None:
    """What is wrong with an input of this tool, as a sentence without a full stop, or None if it fits."""
    too_large = None if tool.client_id is None else _weighed(tool.input_schema, input)
    return too_large or checker(tool.input_schema).complaint(input)


def complaint_about_output(tool: Tool, output: object) -> str | None:
    schema = tool.output_schema
    if schema is None:
        return None
    too_large = None if tool.client_id is None else _weighed(schema, output)
    return too_large or checker(schema).complaint(output)


def _weighed(schema: Schema, value: object) -> str | None:
    """A value for a schema from outside is weighed first: what would take too long to check is refused."""
    size = len(canonical(value))
    burden = _burden(canonical(schema))
    # a node of JSON takes two bytes at the least
    if burden.steps * (size // 2) > MOST_STEPS or burden.matching * size > MOST_MATCHING:
        return f"a value of {size} bytes is too large to be checked against the schema of this tool"
    return None


@lru_cache(maxsize=BURDENS_KEPT)
def _burden(schema: bytes) -> Burden:
    return burden_of(Subschemas(msgspec.json.decode(schema)))


_REFUSED = {
    "$id": "a schema from outside has no address of its own",
    "id": "a schema from outside has no address of its own",
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
    """Wherever they stand: also in a definition that nothing refers to."""
    for key, value in _members(schema):
        # a property may have any name; what it holds is a schema, and no keyword here takes one
        if key in _REFUSED and (isinstance(value, str) or key.startswith("unevaluated")):
            raise BadTool(f"{what} has `{key}`.", hint=f"{_REFUSED[key].capitalize()}.")
        if key == "$schema" and isinstance(value, str) and not value.startswith(_DRAFTS):
            raise BadTool(f"{what} is written in an unknown dialect.", hint="Use JSON Schema 2020-12.")
        if key == "$ref" and isinstance(value, str) and target_of(schema, value) is None:
            raise BadTool(
                f"{what} refers to '{shortened(value)}'.",
                hint="Only references to its own parts are followed, such as #/$defs/item.",
            )


def _refuse_shape(schema: Schema, what: str) -> None:
    parts = Subschemas(schema)
    if parts.has_idle_loop():
        raise BadTool(f"{what} has references that go in a circle, or too far.", hint="Write it out.")
    if parts.depth() > DEEPEST:
        raise BadTool(f"{what} nests more than {DEEPEST} levels deep.")
    if parts.size(at_most=MOST_NODES) > MOST_NODES:
        raise BadTool(f"{what} has more than {MOST_NODES} parts when its references are followed.")
    _refuse_patterns(list(parts.patterns()), what)


def _refuse_patterns(patterns: list[object], what: str) -> None:
    total = 0
    for pattern in patterns:
        if not isinstance(pattern, str) or len(pattern) > LONGEST_PATTERN:
            raise BadTool(f"{what} has a pattern of more than {LONGEST_PATTERN} characters, or of no text.")
        size = program_size(pattern)
        if size > LARGEST_PROGRAM:
            raise BadTool(
                f"{what} has a pattern that can't be matched in linear time: {shortened(pattern, 60)}",
                hint="Do without look-around, back references and large repetitions.",
            )
        total += size
    # all of them are compiled at once, and nothing else happens meanwhile
    if total > 4 * LARGEST_PROGRAM:
        raise BadTool(f"{what} has too many large patterns.", hint="Do with less or simpler ones.")


def _refuse_burden(schema: Schema, what: str) -> None:
    """Even a small input must be cheap to check: a recursion may multiply what is done on each level."""
    burden = _burden(canonical(schema))
    if burden.steps > MOST_STEPS // SMALL_INPUT or burden.matching > MOST_MATCHING // SMALL_INPUT:
        raise BadTool(f"{what} would take too long to check.", hint="Simplify its choices and patterns.")


def _members(value: object) -> Iterator[tuple[str, object]]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield from node.items()
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


_WORDS = ("description", "title", "$comment")


def _in_clean_words(value: Schema, what: str) -> Schema:
    return {key: _clean(key, member, what) for key, member in value.items()}


def _clean(key: str, member: object, what: str) -> object:
    """What the model reads of it must hide nothing."""
    if isinstance(member, str):
        return cleaned(member, what) if key in _WORDS else member
    if isinstance(member, dict):
        return _in_clean_words(member, what)
    if isinstance(member, list):
        return [_clean("", each, what) for each in member]
    return member
