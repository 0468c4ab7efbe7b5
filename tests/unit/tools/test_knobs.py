"""A knob takes what it says it takes, and a misspelt one is not ignored."""

from __future__ import annotations

import pytest

from farhand.core.tool import Executor, Tool
from farhand.errors import BadTool
from farhand.tools.knobs import Knobs, check_knobs, check_name, facts
from tests.requirement import requirement


@requirement("tools:decorator")
def test_without_knobs_a_tool_runs_on_the_server_and_asks_nobody() -> None:
    assert facts("t", "T.", {}, {}) == Tool(name="t", description="T.", input_schema={})


@requirement("tools:decorator")
def test_knobs_become_facts() -> None:
    knobs: Knobs = {
        "executor": "frontend",
        "needs_approval": lambda input: True,
        "idempotent": True,
        "timeout_sec": 5,
        "approval_timeout_sec": 60.5,
        "card": "confirm",
    }
    check_knobs(knobs, "t")
    made = facts("t", "T.", {}, knobs)
    assert made == Tool(
        name="t",
        description="T.",
        input_schema={},
        executor=Executor.FRONTEND,
        may_ask=True,
        idempotent=True,
        timeout_sec=5.0,
        approval_timeout_sec=60.5,
        card="confirm",
    )


async def _later(input: dict[str, object]) -> bool:
    return False


@requirement("tools:bad-declaration")
@pytest.mark.parametrize(
    ("knob", "value", "takes"),
    [
        ("executor", "client", 'must be "server" or "frontend", not \'client\''),
        ("executor", ["server"], 'must be "server" or "frontend"'),
        ("needs_approval", "yes", "must be True, False or a function"),
        ("needs_approval", None, "must be True, False or a function"),
        ("needs_approval", _later, "must be True, False or a function (not async) of the input"),
        ("idempotent", 1, "must be True or False, not 1"),
        ("card", "", "must be the name of a card"),
        ("card", 3, "must be the name of a card"),
        ("name", " ", "must be a name"),
    ],
)
def test_a_knob_with_a_wrong_value_is_refused(knob: str, value: object, takes: str) -> None:
    with pytest.raises(BadTool) as told:
        check_knobs({knob: value}, "t")
    assert str(told.value).startswith(f"`{knob}` of tool `t` {takes}")


@requirement("tools:bad-declaration")
def test_a_misspelt_knob_is_refused_and_the_right_ones_are_listed() -> None:
    with pytest.raises(BadTool, match=r"Tool `t` has no knob `needs_aproval`. .*`needs_approval`"):
        check_knobs({"needs_aproval": True}, "t")


@requirement("tools:timeout-range")
@pytest.mark.parametrize("knob", ["timeout_sec", "approval_timeout_sec"])
def test_both_timeouts_have_the_same_range(knob: str) -> None:
    with pytest.raises(BadTool, match=f"`{knob}` of tool `t` must be a number of seconds"):
        facts("t", "T.", {}, {knob: 0})  # type: ignore[misc]


@requirement("tools:names")
@pytest.mark.parametrize("name", ["", "a b", "a.b", "é", "x" * 65, "<lambda>", "a\n", None, 3])
def test_a_bad_name_is_refused(name: object) -> None:
    with pytest.raises(BadTool, match=r"A tool cannot be called .*Choose 1 to 64 letters"):
        check_name(name)


@requirement("tools:names")
@pytest.mark.parametrize("name", ["a", "get_weather", "Get-Weather-2", "x" * 64])
def test_a_good_name_is_kept(name: str) -> None:
    assert check_name(name) == name
