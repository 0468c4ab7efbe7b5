"""Checks a value against a JSON Schema.

Owns the compiled validators: draft 2020-12, nothing ever fetched, patterns matched in linear time. It must
not know tools, calls or Python signatures; what a mismatch is called is the business of `wording`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import msgspec
from jsonschema_rs import Draft202012Validator, ReferencingError, RegexOptions, ValidationError

from farhand.core.outcome import canonical
from farhand.core.tool import Schema
from farhand.errors import BadTool
from farhand.tools.plain import name_of, shortened
from farhand.tools.wording import sentence

SCHEMAS_KEPT = 512
SMALL = 2_000
"""Nodes. In a larger value the validator would first list every mismatch under `anyOf`, for seconds."""


def complaint(schema: Schema, value: object) -> str | None:
    """What is wrong with the value, as a sentence without a full stop, or None if it fits."""
    return checker(schema).complaint(value)


def checker(schema: Schema) -> Checker:
    """The compiled form of this schema, made once per content. What cannot be a schema is `BadTool`."""
    known = _known.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    made = _compiled(canonical(schema))
    if len(_known) >= SCHEMAS_KEPT:
        _known.clear()
    _known[id(schema)] = (schema, made)
    return made


class Checker:
    """One schema, compiled."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._has_choices = any(mark in canonical(schema) for mark in (b'"anyOf"', b'"oneOf"'))
        self._validator = _validator(schema)

    def complaint(self, value: object) -> str | None:
        try:
            if self._has_choices and self._validator.is_valid(value):
                return None
            if self._has_choices and not _is_small(value):
                return f"{self._member_at_fault(value)} does not fit its schema"
            self._validator.validate(value)
        except ValidationError as error:
            return sentence(error)
        except ValueError:
            # what the validator cannot even read: bytes, a key that is no string, a loop, half a character
            return "the value is not JSON, or nests too deeply"
        return None

    def _member_at_fault(self, value: object) -> str:
        """A large value is checked member by member, which tells at least which one it is."""
        members = value if isinstance(value, dict) else {}
        alone = _validator({key: rule for key, rule in self._schema.items() if key != "required"})
        for name, member in members.items():
            if not alone.is_valid({name: member}):
                return name_of((name,))
        return "the value"


_known: dict[int, tuple[Schema, Checker]] = {}
"""By the very object, which is kept with it: a tool's schema is never changed, and large ones are long to
write out for a look-up with every result."""


@lru_cache(maxsize=SCHEMAS_KEPT)
def _compiled(schema: bytes) -> Checker:
    return Checker(msgspec.json.decode(schema))


def _validator(schema: Schema) -> Draft202012Validator:
    try:
        return Draft202012Validator(schema, pattern_options=RegexOptions(), offline=True)
    except (ValueError, ReferencingError) as error:
        why = shortened(str(error).partition("\n")[0])
        raise BadTool(
            f"A schema cannot be used: {why}.",
            hint="It must be JSON Schema 2020-12 with local references and patterns without look-around.",
        ) from error


def _is_small(value: object) -> bool:
    return sum(1 for _ in islice(_nodes(value), SMALL + 1)) <= SMALL


def _nodes(value: object) -> Iterator[object]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, dict):
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
