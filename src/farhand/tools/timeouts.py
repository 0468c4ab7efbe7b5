"""How long a tool may take: what may be declared, and what a model may choose."""

from __future__ import annotations

from math import isfinite

from farhand.core.tool import Executor, Tool
from farhand.errors import BadTool, Misuse

SHORTEST_SEC = 1.0
LONGEST_SEC = 86_400.0
PARAMETER = "timeout_sec"
"""A parameter of this name in a frontend tool lets the model choose."""


def declared_timeout(value: object, what: str) -> float | None:
    """The value as seconds; anything but None or a number from 1 to 86 400 is `BadTool`."""
    return _within_bounds(value, what, BadTool)


def asked_timeout(value: object) -> float | None:
    """The same rule for a call that a program makes itself; anything else is `Misuse`."""
    return _within_bounds(value, "`timeout_sec`", Misuse)


def chosen_timeout(tool: Tool, input: dict[str, object]) -> float | None:
    """What the model chose, clamped to what may be declared; else what was declared.

    A default in the signature counts as the model's choice, since the model was told of it.
    """
    properties = tool.input_schema.get("properties")
    if (
        tool.executor is not Executor.FRONTEND
        or not isinstance(properties, dict)
        or PARAMETER not in properties
    ):
        return tool.timeout_sec
    seconds = _number(input.get(PARAMETER))
    if seconds is None:
        seconds = _number(_default_of(properties[PARAMETER]))
    return tool.timeout_sec if seconds is None else float(min(max(seconds, SHORTEST_SEC), LONGEST_SEC))


def _within_bounds(value: object, what: str, fault: type[Misuse]) -> float | None:
    if value is None:
        return None
    seconds = _number(value)
    if seconds is None or not SHORTEST_SEC <= seconds <= LONGEST_SEC:
        raise fault(
            f"{what} must be a number of seconds from 1 to 86400.",
            hint="Leave it out to get the default.",
        )
    return float(seconds)


def _default_of(property_schema: object) -> object:
    return property_schema.get("default") if isinstance(property_schema, dict) else None


def _number(value: object) -> int | float | None:
    # True is an int to Python, and to nobody else
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or isfinite(value) else None
