"""Whether a person answers a call with a press, or has to type, pick a file or take a photo.

Owns the cards that a press answers, and which of them a page shows for a tool that names none: the page
guesses the card from the same schemas (`ts/packages/react/src/guess.ts`), and `tests/guessed_cards.json`
holds both to the same answers. Must not know deadlines: `decide/opening.py` has those.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farhand.core.tool import Schema, Tool

PRESSED_CARDS = frozenset({"confirm", "select", "location", "clipboard", "open_page"})
# as a docstring says it when the return type is only `str`
_YES_OR_NO = re.compile(
    r"Returns:\s*[\"'“`]?yes[\"'”`]?\s*(?:or|/|,)\s*[\"'“`]?no[\"'”`]?[.\s]*\Z", re.IGNORECASE
)
_PERCENT_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_STEPS_AT_MOST = 8


def is_answered_by_a_press(tool: Tool) -> bool:
    """Any other card takes longer, one that only the page knows included."""
    if tool.card is not None:
        return tool.card in PRESSED_CARDS
    schema = tool.output_schema or {}
    output = _resolved(schema, schema)
    inputs = _inputs(tool.input_schema)
    if _has_choices(output) or (_is_text(output) and _offers_options(inputs)):
        return True
    asks_one_thing = [each.get("type") for each in inputs.values()] == ["string"]
    return asks_one_thing and (_type(output) == "boolean" or _says_yes_or_no(output, tool.description))


def _has_choices(output: Schema) -> bool:
    values = output.get("enum")
    return isinstance(values, list) and bool(values) and all(_is_plain(each) for each in values)


def _is_plain(value: object) -> bool:
    # to Python, and only to Python, True is an int
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_text(output: Schema) -> bool:
    return output.get("type") == "string" and "enum" not in output and "format" not in output


def _says_yes_or_no(output: Schema, description: str) -> bool:
    return _is_text(output) and _YES_OR_NO.search(description) is not None


def _offers_options(inputs: dict[str, Schema]) -> bool:
    options = inputs.get("options", {})
    return options.get("type") == "array" and _rule(options.get("items")).get("type") == "string"


def _inputs(schema: Schema) -> dict[str, Schema]:
    return {name: _resolved(_rule(each), schema) for name, each in _rule(schema.get("properties")).items()}


def _type(rule: Schema) -> object:
    """The one type of a rule, not counting null."""
    named = rule.get("type")
    types = [each for each in (named if isinstance(named, list) else [named]) if each != "null"]
    return types[0] if len(types) == 1 else None


def _resolved(rule: Schema, root: Schema) -> Schema:
    """The rule with its references followed, and without the null that it may be instead."""
    # a schema may refer to itself
    for _ in range(_STEPS_AT_MOST):
        reference = rule.get("$ref")
        if isinstance(reference, str):
            rule = {**_at(root, reference), **_without(rule, "$ref")}
            continue
        only = _only_choice(rule)
        if only is None:
            break
        rule = {**only, **_without(rule, "anyOf", "oneOf")}
    return rule


def _at(root: Schema, reference: str) -> Schema:
    """The target of a reference such as `#/$defs/Place`; an empty rule for any other reference."""
    place = root if reference.startswith("#/") else {}
    for step in reference.removeprefix("#/").split("/"):
        place = _rule(place.get(_decoded(step).replace("~1", "/").replace("~0", "~")))
    return place


def _decoded(step: str) -> str:
    """A segment that is not valid percent-encoding is used as it is."""
    if _STRAY_PERCENT.search(step):
        return step
    try:
        return _PERCENT_ENCODED.sub(lambda code: bytes.fromhex(code[0].replace("%", "")).decode(), step)
    except UnicodeDecodeError:
        return step


def _only_choice(rule: Schema) -> Schema | None:
    choices = rule.get("anyOf") or rule.get("oneOf")
    if not isinstance(choices, list):
        return None
    others = [_rule(each) for each in choices if _rule(each).get("type") != "null"]
    return others[0] if len(others) == 1 < len(choices) else None


def _without(rule: Schema, *names: str) -> Schema:
    return {name: value for name, value in rule.items() if name not in names}


def _rule(value: object) -> Schema:
    return value if isinstance(value, dict) else {}
