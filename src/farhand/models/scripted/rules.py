"""Rules from what a user says to the steps a model makes: the meaning of a script that was read from YAML.

Which step is next follows from the conversation alone, so a run that was parked for days goes on where
it was. Knows nothing of files or YAML.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from farhand.core.outcome import Success
from farhand.errors import ModelFault
from farhand.models.base import Stop, StopReason
from farhand.models.scripted.fill import Scope, Template, as_text, filled
from farhand.models.scripted.moment import Moment, Returned
from farhand.models.scripted.step import Ask, Fail, Item, Say, Think

# patterns are tried on words that a stranger typed: this bounds what one try can cost
_LOOKS_AT = 2_000

FILLS = frozenset({"text", "results", "tools"})
"""What every template may ask for, beside the groups of its rule's pattern."""


class CallLine(Struct, frozen=True):
    tool: str
    input: object
    """With a template for each text; or one template, whose text is sent as it stands."""
    id: str | None = None


class StepLine(Struct, frozen=True, kw_only=True):
    """One step as it is written down, and when it fits: no condition fits always."""

    on: frozenset[str] = frozenset()
    output: re.Pattern[str] | None = None
    think: Template | None = None
    text: Template | None = None
    calls: tuple[CallLine, ...] = ()
    fail: Template | None = None
    stop: StopReason | None = None
    delay: float | None = None

    def fits(self, last: Sequence[Returned]) -> bool:
        if self.on and not self.on & _kinds(last):
            return False
        return self.output is None or bool(last and _brought(last[-1], self.output))

    def items(self, scope: Scope) -> list[Item]:
        items: list[Item] = []
        if self.think is not None:
            items.append(Think(self.think.text(scope), self.delay))
        if self.text is not None:
            items.append(Say(self.text.text(scope), self.delay))
        items += [Ask(call.tool, filled(call.input, scope), call.id, self.delay) for call in self.calls]
        if self.fail is not None:
            items.append(Fail(self.fail.text(scope)))
        if self.stop is not None:
            items.append(Stop(self.stop))
        return items


class Rule(Struct, frozen=True):
    """What to do when a pattern is found in the user's words; without a pattern, whatever they are.

    `steps` holds, for each step of the model, the lines it may choose from: the first that fits.
    """

    place: str
    pattern: re.Pattern[str] | None
    steps: tuple[tuple[StepLine, ...], ...]


class Rules(Struct, frozen=True):
    """A whole script. The first rule that matches speaks."""

    rules: tuple[Rule, ...]

    def __call__(self, moment: Moment) -> list[Item]:
        for rule in self.rules:
            groups = _groups(rule, moment.text)
            if groups is not None:
                return _line(rule, moment).items(_scope(moment, groups))
        raise ModelFault(
            "No rule of the script matches what the user said.", hint="Add a `default` with steps to it."
        )


def _line(rule: Rule, moment: Moment) -> StepLine:
    if moment.steps >= len(rule.steps):
        raise ModelFault(
            f"The script has {len(rule.steps)} steps at {rule.place}, and the model was asked once more."
        )
    for line in rule.steps[moment.steps]:
        if line.fits(moment.last):
            return line
    got = ", ".join(sorted(_kinds(moment.last))) or "no result"
    raise ModelFault(f"No step {moment.steps + 1} at {rule.place} of the script fits: {got}.")


def _kinds(last: Sequence[Returned]) -> frozenset[str]:
    """Success only if all succeeded: one that did not is what there is to talk about."""
    bad = frozenset(each.kind for each in last if not isinstance(each.outcome, Success))
    return bad or frozenset(each.kind for each in last)


def _brought(result: Returned, pattern: re.Pattern[str]) -> bool:
    return isinstance(result.outcome, Success) and _found(pattern, as_text(result.output)) is not None


def _groups(rule: Rule, text: str) -> dict[str, object] | None:
    if rule.pattern is None:
        return {"0": text}
    match = _found(rule.pattern, text)
    if match is None:
        return None
    numbered = {str(number): words for number, words in enumerate(match.groups(), start=1)}
    given = {"0": match[0], **numbered, **match.groupdict()}
    return {name: words.strip() for name, words in given.items() if words is not None}


def _found(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return pattern.search(text[:_LOOKS_AT])


def _scope(moment: Moment, groups: dict[str, object]) -> Scope:
    results = [_plain(result) for result in moment.results]
    return {**groups, "text": moment.text, "tools": list(moment.tools), "results": results}


def _plain(result: Returned) -> dict[str, object]:
    known: dict[str, object] = {"tool": result.tool, "input": result.input, "kind": result.kind}
    if isinstance(result.outcome, Success):
        return {**known, "output": result.output}
    return {**known, "error": result.error}
