"""Rules from what a user says to the steps of a model: the meaning of a script that was read from YAML.

The next step follows from the conversation alone, so a run that was parked for days continues where it was.
`{name.path[0]|fallback}` in a text is filled with values from the conversation: a path follows dictionaries
by key and lists by number and nothing else, and filled text is never filled again, so a user's text cannot
reach anything. Knows nothing of files or YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import quote

import msgspec
from msgspec import Struct

from farhand.core.outcome import Success
from farhand.errors import ModelFault
from farhand.models.base import Stop, StopReason
from farhand.models.scripted.model import Ask, Fail, Moment, Say, ScriptItem, Think, ToolResult

# patterns are matched against text of strangers: this bounds the cost of one match
_SEARCHED_CHARS = 2_000

FILLS = frozenset({"text", "results", "tools"})
"""Names that every template may use, besides the groups of its rule's pattern."""


class ScriptedCall(Struct, frozen=True):
    tool: str
    input: object
    """With a template for each string; or one template, whose text is sent unchanged."""
    id: str | None = None


class ScriptedStep(Struct, frozen=True, kw_only=True):
    """One step of the script and its conditions; without a condition it always fits."""

    on: frozenset[str] = frozenset()
    output: re.Pattern[str] | None = None
    think: Template | None = None
    text: Template | None = None
    calls: tuple[ScriptedCall, ...] = ()
    fail: Template | None = None
    stop: StopReason | None = None
    delay: float | None = None

    def fits(self, last: Sequence[ToolResult]) -> bool:
        if self.on and not self.on & _kinds(last):
            return False
        return self.output is None or bool(last and _output_matches(last[-1], self.output))

    def items(self, scope: Scope) -> list[ScriptItem]:
        items: list[ScriptItem] = []
        if self.think is not None:
            items.append(Think(self.think.text(scope), self.delay))
        if self.text is not None:
            items.append(Say(self.text.text(scope), self.delay))
        items += [
            Ask(call.tool, fill_templates(call.input, scope), call.id, self.delay) for call in self.calls
        ]
        if self.fail is not None:
            items.append(Fail(self.fail.text(scope)))
        if self.stop is not None:
            items.append(Stop(self.stop))
        return items


class ScriptRule(Struct, frozen=True):
    """What to do if a pattern is found in the user's text; without a pattern, for any text.

    `steps` holds, for each step of the model, those to choose from: the first one that fits.
    """

    place: str
    pattern: re.Pattern[str] | None
    steps: tuple[tuple[ScriptedStep, ...], ...]


class Rules(Struct, frozen=True):
    """A whole script. The first rule that matches counts."""

    rules: tuple[ScriptRule, ...]

    def __call__(self, moment: Moment) -> list[ScriptItem]:
        for rule in self.rules:
            groups = _groups(rule, moment.text)
            if groups is not None:
                return _step_for(rule, moment).items(_scope(moment, groups))
        raise ModelFault(
            "No rule of the script matches the user's message.", hint="Add a `default` with steps."
        )


def _step_for(rule: ScriptRule, moment: Moment) -> ScriptedStep:
    if moment.steps >= len(rule.steps):
        raise ModelFault(
            f"The script has {len(rule.steps)} steps at {rule.place}, but the model was asked once more."
        )
    for step in rule.steps[moment.steps]:
        if step.fits(moment.last):
            return step
    got = ", ".join(sorted(_kinds(moment.last))) or "no result"
    raise ModelFault(f"No step {moment.steps + 1} at {rule.place} of the script fits: {got}.")


def _kinds(last: Sequence[ToolResult]) -> frozenset[str]:
    """Success only if all calls succeeded: otherwise the others matter."""
    bad = frozenset(each.kind for each in last if not isinstance(each.outcome, Success))
    return bad or frozenset(each.kind for each in last)


def _output_matches(result: ToolResult, pattern: re.Pattern[str]) -> bool:
    return isinstance(result.outcome, Success) and _search(pattern, as_text(result.output)) is not None


def _groups(rule: ScriptRule, text: str) -> dict[str, object] | None:
    if rule.pattern is None:
        return {"0": text}
    match = _search(rule.pattern, text)
    if match is None:
        return None
    numbered = {str(number): words for number, words in enumerate(match.groups(), start=1)}
    given = {"0": match[0], **numbered, **match.groupdict()}
    return {name: words.strip() for name, words in given.items() if words is not None}


def _search(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return pattern.search(text[:_SEARCHED_CHARS])


def _scope(moment: Moment, groups: dict[str, object]) -> Scope:
    results = [_as_dict(result) for result in moment.results]
    return {**groups, "text": moment.text, "tools": list(moment.tools), "results": results}


def _as_dict(result: ToolResult) -> dict[str, object]:
    known: dict[str, object] = {"tool": result.tool, "input": result.input, "kind": result.kind}
    if isinstance(result.outcome, Success):
        return {**known, "output": result.output}
    return {**known, "error": result.error}


Scope: TypeAlias = Mapping[str, object]

_TOKEN = re.compile(r"\{\{|\}\}|\{(?P<fill>[^{}]*)\}|[{}]")
_PATH = re.compile(r"(?P<root>\w+)(?P<rest>(?:\.[^.\[\]|\s]+|\[-?\d+\])*)")
_STEP = re.compile(r"\.(?P<key>[^.\[\]]+)|\[(?P<index>-?\d+)\]")
_IN_URL = "url:"


class BadTemplate(ValueError):
    """The text is not a valid template; the message says why."""


class Fill(Struct, frozen=True):
    """One `{…}`: a path through the scope, and the text to use if it does not exist.

    `{url:…}` is percent-encoded, to stand in the query of an address.
    """

    source: str
    path: tuple[str | int, ...]
    fallback: str | None = None
    in_url: bool = False

    def value(self, scope: Scope) -> object:
        found: object = scope
        for key in self.path:
            found = _step_into(found, key)
        if found is not _NOTHING:
            return quote(as_text(found), safe="") if self.in_url else found
        if self.fallback is None:
            raise ModelFault(
                f"The script uses {{{self.source}}}, but there is no such value.",
                hint=f"Add a fallback: {{{self.source}|…}}.",
            )
        return self.fallback


class Template(Struct, frozen=True):
    """Text with fills."""

    pieces: tuple[str | Fill, ...]

    @property
    def roots(self) -> frozenset[str]:
        """The names that it needs from the scope."""
        return frozenset(str(piece.path[0]) for piece in self.pieces if isinstance(piece, Fill))

    def text(self, scope: Scope) -> str:
        return "".join(
            piece if isinstance(piece, str) else as_text(piece.value(scope)) for piece in self.pieces
        )

    def value(self, scope: Scope) -> object:
        """The text; for a single fill, the value itself: a number stays a number."""
        if len(self.pieces) == 1 and isinstance(self.pieces[0], Fill):
            return self.pieces[0].value(scope)
        return self.text(scope)


def parse_template(text: str) -> Template:
    """Double braces are literal braces. Raises `BadTemplate` for any other mistake."""
    return Template(tuple(_pieces(text)))


def templates_in(value: object) -> object:
    """The same lists and dictionaries, with a template for each string."""
    match value:
        case str():
            return parse_template(value)
        case list():
            return [templates_in(each) for each in value]
        case dict():
            return {key: templates_in(each) for key, each in value.items()}
        case _:
            return value


def fill_templates(value: object, scope: Scope) -> object:
    """The result of `templates_in` with the values of this scope."""
    match value:
        case Template():
            return value.value(scope)
        case list():
            return [fill_templates(each, scope) for each in value]
        case dict():
            return {key: fill_templates(each, scope) for key, each in value.items()}
        case _:
            return value


def roots_in(value: object) -> frozenset[str]:
    match value:
        case Template():
            return value.roots
        case list():
            return frozenset().union(*map(roots_in, value))
        case dict():
            return frozenset().union(*map(roots_in, value.values()))
        case _:
            return frozenset()


def as_text(value: object) -> str:
    """A string unchanged, a list of simple values separated by commas, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and not any(isinstance(each, list | dict) for each in value):
        return ", ".join(map(as_text, value))
    return msgspec.json.encode(value).decode()


_NOTHING = object()


def _step_into(value: object, key: str | int) -> object:
    if isinstance(value, Mapping) and isinstance(key, str):
        return value.get(key, _NOTHING)
    if isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
        return value[key]
    return _NOTHING


def _pieces(text: str) -> Iterator[str | Fill]:
    words = ""
    end = 0
    for token in _TOKEN.finditer(text):
        words += text[end : token.start()]
        end = token.end()
        if token["fill"] is None:
            words += _brace(token[0])
            continue
        if words:
            yield words
        words = ""
        yield _fill(token["fill"])
    if words + text[end:]:
        yield words + text[end:]


def _brace(token: str) -> str:
    if len(token) == 1:
        raise BadTemplate(f"a single `{token}`; write `{token}{token}` for the character itself")
    return token[0]


def _fill(source: str) -> Fill:
    way, bar, fallback = source.partition("|")
    path = _PATH.fullmatch(way.removeprefix(_IN_URL))
    if path is None:
        raise BadTemplate(f"`{{{source}}}` is not a path such as `results[0].output.name`")
    keys = (step["key"] or int(step["index"]) for step in _STEP.finditer(path["rest"]))
    return Fill(way, (path["root"], *keys), fallback if bar else None, way.startswith(_IN_URL))
