"""What can be set about a tool beside its function, and the facts that follow.

Owns the list of knobs and which values they take. It must not know functions or signatures.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Literal, TypedDict

from farhand.core.ids import is_tool_name
from farhand.core.tool import Executor, Schema, Tool
from farhand.errors import BadTool
from farhand.tools.declared import NeedsApproval
from farhand.tools.plain import shortened
from farhand.tools.timeouts import declared_timeout


class Knobs(TypedDict, total=False):
    executor: Literal["server", "frontend"]
    needs_approval: NeedsApproval
    """Always, never, or decided by a function of the input, a dict as the model wrote it."""
    idempotent: bool
    """True if running it twice is harmless: then a call that a crash interrupted is run again."""
    timeout_sec: float | None
    approval_timeout_sec: float | None
    card: str | None
    """Which card the browser shows for it."""
    title: str | None
    """What people are shown instead of its name."""


class NamedKnobs(Knobs, total=False):
    name: str | None
    """The tool's name, where it is not the function's."""


def facts(name: str, description: str, input_schema: Schema, knobs: Knobs) -> Tool:
    """The tool as the model, the store and a far hand will know it."""
    return Tool(
        name=name,
        description=description,
        input_schema=input_schema,
        executor=Executor(knobs.get("executor", "server")),
        timeout_sec=declared_timeout(knobs.get("timeout_sec"), f"`timeout_sec` of tool `{name}`"),
        approval_timeout_sec=declared_timeout(
            knobs.get("approval_timeout_sec"), f"`approval_timeout_sec` of tool `{name}`"
        ),
        may_ask=knobs.get("needs_approval", False) is not False,
        idempotent=knobs.get("idempotent", False),
        card=knobs.get("card"),
        title=knobs.get("title"),
    )


def check_knobs(knobs: Mapping[str, object], name: str) -> None:
    """What the type checker says to those who run one, said to all."""
    for knob, value in knobs.items():
        if knob not in _TAKES:
            known = ", ".join(f"`{known}`" for known in _TAKES)
            raise BadTool(f"Tool `{name}` has no knob `{shortened(knob)}`.", hint=f"There are {known}.")
        takes, fits = _TAKES[knob]
        if not fits(value):
            raise BadTool(f"`{knob}` of tool `{name}` must be {takes}, not {shortened(repr(value))}.")


def check_name(name: object) -> str:
    if isinstance(name, str) and is_tool_name(name):
        return name
    raise BadTool(
        f"A tool cannot be called `{shortened(str(name))}`.",
        hint="Choose 1 to 64 letters, digits, `_` or `-`; `name=` sets a name beside the function's own.",
    )


def _is_executor(value: object) -> bool:
    return isinstance(value, str) and value in {"server", "frontend"}


def _is_decision(value: object) -> bool:
    # a coroutine is truthy, whatever it would have answered
    return isinstance(value, bool) or (callable(value) and not inspect.iscoroutinefunction(value))


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_words(value: object) -> bool:
    return value is None or (isinstance(value, str) and bool(value.strip()))


def _is_for_later(value: object) -> bool:
    """Timeouts have a sentence of their own."""
    return True


_TAKES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "executor": ('"server" or "frontend"', _is_executor),
    "needs_approval": ("True, False or a function (not async) of the input", _is_decision),
    "idempotent": ("True or False", _is_bool),
    "timeout_sec": ("a number", _is_for_later),
    "approval_timeout_sec": ("a number", _is_for_later),
    "card": ("the name of a card", _is_words),
    "title": ("a name for people", _is_words),
    "name": ("a name", _is_words),
}
