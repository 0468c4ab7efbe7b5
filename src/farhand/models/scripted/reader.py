"""Reads a YAML script into rules. Whatever is wrong with it is one `BadSetting` line that names the place."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from farhand.errors import BadSetting
from farhand.models.base import StopReason
from farhand.models.scripted.fill import BadTemplate, Template, roots_in, templates_in
from farhand.models.scripted.plain_yaml import Document, NotYaml, read_yaml
from farhand.models.scripted.rules import FILLS, CallLine, Rule, Rules, StepLine

Kind = Literal["success", "failure", "denied", "timed_out", "cancelled"]


class CallShape(Struct, forbid_unknown_fields=True):
    tool: str
    # a text is sent as it stands, so that a script can write bad JSON, too
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
    """From a file, or from the text itself: a `str` with a line break in it."""
    name, text = _load(source)
    try:
        document = read_yaml(text)
    except NotYaml as error:
        raise BadSetting(f"{name}, line {error.line}: {error}.") from error
    try:
        return Rules(tuple(_rules(msgspec.convert(document.value, ScriptShape))))
    except msgspec.ValidationError as error:
        raise _bad(name, document, *_said(error)) from error
    except _Wrong as error:
        raise _bad(name, document, error.place, str(error)) from error


class _Wrong(Exception):
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


def _said(error: msgspec.ValidationError) -> tuple[str, str]:
    why, _, at = str(error).partition(" - at `$")
    place = at.removesuffix("`").removeprefix(".")
    inner = re.sub(r"\[\d+\]", "", place).rpartition(".")[2]
    shape = _SHAPES.get(inner)
    if "unknown field" in why and shape is not None:
        why = f"{why}, known here are {', '.join(shape.__struct_fields__)}"
    return place, why


def _rules(script: ScriptShape) -> Iterator[Rule]:
    for index, rule in enumerate(script.rules):
        place = f"rules[{index}]"
        pattern = _pattern(rule.when, f"{place}.when")
        yield Rule(place, pattern, _Steps(place, _names(pattern)).read(rule.steps))
    if script.default is not None:
        yield Rule("default", None, _Steps("default", frozenset({"0"})).read(script.default.steps))


def _pattern(when: str, place: str) -> re.Pattern[str]:
    """`/…/` is an expression, anything else is looked for as it stands; case never counts."""
    expression = when[1:-1] if len(when) > 2 and when[0] == when[-1] == "/" else re.escape(when)
    try:
        pattern = re.compile(expression, re.IGNORECASE)
    except re.error as error:
        raise _Wrong(place, f"`{when}` is no regular expression: {error}") from error
    taken = FILLS & pattern.groupindex.keys()
    if taken:
        raise _Wrong(place, f"a group cannot be named `{min(taken)}`: that name is taken")
    return pattern


def _names(pattern: re.Pattern[str]) -> frozenset[str]:
    return frozenset(map(str, range(pattern.groups + 1))) | pattern.groupindex.keys()


Shape = TypeVar("Shape")


class _Steps:
    """The steps of one rule, whose groups' names are what its templates may use."""

    def __init__(self, place: str, names: frozenset[str]) -> None:
        self._place = place
        self._names = names | FILLS

    def read(self, steps: list[ChoiceShape]) -> tuple[tuple[StepLine, ...], ...]:
        places = [f"{self._place}.steps[{index}]" for index in range(len(steps))]
        read = tuple(self._choice(step, place) for step, place in zip(steps, places, strict=True))
        if any(line.on or line.output for line in read[0]):
            raise _Wrong(places[0], "the first step has no result to look at: no `on`, no `output`")
        if any(line.calls and not line.stop and not line.fail for line in read[-1]):
            raise _Wrong(places[-1], "the last step has `calls`: write down what follows their results")
        return read

    def _choice(self, step: ChoiceShape, place: str) -> tuple[StepLine, ...]:
        if not step.either:
            return (self._line(step, place),)
        if step != ChoiceShape(either=step.either):
            raise _Wrong(place, "`either` stands alone: move the other keys into its steps")
        return tuple(self._line(each, f"{place}.either[{index}]") for index, each in enumerate(step.either))

    def _line(self, step: StepShape, place: str) -> StepLine:
        if step.think is step.text is step.fail is step.stop is None and not step.calls:
            raise _Wrong(place, "the step says nothing: give it `text` or `calls`")
        return StepLine(
            on=frozenset([step.on] if isinstance(step.on, str) else step.on),
            output=None if step.output is None else _pattern(step.output, f"{place}.output"),
            think=self._words(step.think, f"{place}.think"),
            text=self._words(step.text, f"{place}.text"),
            calls=tuple(self._call(call, f"{place}.calls[{index}]") for index, call in enumerate(step.calls)),
            fail=self._words(step.fail, f"{place}.fail"),
            stop=step.stop,
            delay=step.delay,
        )

    def _call(self, call: CallShape, place: str) -> CallLine:
        return CallLine(call.tool, self._known(call.input, f"{place}.input"), call.id)

    def _words(self, text: str | None, place: str) -> Template | None:
        words = None if text is None else self._known(text, place)
        return words if isinstance(words, Template) else None

    def _known(self, value: object, place: str) -> object:
        try:
            templates = templates_in(value)
        except BadTemplate as error:
            raise _Wrong(place, str(error)) from error
        unknown = roots_in(templates) - self._names
        if unknown:
            raise _Wrong(
                place,
                f"nothing is called `{{{min(unknown)}}}` here, known are {', '.join(sorted(self._names))}",
            )
        return templates
