"""What a user wants said to a provider besides what farhand says. Checked when a model is made.

A library takes the members it knows by name; the others reach the server as they are written. It must not
know any provider's members.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from farhand.errors import BadSetting
from farhand.models.settings import shown_as_set

_BODY = "extra_body"
_TOOLS = "tools"


def options_for(
    create: Callable[..., object], options: Mapping[str, object] | None, reserved: AbstractSet[str]
) -> dict[str, Any]:
    """Arguments for the library's function; members it does not know go into the body of the request."""
    given = dict(options or {})
    check_reserved(given, reserved)
    extra = given.pop(_BODY, None) or {}
    if not isinstance(extra, Mapping):
        raise BadSetting("options: 'extra_body' is an object of more members.")
    check_reserved(extra, reserved)
    if not isinstance(given.get(_TOOLS, ()), list | tuple):
        raise BadSetting("options: 'tools' is a list of the provider's own tools.")
    known = known_to(create)
    more = {name: value for name, value in given.items() if name not in known}
    body = {**extra, **more}
    arguments = {name: value for name, value in given.items() if name in known}
    return {**arguments, _BODY: body} if body else arguments


def check_reserved(options: Mapping[str, object], reserved: AbstractSet[str]) -> None:
    taken = sorted(name for name in options if name in reserved)
    if taken:
        raise BadSetting(
            f"options: '{shown_as_set(taken[0])}' is said by farhand itself.",
            hint="Leave it out; the agent and the model's own arguments say it.",
        )


def known_to(function: Callable[..., object]) -> AbstractSet[str]:
    return inspect.signature(function).parameters.keys()
