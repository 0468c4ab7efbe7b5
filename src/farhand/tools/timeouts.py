"""Timeouts of tools: which values may be declared, and what a model may choose."""

from __future__ import annotations

from math import isfinite

from farhand.core.tool import Executor, Tool
from farhand.errors import BadTool, Misuse

SHORTEST_SEC = 1.0
LONGEST_SEC = 86_400.0
PARAMETERS = ("timeout_sec", "timeoutSec")
"""A parameter with one of these names lets the model choose; the first one found counts."""


def parse_tool_timeout(value: object, what: str) -> float | None:
    """The value in seconds. Raises `BadTool` for anything but None or a number from 1 to 86,400."""
    return _within_bounds(value, what, BadTool)


def parse_call_timeout(value: object) -> float | None:
    """The same rule for a call that a program makes itself. Raises `Misuse`."""
    return _within_bounds(value, "`timeout_sec`", Misuse)


def effective_timeout(tool: Tool, input: dict[str, object]) -> float | None:
    """The model's choice, clamped to the allowed range; otherwise the declared timeout.

    A default in the signature counts as the model's choice, since the model reads it in the schema.
    """
    name = _parameter_of(tool)
    if name is None:
        return tool.timeout_sec
    seconds = _number(input.get(name))
    if seconds is None:
        seconds = _number(_default_of(tool, name))
    return tool.timeout_sec if seconds is None else float(min(max(seconds, SHORTEST_SEC), LONGEST_SEC))


def _parameter_of(tool: Tool) -> str | None:
    """The parameter that sets the timeout; a server tool may use these names for other things."""
    if tool.executor is Executor.SERVER:
        return None
    properties = _properties_of(tool)
    return next((name for name in PARAMETERS if name in properties), None)


def _properties_of(tool: Tool) -> dict[str, object]:
    properties = tool.input_schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _within_bounds(value: object, what: str, fault: type[Misuse]) -> float | None:
    if value is None:
        return None
    seconds = _number(value)
    if seconds is None or not SHORTEST_SEC <= seconds <= LONGEST_SEC:
        raise fault(
            f"{what} must be a number of seconds from 1 to 86400.",
            hint="Omit it to use the default.",
        )
    return float(seconds)


def _default_of(tool: Tool, name: str) -> object:
    property_schema = _properties_of(tool)[name]
    return property_schema.get("default") if isinstance(property_schema, dict) else None


def _number(value: object) -> int | float | None:
    # in Python, True is an int; in JSON it is not a number
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or isfinite(value) else None
