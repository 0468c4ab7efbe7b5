"""A form that a tool asks a person to fill in."""

from __future__ import annotations

import re
from collections.abc import Coroutine
from typing import TypeVar

import pytest

from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.principal import LOCAL
from farhand.errors import Misuse
from farhand.tools.context import Context, NotAnswered, ToolFiles, acting, context_parameter, current
from farhand.tools.forms import FormAnswer, ask_form, check_form

FIELDS = {
    "name": {"type": "string", "format": "email"},
    "guests": {"type": "integer", "minimum": 1},
    "smoking": {"type": "boolean"},
    "size": {"type": "string", "enum": ["S", "M"]},
    "colour": {"oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
    "extras": {"type": "array", "items": {"enum": ["bread", "wine"]}},
}


def test_text_numbers_booleans_and_choices_make_a_form() -> None:
    form = {"type": "object", "properties": FIELDS, "required": ["name"]}
    assert check_form(form) == form


@pytest.mark.parametrize(
    "field",
    [
        {"type": "object"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array"},
        {"enum": []},
        {"enum": [1, 2]},
        {"oneOf": [{"type": "string"}]},
        {},
    ],
)
def test_what_is_nested_is_no_field_of_a_form(field: dict[str, object]) -> None:
    with pytest.raises(Misuse, match="is not text, a number, a boolean or a choice"):
        check_form({"type": "object", "properties": {"x": field}})


@pytest.mark.parametrize("schema", [{"type": "object"}, {"type": "object", "properties": {}}])
def test_a_form_has_a_field(schema: dict[str, object]) -> None:
    with pytest.raises(Misuse, match="at least one field"):
        check_form(schema)


def test_what_is_no_schema_is_no_form() -> None:
    with pytest.raises(Misuse):
        check_form({"type": "object", "properties": {"x": {"$ref": "https://example.org/x"}}})


@pytest.mark.parametrize(
    "arguments", [{}, {"schema": {"type": "object", "properties": FIELDS}, "url": "https://example.org"}]
)
async def test_a_form_is_made_of_a_schema_or_of_a_page(arguments: dict[str, object]) -> None:
    with pytest.raises(Misuse, match="needs either a schema or a url"):
        await ask_form("Well?", **arguments)  # type: ignore[arg-type]


T = TypeVar("T")


class Desk:
    """Answers every question with the same outcome."""

    files: ToolFiles

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def progress(self, text: str) -> None:
        raise NotImplementedError

    def wait_for(self, work: Coroutine[object, object, T]) -> T:
        raise NotImplementedError

    async def ask(
        self, tool: str, input: dict[str, object], *, key: str | None, timeout_sec: float | None
    ) -> Outcome:
        return self._outcome


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (Success("hm"), "there is no answer"),
        (Denied("no"), r"declined \(no\)"),
        (Denied(), "declined"),
        (Cancelled("gone"), r"cancelled \(gone\)"),
        (Cancelled(""), "cancelled"),
        (TimedOut(), "nobody answered in time"),
        (Failure("broken"), "broken"),
    ],
)
async def test_a_form_without_an_answer_says_why(outcome: Outcome, why: str) -> None:
    with acting(Context(owner=LOCAL, link=Desk(outcome))), pytest.raises(NotAnswered) as caught:
        await ask_form("Well?", {"type": "object", "properties": FIELDS})
    assert re.fullmatch(f"The form was not answered: {why}.", str(caught.value))


@pytest.mark.parametrize(
    "url", ["http://[", "javascript:alert(1)", "https://user@example.org/", "example.org"]
)
async def test_a_form_opens_only_pages(url: str) -> None:
    with pytest.raises(Misuse, match="is not the address of a page"):
        await ask_form("Sign here.", url=url)


async def test_a_page_that_was_opened_has_no_content_to_check() -> None:
    with acting(Context(owner=LOCAL, call_id="call_1", link=Desk(Success({"action": "accept"})))):
        assert current().idempotency_key == "call_1"
        assert await ask_form("Sign here.", url="https://example.org") == FormAnswer("accept")


def test_a_function_with_a_hint_that_cannot_be_resolved_takes_no_context() -> None:
    def odd(context: Nothing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert context_parameter(odd) is None
