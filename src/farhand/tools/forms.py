"""Forms that a tool asks a person to fill in: a flat list of primitive fields, as in MCP's elicitation.

Owns the tool `answer_form`, which is never offered to the model, and the rules for the schema of a form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from farhand.core.outcome import Failure
from farhand.core.tool import Executor, Schema, Tool
from farhand.errors import BadTool, Misuse
from farhand.tools.check import mismatch
from farhand.tools.context import NotAnswered, current
from farhand.tools.schema_admission import admit_schema

ANSWER_FORM = Tool(
    name="answer_form",
    description="Asks the user to fill in a form, or to open a page.",
    input_schema={
        "type": "object",
        "properties": {
            "message": {"type": "string", "description": "What the form is for."},
            "schema": {"type": "object", "description": "The fields."},
            "url": {"type": "string", "description": "A page to open instead."},
        },
        "required": ["message"],
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {
            "action": {"enum": ["accept", "decline", "cancel"]},
            "content": {"type": "object"},
        },
        "required": ["action"],
    },
    executor=Executor.FRONTEND,
    card="form",
)


class FormAnswer(Struct, frozen=True):
    """What the person did: `content` has the fields if the form was accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, object] = field(default_factory=dict)


async def ask_form(
    message: str,
    schema: Mapping[str, object] | None = None,
    *,
    url: str | None = None,
    key: str | None = None,
    timeout_sec: float | None = None,
) -> FormAnswer:
    """Inside a server tool: ask the person to fill in a form, and return what they did.

    `schema` describes an object of text, numbers, booleans and choices, without nesting. With `url` instead,
    the person is asked to open that page and to confirm when they are done; it never opens on its own. Raises
    `NotAnswered` if there is no answer in time.

    >>> from farhand import ask_form, tool
    >>> @tool(idempotent=True)
    ... async def book_table() -> str:
    ...     '''Book a table.'''
    ...     fields = {"guests": {"type": "integer", "minimum": 1}, "name": {"type": "string"}}
    ...     answer = await ask_form("For whom?", {"type": "object", "properties": fields}, key="table")
    ...     return f"booked for {answer.content['guests']}" if answer.action == "accept" else "not booked"
    """
    form = None if schema is None else check_form(schema)
    question: dict[str, object] = {"message": message}
    if form is not None:
        question["schema"] = form
    if url is not None:
        question["url"] = _check_url(url)
    if (form is None) == (url is None):
        raise Misuse("ask_form() needs either a schema or a url.", hint="Pass exactly one of the two.")
    try:
        output = await current().ask(ANSWER_FORM.name, question, key=key, timeout_sec=timeout_sec)
    except NotAnswered as error:
        raise NotAnswered("The form", error.outcome) from None
    answer = _read(output)
    wrong = mismatch(form, answer.content) if form is not None and answer.action == "accept" else None
    if wrong is not None:
        raise NotAnswered("The form", Failure(f"the answer does not fit the form: {wrong}"))
    return answer


def check_form(schema: Mapping[str, object]) -> Schema:
    """The schema, if it can be shown as a form. Raises `Misuse` otherwise."""
    try:
        admitted = admit_schema(dict(schema), "The schema of the form")
    except BadTool as error:
        raise Misuse(error.message, hint=error.hint) from error
    properties = admitted.get("properties")
    if not isinstance(properties, dict) or not properties:
        raise Misuse("A form needs at least one field.", hint='Write {"type": "object", "properties": {…}}.')
    for name, rule in properties.items():
        if not isinstance(rule, dict) or not _is_field(rule):
            raise Misuse(
                f"The field `{name}` of the form is not text, a number, a boolean or a choice.",
                hint="A form is flat: no objects, and lists only of choices.",
            )
    return admitted


def _is_field(rule: dict[str, object]) -> bool:
    if "enum" in rule or "oneOf" in rule:
        return _is_choice(rule)
    if rule.get("type") == "array":
        items = rule.get("items")
        return isinstance(items, dict) and _is_choice(items)
    return rule.get("type") in ("string", "number", "integer", "boolean")


def _is_choice(rule: dict[str, object]) -> bool:
    """By `enum`, or by `oneOf`/`anyOf` with `const` and `title`."""
    values = rule.get("enum")
    if isinstance(values, list):
        return bool(values) and all(isinstance(each, str) for each in values)
    titled = rule.get("oneOf") or rule.get("anyOf")
    return isinstance(titled, list) and all(
        isinstance(each, dict) and isinstance(each.get("const"), str) for each in titled
    )


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise Misuse(
            f"{url!r} is not the address of a page.",
            hint="Use an http or https URL without a user name.",
        )
    return url


def _read(output: object) -> FormAnswer:
    try:
        return msgspec.convert(output, FormAnswer)
    except msgspec.ValidationError:
        raise NotAnswered("The form", Failure("there is no answer")) from None
