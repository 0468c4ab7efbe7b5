"""A declared tool knows when to ask, and turns JSON into arguments."""

from __future__ import annotations

import dataclasses
import logging
import math
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, ConfigDict

from farhand.core.outcome import Failure
from farhand.core.tool import Schema
from farhand.tools.declared import DeclaredTool, NeedsApproval
from farhand.tools.decorate import declare_explicitly, tool
from tests.requirement import requirement


class Unit(Enum):
    C = "celsius"


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    since: date


@dataclasses.dataclass
class Span:
    days: int


def _even(number: int) -> int:
    if number % 2:
        raise ValueError("odd numbers are not sold")
    if number == 0:
        raise KeyError("no such number")
    return number


Even = Annotated[int, AfterValidator(_even)]


@tool
def plan(
    folder: Path, unit: Unit, strict: Strict, span: Span, when: date | None = None, even: Even = 2
) -> None:
    """Plan.

    Args:
        folder: Where to.
        unit: Of temperature.
        strict: Since when.
        span: How long.
        when: The day.
        even: An even number.
    """


GOOD: dict[str, object] = {
    "folder": "a/b",
    "unit": "celsius",
    "strict": {"since": "2026-01-02"},
    "span": {"days": 3},
}


def test_arguments_arrive_as_the_types_that_were_declared() -> None:
    assert plan.bind({**GOOD, "when": "2026-05-06", "even": 4}) == {
        "folder": Path("a/b"),
        "unit": Unit.C,
        "strict": Strict(since=date(2026, 1, 2)),
        "span": Span(3),
        "when": date(2026, 5, 6),
        "even": 4,
    }


@requirement("tools:bad-input")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"unit": "kelvin"}, 'Invalid input for `plan`: `unit` must be one of "celsius", got "kelvin".'),
        ({"span": {}}, "Invalid input for `plan`: `span.days` is missing."),
        ({"extra": 1}, "Invalid input for `plan`: `extra` is not expected."),
        ({"when": "tomorrow"}, "Invalid input for `plan`: `when` was refused: Input should be a valid date"),
        ({"even": 3}, "Invalid input for `plan`: `even` was refused: Value error, odd numbers are not sold."),
        ({"even": 0}, "KeyError: 'no such number'"),
    ],
)
def test_bad_input_is_a_failure_that_names_the_parameter(change: dict[str, object], sentence: str) -> None:
    failed = plan.bind({**GOOD, **change})
    assert isinstance(failed, Failure)
    assert failed.error.startswith(sentence)


ANYTHING: Schema = {"type": "object"}


def _loop() -> dict[str, object]:
    inside: dict[str, object] = {}
    inside["x"] = inside
    return inside


@requirement("tools:bad-input")
@pytest.mark.parametrize(
    ("input", "sentence"),
    [
        ({"x": [math.nan]}, "`x[0]` is not a finite number"),
        ({"x": "\ud800"}, "`x` is text with a lone surrogate"),
        (_loop(), f"`{'x.' * 59}x…` is nested more than 64 levels deep or contains itself"),
        ({"x": b""}, "`x` is a bytes"),
        ({"x": date(2026, 1, 2)}, "the value is not JSON"),
    ],
)
def test_input_that_is_no_json_is_a_failure_where_the_schema_does_not_look(
    input: object, sentence: str
) -> None:
    free = declare_explicitly("free", "Take anything.", ANYTHING, dict, {})
    # older versions of the validator look at all of a value, whatever the schema says
    sentences = (sentence, "the value is not JSON or is nested too deeply")
    assert free.bind(input) in [Failure(f"Invalid input for `free`: {each}.") for each in sentences]


def test_an_explicit_tool_gets_the_members_of_the_input_as_a_copy() -> None:
    free = declare_explicitly("free", "Take anything.", ANYTHING, dict, {})
    input = {"rows": [1], "größe": 2}
    bound = free.bind(input)
    assert bound == input
    input["rows"] = []
    assert bound == {"rows": [1], "größe": 2}
    assert free.bind([1]) == Failure("Invalid input for `free`: the value must be an object, got an array.")


@pytest.mark.slow
@requirement("tools:bad-input")
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "even", "z"]), inner)
        ),
        max_leaves=15,
    )
)
def test_no_input_makes_binding_raise(input: object) -> None:
    assert isinstance(plan.bind(input), dict | Failure)
    assert isinstance(plan.bind({**GOOD, "even": input}), dict | Failure)


def asking(needs_approval: Any) -> DeclaredTool[..., object]:
    return declare_explicitly("free", "Do.", ANYTHING, dict, {"needs_approval": needs_approval})


@requirement("tools:needs-approval")
@pytest.mark.parametrize("decision", [True, False])
def test_a_bool_decides_for_every_input(decision: bool) -> None:
    assert asking(decision).asks({}) is decision
    assert asking(decision).tool.may_ask is decision


@requirement("tools:needs-approval")
def test_a_function_decides_by_the_input_and_cannot_change_it() -> None:
    def large(input: dict[str, Any]) -> bool:
        return bool(input["rows"].pop() > 10)

    decided: NeedsApproval = large
    given_input: dict[str, object] = {"rows": [1, 50]}
    assert asking(decided).asks(given_input) is True
    assert given_input == {"rows": [1, 50]}
    assert asking(decided).asks({"rows": [1]}) is False
    assert asking(decided).tool.may_ask is True


@requirement("tools:needs-approval")
@pytest.mark.parametrize(
    ("decide", "gave"),
    [
        (lambda input: None, "returned NoneType, not a bool"),
        (lambda input: 0, "returned int, not a bool"),
        (lambda input: input["x"], "raised KeyError"),
    ],
)
def test_in_doubt_a_person_is_asked(decide: Any, gave: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "farhand.tools"):
        assert asking(decide).asks({}) is True
    assert f"needs_approval of tool free {gave}; asking for approval" in caplog.text


# ---------------------------------------------------------------------------------------- title and summary


# Any: also what a type checker would refuse
def summary_of(summary: Any, output: object) -> str | None:
    def look(place: str) -> object:
        """Look.

        Args:
            place: Where.
        """
        return place

    return tool(summary=summary)(look).summarize(output)


def _break(output: object) -> str:
    raise RuntimeError(f"no words for {output}")


@requirement("tools:title-and-summary")
@pytest.mark.parametrize(
    ("summary", "output", "words"),
    [
        (None, {"rows": 3}, None),
        ("{rows} rows", {"rows": 3}, "3 rows"),
        ("{rows} rows", "text", "… rows"),
        ("It is {output}", "sunny", "It is sunny"),
        ("{output} wins", {"output": "own"}, "own wins"),
        (lambda output: f"{len(output)} rows\n", [1, 2], "2 rows"),
        (lambda output: "", [], None),
        (lambda output: 3, [], None),
        (_break, {}, None),
    ],
)
def test_an_output_is_told_in_a_few_words(summary: object, output: object, words: str | None) -> None:
    assert summary_of(summary, output) == words


def test_a_summary_function_cannot_change_the_output() -> None:
    output = {"rows": [1]}
    assert summary_of(lambda given: str(given["rows"].pop()), output) == "1"
    assert output == {"rows": [1]}
