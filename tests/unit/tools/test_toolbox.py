"""A toolbox finds, checks and executes tools, and never raises while it does."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterable, Sequence
from typing import Any, assert_type

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.core.outcome import Failure, Success
from farhand.core.principal import LOCAL, Owner
from farhand.core.tool import Executor, Tool
from farhand.errors import BadTool, DuplicateTool
from farhand.tools.decorate import tool
from farhand.tools.toolbox import Toolbox, ToolSource, make_toolbox
from tests.requirement import requirement

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def plain_function(city: str, days: int = 1) -> dict[str, object]:
    """Tell the weather.

    Args:
        city: Where.
        days: How far ahead.
    """
    return {"city": city, "days": days}


@tool
async def get_time(zone: str) -> str:
    """Tell the time.

    Args:
        zone: Of the clock.
    """
    return f"noon in {zone}"


@tool(executor="frontend")
def open_url(url: str) -> dict[str, str]:
    """Open a page.

    Args:
        url: The address.

    Returns:
        url and viewKey.
    """
    raise AssertionError("the body of a frontend tool was executed")


@pytest.fixture
def box() -> Toolbox:
    made = Toolbox()
    made.include(plain_function, get_time, open_url)
    return made


def test_tools_are_found_by_name_in_the_order_they_came(box: Toolbox) -> None:
    assert [found.name for found in box.tools()] == ["plain_function", "get_time", "open_url"]
    assert list(box) == box.tools()
    assert len(box) == 3
    assert "get_time" in box
    assert "nothing" not in box
    assert box.get("get_time") == get_time.tool
    assert box.declared("get_time") is get_time
    assert (box.get("nothing"), box.declared("nothing")) == (None, None)


@requirement("tools:schema")
async def test_a_box_has_a_decorator_of_its_own() -> None:
    box = Toolbox()

    @box.tool
    def double(number: int) -> int:
        """Double it.

        Args:
            number: What to double.
        """
        return 2 * number

    @box.tool(name="half", idempotent=True)
    async def halve(number: int) -> float:
        """Halve it.

        Args:
            number: What to halve.
        """
        return number / 2

    assert_type(double(2), int)
    assert double(2) == 4
    assert await halve(3) == 1.5
    assert [found.name for found in box] == ["double", "half"]
    assert await box.execute("half", {"number": 3}) == Success(1.5)


async def test_a_tool_can_be_added_with_a_schema_of_its_own() -> None:
    box = Toolbox()
    added = box.add("visit", "Visit a city.", CITY, lambda city: f"been to {city}", timeout_sec=5)
    box.add("show", "Show a city.", CITY, executor="frontend")
    assert box.get("visit") == added.tool
    assert await box.execute("visit", {"city": "Bonn"}) == Success("been to Bonn")
    assert await box.execute("visit", {}) == Failure("Invalid input for `visit`: `city` is missing.")
    assert await box.execute("show", {"city": "Bonn"}) == Failure(
        "`show` runs in the frontend, not on the server."
    )


def test_a_name_registered_twice_is_an_error_and_the_first_stays(box: Toolbox) -> None:
    def get_time(zone: str) -> str:
        """Tell another time.

        Args:
            zone: Of the clock.
        """
        return zone

    first = box.declared("get_time")
    with pytest.raises(DuplicateTool, match="A tool `get_time` already exists"):
        box.tool(get_time)
    with pytest.raises(DuplicateTool):
        box.add("get_time", "Tell.", CITY, lambda city: city)
    with pytest.raises(DuplicateTool):
        box.include(box)
    assert box.declared("get_time") is first
    assert len(box) == 3


def test_an_error_while_including_several_includes_none_of_them() -> None:
    box = Toolbox()
    with pytest.raises(DuplicateTool):
        box.include(plain_function, get_time, plain_function)
    with pytest.raises(BadTool):
        box.include(plain_function, "get_time")
    assert len(box) == 0


@requirement("tools:bad-input")
async def test_an_unknown_tool_is_named_with_those_that_come_close(box: Toolbox) -> None:
    expected = Failure("There is no tool `get_times`. Did you mean `get_time`?")
    assert box.check("get_times", {}) == expected
    assert await box.execute("get_times", {}) == expected


@requirement("tools:bad-input")
def test_where_nothing_comes_close_the_tools_are_listed_briefly(box: Toolbox) -> None:
    expected = Failure("There is no tool `xyzzy`. Available tools: `plain_function`, `get_time`, `open_url`.")
    assert box.check("xyzzy", {}) == expected
    assert Toolbox().check("xyzzy", {}) == Failure("There is no tool `xyzzy`. Available tools: none.")
    for number in range(30):
        box.add(f"tool_{number}", "Do.", {}, dict)
    listed = box.check("xyzzy\n" + "y" * 10_000, {})
    assert listed is not None
    assert listed.error.endswith("and 13 more.")
    assert len(listed.error) < 500
    assert "\n" not in listed.error


@requirement("tools:bad-input")
@pytest.mark.parametrize(
    ("name", "input", "expected"),
    [
        ("plain_function", {"city": "Bonn"}, None),
        ("plain_function", {}, "Invalid input for `plain_function`: `city` is missing."),
        ("plain_function", {"city": "B", "days": "2"}, "`days` must be an integer, got a string"),
        ("open_url", {"url": None}, "`url` must be a string, got null"),
        ("open_url", "https://example.com", "the value must be an object, got a string"),
    ],
)
def test_input_is_checked_for_every_executor(
    box: Toolbox, name: str, input: object, expected: str | None
) -> None:
    failed = box.check(name, input)
    assert (failed is None) if expected is None else (failed is not None and expected in failed.error)


@requirement("tools:bad-input")
async def test_a_tool_is_not_run_with_bad_input(box: Toolbox) -> None:
    result = await box.execute("plain_function", {"city": 3})
    assert result == Failure("Invalid input for `plain_function`: `city` must be a string, got an integer.")


@requirement("tools:frontend-body")
async def test_a_frontend_tool_is_not_executed_here(box: Toolbox) -> None:
    result = await box.execute("open_url", {"url": "https://example.com"})
    assert result == Failure("`open_url` runs in the frontend, not on the server.")


@requirement("tools:schema")
async def test_execution_gives_the_result_as_plain_json(box: Toolbox) -> None:
    assert await box.execute("plain_function", {"city": "Bonn"}) == Success({"city": "Bonn", "days": 1})
    assert await box.execute("get_time", {"zone": "UTC"}) == Success("noon in UTC")


@requirement("tools:exception")
async def test_the_deadline_is_the_callers_else_the_tools_else_two_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[float] = []

    async def noted(
        name: str, function: object, arguments: object, *, within: float, at_most: int, may_start: object
    ) -> Success:
        limits.append(within)
        return Success()

    box = Toolbox()
    box.add("patient", "Wait.", {}, anyio.sleep_forever)
    box.add("hasty", "Wait.", {}, anyio.sleep_forever, timeout_sec=5)
    expected = Failure("`hasty` did not finish within 0.05 s; whether it took effect is unknown.")
    assert await box.execute("hasty", {}, within=0.05) == expected
    monkeypatch.setattr("farhand.tools.toolbox.run_tool_function", noted)
    await box.execute("hasty", {}, within=0.0)
    await box.execute("hasty", {})
    await box.execute("patient", {})
    assert limits == [0.0, 5.0, 120.0]


async def test_hung_tools_do_not_hold_up_others(box: Toolbox) -> None:
    release = threading.Event()
    box.add("hang", "Hang.", {}, lambda: release.wait() and None)
    async with anyio.create_task_group() as group:
        for _ in range(60):
            group.start_soon(box.execute, "hang", {})
        with anyio.fail_after(30):
            assert isinstance(await box.execute("plain_function", {"city": "Bonn"}), Success)
        release.set()


@requirement("tools:log")
async def test_an_execution_is_logged_without_its_payload(
    box: Toolbox, caplog: pytest.LogCaptureFixture
) -> None:
    box.add("fail", "Fail.", CITY, lambda city: 1 / 0)
    with caplog.at_level(logging.INFO, "farhand.tools"):
        await box.execute("plain_function", {"city": "secret"}, call_id="call_1")
        await box.execute("fail", {"city": "secret"}, call_id="call_2")
        await box.execute("bad\nname", {"city": "secret"})
    lines = [record.getMessage() for record in caplog.records]
    assert re.fullmatch(r"tool plain_function call call_1: success in \d+\.\d ms", lines[0])
    assert lines[1] == "tool fail raised ZeroDivisionError"
    assert re.fullmatch(r"tool fail call call_2: failure in \d+\.\d ms", lines[2])
    assert lines[3].startswith("tool bad�name call None: failure in ")
    assert "secret" not in caplog.text


_names = st.sampled_from(["plain_function", "get_time", "open_url", "fail"]) | st.text()
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["city", "zone", "url"]) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@requirement("tools:bad-input")
@given(_names, _values)
def test_nothing_makes_execute_raise(name: str, arguments: object) -> None:
    box = make_toolbox([plain_function, get_time], [open_url])
    outcome = anyio.run(box.execute, name, arguments)
    assert isinstance(outcome, Success | Failure)


@pytest.mark.parametrize("wrap", [lambda box: box, lambda box: [box]])
def test_tools_may_be_a_toolbox_functions_or_any_mix(box: Toolbox, wrap: Any) -> None:
    def another() -> None:
        """Do something else."""

    made = make_toolbox(wrap(box))
    assert made.tools() == box.tools()
    assert [found.name for found in make_toolbox([another, box])] == [
        "another",
        *(found.name for found in box),
    ]
    assert [found.name for found in make_toolbox(another)] == ["another"]  # type: ignore[arg-type]
    assert make_toolbox([plain_function]).tools()[0].executor is Executor.SERVER
    assert len(make_toolbox()) == 0


def test_frontend_tools_join_the_others() -> None:
    far = Toolbox()
    far.add("show", "Show.", CITY, executor="frontend")
    made = make_toolbox([get_time], [open_url, far])
    assert [found.name for found in made] == ["get_time", "open_url", "show"]
    assert [found.name for found in make_toolbox(frontend_tools=far)] == ["show"]


@pytest.mark.parametrize(
    ("given_tools", "sentence"),
    [
        ([get_time], "`get_time` is in `frontend_tools` but runs on the server."),
        ([make_toolbox([get_time])], "`get_time` is in `frontend_tools` but runs on the server."),
        (
            [plain_function],
            "`plain_function` is in `frontend_tools` but is not declared as a frontend tool.",
        ),
        (["open_url"], "'open_url' is not a tool."),
    ],
)
def test_frontend_tools_must_be_declared_as_such(given_tools: Iterable[object], sentence: str) -> None:
    with pytest.raises(BadTool) as refused:
        make_toolbox([], given_tools)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize("given_tool", [None, 3, "get_time", get_time.tool, {"name": "x"}])
def test_what_is_no_tool_is_refused(given_tool: object) -> None:
    with pytest.raises(BadTool, match=r"is not a tool. Pass functions, tools made with @tool, or a Toolbox"):
        make_toolbox([given_tool])


def test_a_source_of_tools_is_anything_that_knows_them_by_owner() -> None:
    class Registered:
        def tools(self, owner: Owner) -> Sequence[Tool]:
            return [get_time.tool] if owner == LOCAL else []

        def get(self, owner: Owner, name: str) -> Tool | None:
            return next((found for found in self.tools(owner) if found.name == name), None)

        def asks(self, tool: Tool, input: dict[str, object]) -> bool:
            return tool.may_ask

    source: ToolSource = Registered()
    assert source.get(LOCAL, "get_time") == get_time.tool
    assert source.get(Owner("other", "me"), "get_time") is None
