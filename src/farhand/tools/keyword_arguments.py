"""Explains a misspelled or misplaced argument of a public function, with the name that was probably meant.

Python's own sentence names the wrong argument, but not the right one. It must not know any of the functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from farhand.errors import Misuse, suggest_name

P = ParamSpec("P")
R = TypeVar("R")


def explain_arguments(called: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a function so that wrong arguments raise `Misuse`. `called` is what users call the function.
    A call with the right arguments is passed on as it is."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except TypeError:
                wrong = _find_mistake(function, called, args, kwargs)
                if wrong is None:
                    raise
                raise wrong from None

        return checked

    return decorate


def _find_mistake(
    function: Callable[..., object], called: str, args: tuple[object, ...], kwargs: dict[str, object]
) -> Misuse | None:
    """None if the arguments fit: then the error came from inside the function."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        names = [name for name in signature.parameters if name != "self"]
        unknown = next((name for name in kwargs if name not in names), None)
        if unknown is None:
            return Misuse(f"{called}: {error}.", hint=f"Its arguments are {', '.join(names)}.")
        suggestion = suggest_name(unknown, names)
        hint = f"Its arguments are {', '.join(names)}." if suggestion == "." else ""
        return Misuse(f"{called} has no argument `{unknown}`{suggestion}", hint=hint)
    return None
