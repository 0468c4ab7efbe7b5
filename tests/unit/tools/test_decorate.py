"""`@tool` turns a function into a tool, or says at once why it cannot."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, assert_type

import pytest

from farhand.core.tool import Executor, Schema
from farhand.errors import BadTool, Misuse
from farhand.tools.decorate import declare_explicitly, tool
from farhand.tools.schema_admission import check_output
from tests.requirement import requirement


@tool
def get_weather(location: str) -> dict[str, str]:
    """Tell the weather.

    Args:
        location: City or postcode.
    """
    return {"location": location, "sky": "clear"}


@tool(idempotent=True, name="look-up", timeout_sec=5)
async def look_up(word: str) -> str:
    """Look a word up.

    Args:
        word: The word.
    """
    return word.upper()


@tool(executor="frontend", card="page")
def open_url(url: str) -> dict[str, str]:
    """Open a page.

    Args:
        url: The address.

    Returns:
        url and viewKey.
    """
    raise AssertionError("the body of a frontend tool was executed")


@requirement("tools:schema")
def test_a_bare_decorator_declares_a_server_tool_named_after_the_function() -> None:
    assert get_weather.tool.name == "get_weather"
    assert get_weather.tool.executor is Executor.SERVER
    assert get_weather.tool.description == "Tell the weather."
    assert inspect.unwrap(get_weather) is get_weather.function


@requirement("tools:schema")
def test_a_server_tool_can_still_be_called() -> None:
    assert_type(get_weather("Bonn"), dict[str, str])
    assert get_weather("Bonn") == {"location": "Bonn", "sky": "clear"}
    assert get_weather(location="Bonn")["sky"] == "clear"


@requirement("tools:schema")
async def test_an_async_function_stays_async_and_knobs_are_kept() -> None:
    assert_type(await look_up("farhand"), str)
    assert await look_up("farhand") == "FARHAND"
    assert (look_up.tool.name, look_up.tool.idempotent, look_up.tool.timeout_sec) == ("look-up", True, 5.0)
    assert (look_up.tool.output_schema, look_up.tool.returns_text) == ({"type": "string"}, True)


@requirement("tools:frontend-body")
def test_calling_a_frontend_tool_is_a_clear_error() -> None:
    assert open_url.tool.executor is Executor.FRONTEND
    assert open_url.tool.card == "page"
    with pytest.raises(Misuse, match="`open_url` runs in the frontend; its body is never executed here"):
        open_url("https://example.com")


@requirement("tools:schema")
def test_a_bound_method_is_a_tool_without_self() -> None:
    class Counter:
        count = 3

        def add(self, number: int) -> int:
            """Add to the count.

            Args:
                number: How much.
            """
            return self.count + number

    declared = tool(Counter().add)
    assert declared(4) == 7
    assert list(declared.tool.input_schema["properties"]) == ["number"]  # type: ignore[call-overload]


@requirement("tools:schema")
def test_a_wrapped_function_keeps_its_own_signature() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> object:
            return function(*args, **kwargs)

        return wrapper

    declared = tool(logged(get_weather.function or print))
    assert declared.tool.input_schema == get_weather.tool.input_schema
    assert declared(location="Bonn") == {"location": "Bonn", "sky": "clear"}


def test_a_frontend_tool_without_returns_is_declared_with_a_warning_at_its_place() -> None:
    def ask(question: str) -> str:
        """Ask.

        Args:
            question: What to ask.
        """
        raise AssertionError

    with pytest.warns(UserWarning, match="Frontend tool `ask` has no `Returns:`") as warned:
        declared = tool(executor="frontend")(ask)
    assert declared.tool.name == "ask"
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tool(ask).tool.executor is Executor.SERVER


def _yields(x: int) -> Iterator[int]:
    """Do it.

    Args:
        x: One.
    """
    yield x


async def _yields_later(x: int) -> AsyncIterator[int]:
    """Do it.

    Args:
        x: One.
    """
    yield x


class _Callable:
    def __call__(self) -> None:
        """Do it."""


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (_yields, "`_yields` is a generator; a tool has one result. Return a value instead."),
        (_yields_later, "`_yields_later` is a generator; a tool has one result."),
        (_Callable(), "is not a function. Define one with `def`"),
        (_Callable, "is not a function."),
        (functools.partial(print), "is not a function."),
        (len, "is not a function."),
        ("get_weather", "is not a function."),
        (lambda: None, "`<lambda>` is not a valid name for a tool."),
        (get_weather, "`get_weather` is already a tool. Do not decorate it again."),
    ],
)
def test_what_is_no_function_is_refused(function: Any, sentence: str) -> None:
    with pytest.raises(BadTool) as refused:
        tool(function)
    assert sentence in str(refused.value)


def test_a_tool_that_returns_nothing_is_shown_so_to_pages_and_its_output_is_not_checked() -> None:
    @tool(executor="frontend")
    def stretch() -> None:
        """Stretch.

        Returns:
            Nothing.
        """

    assert (stretch.tool.output_schema, stretch.tool.shown_output_schema) == (None, {"type": "null"})
    assert check_output(stretch.tool, "I did") is None


def test_a_bad_knob_is_refused_before_anything_else() -> None:
    # Any: the type checker would refuse it as well
    options: Any = {"executor": "client"}
    with pytest.raises(BadTool, match="`executor` of tool `undocumented` must be"):

        @tool(**options)
        def undocumented() -> None: ...


CITY: Schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def visit(city: str) -> str:
    return city


def test_a_schema_of_its_own_is_kept_as_a_copy() -> None:
    schema: dict[str, Any] = {"properties": {"city": {}}}
    declared = declare_explicitly("visit", "  Visit a city.\u202e ", schema, visit, {"needs_approval": True})
    schema["properties"]["town"] = {}
    assert declared.tool.input_schema == {"type": "object", "properties": {"city": {}}}
    assert declared.tool.description == "Visit a city."
    assert declared.tool.may_ask
    assert declared("Bonn") == "Bonn"


def test_a_frontend_tool_needs_no_function() -> None:
    declared = declare_explicitly("visit", "Visit.", CITY, None, {"executor": "frontend"})
    assert declared.function is None
    with pytest.raises(Misuse, match="runs in the frontend"):
        declared(city="Bonn")


@pytest.mark.parametrize("function", [lambda **anything: None, lambda city, town="": None, dict, type])
def test_any_callable_that_takes_the_members_will_do(function: Callable[..., object]) -> None:
    assert declare_explicitly("visit", "Visit.", CITY, function, {}).function is function
    assert declare_explicitly("visit", "Visit.", {}, lambda: None, {}).tool.input_schema == {"type": "object"}


@pytest.mark.parametrize(
    ("schema", "function", "sentence"),
    [
        (CITY, None, "Server tool `visit` has no function."),
        (
            CITY,
            lambda town: None,
            "The function of tool `visit` cannot be called with the members of its schema",
        ),
        (CITY, lambda: None, "The function of tool `visit` cannot be called"),
        ({"type": "string"}, visit, "The schema of tool `visit` does not describe an object."),
        ([], visit, "The schema of tool `visit` does not describe an object."),
        (
            {"properties": {"city": b""}},
            visit,
            "The schema of tool `visit` is not JSON: `properties.city` is a bytes",
        ),
        (
            {"properties": {"city": {"type": "nothing"}}},
            visit,
            "The input of tool `visit` cannot be checked. A schema",
        ),
    ],
)
def test_an_explicit_tool_that_cannot_work_is_refused(schema: Any, function: Any, sentence: str) -> None:
    with pytest.raises(BadTool) as refused:
        declare_explicitly("visit", "Visit.", schema, function, {})
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(("name", "description"), [("no name", "Visit."), ("visit", " \u202e")])
def test_an_explicit_tool_needs_a_name_and_a_description(name: str, description: str) -> None:
    with pytest.raises(BadTool, match=r"is not a valid name for a tool|has no description"):
        declare_explicitly(name, description, CITY, visit, {})
