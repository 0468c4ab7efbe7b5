"""The options of `@tool` and `Toolbox.add`, and the `Tool` that follows from them.

Owns the list of options and the values that each accepts. It must not know functions or signatures.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Literal, TypedDict

from farhand.core.ids import is_tool_name
from farhand.core.template import names_in
from farhand.core.tool import Executor, Schema, Tool
from farhand.errors import BadTool, suggest_name
from farhand.tools.declared import NeedsApproval, Summary
from farhand.tools.timeouts import parse_tool_timeout
from farhand.tools.to_json import shorten


class ToolOptions(TypedDict, total=False):
    executor: Literal["server", "frontend"]
    needs_approval: NeedsApproval
    """True, False, or a function that decides by the input, a dict as the model wrote it."""
    idempotent: bool
    """True if running it twice is harmless: a call that was interrupted by a crash is then run again."""
    timeout_sec: float | None
    approval_timeout_sec: float | None
    card: str | None
    """Which card the browser shows for a call."""
    title: str | None
    """Shown to people instead of its name. May contain inputs: `"Weather in {location}"`."""
    summary: Summary | None
    """The output in a few words: a template (`"{rows} rows"`; `"{output}"` is all of it), or a function of
    the output."""


class NamedToolOptions(ToolOptions, total=False):
    name: str | None
    """The tool's name, if it differs from the function's."""


def build_tool(name: str, description: str, input_schema: Schema, options: ToolOptions) -> Tool:
    """The tool as the model, the store and a remote executor know it."""
    _check_title(name, options.get("title"), input_schema)
    return Tool(
        name=name,
        description=description,
        input_schema=input_schema,
        executor=Executor(options.get("executor", "server")),
        timeout_sec=parse_tool_timeout(options.get("timeout_sec"), f"`timeout_sec` of tool `{name}`"),
        approval_timeout_sec=parse_tool_timeout(
            options.get("approval_timeout_sec"), f"`approval_timeout_sec` of tool `{name}`"
        ),
        may_ask=options.get("needs_approval", False) is not False,
        idempotent=options.get("idempotent", False),
        card=options.get("card"),
        title=options.get("title"),
    )


def check_options(options: Mapping[str, object], name: str) -> None:
    """Raises `BadTool` for what a type checker would report, since not everybody runs one."""
    for option, value in options.items():
        if option not in _TAKES:
            suggestion = suggest_name(option, _TAKES)
            raise BadTool(f"`@tool` has no option `{shorten(option)}`{suggestion}", hint=_KNOWN)
        takes, fits = _TAKES[option]
        if not fits(value):
            raise BadTool(f"`{option}` of tool `{name}` must be {takes}, not {shorten(repr(value))}.")


def check_tool_name(name: object) -> str:
    if isinstance(name, str) and is_tool_name(name):
        return name
    raise BadTool(
        f"`{shorten(str(name))}` is not a valid name for a tool.",
        hint="Use 1 to 64 letters, digits, `_` or `-`.",
    )


def _is_executor(value: object) -> bool:
    return isinstance(value, str) and value in {"server", "frontend"}


def _is_decision(value: object) -> bool:
    # a coroutine is truthy, whatever it would return
    return isinstance(value, bool) or (callable(value) and not inspect.iscoroutinefunction(value))


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_text(value: object) -> bool:
    return value is None or (isinstance(value, str) and bool(value.strip()))


def _is_summary(value: object) -> bool:
    is_function = callable(value) and not inspect.iscoroutinefunction(value)
    return is_function or (_is_text(value) and (value is None or _fault_of(str(value)) is None))


def _check_title(name: str, title: str | None, input_schema: Schema) -> None:
    fault = None if title is None else _fault_of(title)
    if fault is not None:
        raise BadTool(f"`title` of tool `{name}` is not a template: {fault}.")
    inputs = input_schema.get("properties")
    if title is None or not isinstance(inputs, dict) or input_schema.get("additionalProperties"):
        return
    unknown = [named for named in names_in(title) if named.partition(".")[0] not in inputs]
    if unknown:
        raise BadTool(
            f"`title` of tool `{name}` names {{{unknown[0]}}}, which is not one of its inputs.",
            hint=f"Its inputs are {', '.join(inputs) or 'none'}.",
        )


def _fault_of(template: str) -> str | None:
    try:
        names_in(template)
    except ValueError as error:
        return str(error)
    return None


def _is_anything(value: object) -> bool:
    """For timeouts, which are checked later, with a message of their own."""
    return True


_TAKES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "executor": ('"server" or "frontend"', _is_executor),
    "needs_approval": ("True, False or a function (not async) of the input", _is_decision),
    "idempotent": ("True or False", _is_bool),
    "timeout_sec": ("a number", _is_anything),
    "approval_timeout_sec": ("a number", _is_anything),
    "card": ("the name of a card", _is_text),
    "title": ("a title", _is_text),
    "summary": ("a text such as '{rows} rows', or a function (not async) of the output", _is_summary),
    "name": ("a name", _is_text),
}
_KNOWN = f"Its options are {', '.join(f'`{option}`' for option in _TAKES)}."
