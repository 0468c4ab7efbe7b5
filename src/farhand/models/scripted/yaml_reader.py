"""Reads a YAML script into rules. Every mistake in it is a one-line `BadSetting` that names the place.

YAML becomes plain dictionaries, lists, strings and numbers, built from the parsed nodes, so no constructor
ever runs. Bare words follow YAML 1.2: `on`, `yes`, a date or `12:30` stay words. A duplicate key is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from farhand.errors import BadSetting, not_installed
from farhand.models.base import StopReason
from farhand.models.scripted.rules import (
    FILLS,
    BadTemplate,
    Rules,
    ScriptedCall,
    ScriptedStep,
    ScriptRule,
    Template,
    roots_in,
    templates_in,
)

try:
    import yaml
except ModuleNotFoundError as error:
    raise not_installed("Scripts in YAML", "yaml") from error

Kind = Literal["success", "failure", "denied", "timed_out", "cancelled"]


class CallShape(Struct, forbid_unknown_fields=True):
    tool: str
    # a string is sent unchanged, so that a script can contain invalid JSON
    input: dict[str, object] | str = {}
    id: str | None = None


class StepShape(Struct, forbid_unknown_fields=True):
    on: Kind | list[Kind] = []
    output: str | None = None
    think: str | None = None
    text: str | None = None
    calls: list[CallShape] = []
    fail: str | None = None
    stop: StopReason | None = None
    delay: Annotated[float, Meta(ge=0)] | None = None


class ChoiceShape(StepShape, forbid_unknown_fields=True):
    either: list[StepShape] = []


class DefaultShape(Struct, forbid_unknown_fields=True):
    steps: Annotated[list[ChoiceShape], Meta(min_length=1)]


class RuleShape(DefaultShape, forbid_unknown_fields=True):
    when: Annotated[str, Meta(min_length=1)]


class ScriptShape(Struct, forbid_unknown_fields=True):
    rules: list[RuleShape] = []
    default: DefaultShape | None = None


def read_script(source: str | Path) -> Rules:
    """From a file, or from YAML text: a `str` with a line break."""
    name, text = _load(source)
    try:
        document = read_yaml(text)
    except NotYaml as error:
        raise BadSetting(f"{name}, line {error.line}: {error}.") from error
    try:
        return Rules(tuple(_rules(msgspec.convert(document.value, ScriptShape))))
    except msgspec.ValidationError as error:
        raise _bad(name, document, *_describe(error)) from error
    except _ScriptError as error:
        raise _bad(name, document, error.place, str(error)) from error


class _ScriptError(Exception):
    def __init__(self, place: str, why: str) -> None:
        super().__init__(why)
        self.place = place


def _load(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and "\n" in source:
        return "The script", source
    path = Path(source)
    try:
        return path.name, path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadSetting(f"The script {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise BadSetting(f"The script {path.name} is not UTF-8 text.") from error


def _bad(name: str, document: Document, place: str, why: str) -> BadSetting:
    at = f" (at {place})" if place else ""
    return BadSetting(f"{name}, line {document.line_of(place)}: {why}{at}.")


_SHAPES: dict[str, type[Struct]] = {
    "": ScriptShape,
    "rules": RuleShape,
    "default": DefaultShape,
    "steps": ChoiceShape,
    "either": StepShape,
    "calls": CallShape,
}


def _describe(error: msgspec.ValidationError) -> tuple[str, str]:
    why, _, at = str(error).partition(" - at `$")
    place = at.removesuffix("`").removeprefix(".")
    inner = re.sub(r"\[\d+\]", "", place).rpartition(".")[2]
    shape = _SHAPES.get(inner)
    if "unknown field" in why and shape is not None:
        why = f"{why}; known fields are {', '.join(shape.__struct_fields__)}"
    return place, why


def _rules(script: ScriptShape) -> Iterator[ScriptRule]:
    for index, rule in enumerate(script.rules):
        place = f"rules[{index}]"
        pattern = _pattern(rule.when, f"{place}.when")
        yield ScriptRule(place, pattern, _Steps(place, _names(pattern)).read(rule.steps))
    if script.default is not None:
        yield ScriptRule("default", None, _Steps("default", frozenset({"0"})).read(script.default.steps))


def _pattern(when: str, place: str) -> re.Pattern[str]:
    """`/…/` is a regular expression, anything else is searched literally; case is ignored."""
    expression = when[1:-1] if len(when) > 2 and when[0] == when[-1] == "/" else re.escape(when)
    try:
        pattern = re.compile(expression, re.IGNORECASE)
    except re.error as error:
        raise _ScriptError(place, f"`{when}` is not a regular expression: {error}") from error
    taken = FILLS & pattern.groupindex.keys()
    if taken:
        raise _ScriptError(place, f"a group cannot be named `{min(taken)}`: the name is reserved")
    return pattern


def _names(pattern: re.Pattern[str]) -> frozenset[str]:
    return frozenset(map(str, range(pattern.groups + 1))) | pattern.groupindex.keys()


Shape = TypeVar("Shape")


class _Steps:
    """The steps of one rule; its templates may use the names of the groups in its pattern."""

    def __init__(self, place: str, names: frozenset[str]) -> None:
        self._place = place
        self._names = names | FILLS

    def read(self, steps: list[ChoiceShape]) -> tuple[tuple[ScriptedStep, ...], ...]:
        places = [f"{self._place}.steps[{index}]" for index in range(len(steps))]
        read = tuple(self._choice(step, place) for step, place in zip(steps, places, strict=True))
        if any(step.on or step.output for step in read[0]):
            raise _ScriptError(places[0], "the first step has no result, so it cannot have `on` or `output`")
        if any(step.calls and not step.stop and not step.fail for step in read[-1]):
            raise _ScriptError(
                places[-1], "the last step has `calls`: add the step that follows their results"
            )
        return read

    def _choice(self, step: ChoiceShape, place: str) -> tuple[ScriptedStep, ...]:
        if not step.either:
            return (self._step(step, place),)
        if step != ChoiceShape(either=step.either):
            raise _ScriptError(place, "`either` must be the only key: move the other keys into its steps")
        return tuple(self._step(each, f"{place}.either[{index}]") for index, each in enumerate(step.either))

    def _step(self, step: StepShape, place: str) -> ScriptedStep:
        if step.think is step.text is step.fail is step.stop is None and not step.calls:
            raise _ScriptError(place, "the step is empty: add `text` or `calls`")
        return ScriptedStep(
            on=frozenset([step.on] if isinstance(step.on, str) else step.on),
            output=None if step.output is None else _pattern(step.output, f"{place}.output"),
            think=self._words(step.think, f"{place}.think"),
            text=self._words(step.text, f"{place}.text"),
            calls=tuple(
                ScriptedCall(call.tool, self._known(call.input, f"{place}.calls[{index}].input"), call.id)
                for index, call in enumerate(step.calls)
            ),
            fail=self._words(step.fail, f"{place}.fail"),
            stop=step.stop,
            delay=step.delay,
        )

    def _words(self, text: str | None, place: str) -> Template | None:
        words = None if text is None else self._known(text, place)
        return words if isinstance(words, Template) else None

    def _known(self, value: object, place: str) -> object:
        try:
            templates = templates_in(value)
        except BadTemplate as error:
            raise _ScriptError(place, str(error)) from error
        unknown = roots_in(templates) - self._names
        if unknown:
            raise _ScriptError(
                place,
                f"`{{{min(unknown)}}}` is unknown here; known names are {', '.join(sorted(self._names))}",
            )
        return templates


_BARE: dict[str, object] = {"": None, "~": None, "null": None, "true": True, "false": False}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
_PLACE = re.compile(r"(?P<key>[^.\[\]]+)|\[(?P<index>\d+)\]")


class NotYaml(ValueError):
    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


class Document(Struct, frozen=True):
    value: object
    root: object

    def line_of(self, place: str) -> int:
        """The line of `rules[0].steps`; if only a part of the place exists, the line of that part."""
        node = self.root
        for step in _PLACE.finditer(place):
            inner = _inside(node, step["key"], int(step["index"] or 0))
            if inner is None:
                break
            node = inner
        return _line(node)


def read_yaml(text: str) -> Document:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        return Document(_value(root), root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise NotYaml(mark.line + 1 if mark else 1, str(error.problem or error.context)) from error
    except yaml.YAMLError as error:
        raise NotYaml(1, str(error).splitlines()[0]) from error
    except RecursionError as error:
        raise NotYaml(1, "it contains itself or is nested too deeply") from error


def _value(node: object) -> object:
    match node:
        case yaml.MappingNode():
            return _mapping(node)
        case yaml.SequenceNode():
            return [_value(each) for each in node.value]
        case yaml.ScalarNode():
            return _scalar(node)
        case _:
            return None


def _mapping(node: yaml.MappingNode) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise NotYaml(_line(key), "a key must be a plain string")
        if key.value in found:
            raise NotYaml(_line(key), f"the key `{key.value}` is used twice")
        found[key.value] = _value(value)
    return found


def _scalar(node: yaml.ScalarNode) -> object:
    if not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
        raise NotYaml(_line(node), f"values of type `{node.tag}` are not supported")
    text = str(node.value)
    bare = node.style is None and not node.tag.endswith(":str")
    if bare and text in _BARE:
        return _BARE[text]
    number: object = json.loads(text) if bare and _NUMBER.fullmatch(text) else text
    return number


def _inside(node: object, key: str | None, index: int) -> object:
    if key is None and isinstance(node, yaml.SequenceNode) and index < len(node.value):
        return node.value[index]
    if isinstance(node, yaml.MappingNode):
        return next((value for name, value in node.value if name.value == key), None)
    return None


def _line(node: object) -> int:
    return node.start_mark.line + 1 if isinstance(node, yaml.Node) else 1
