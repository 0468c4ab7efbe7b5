"""`@tool`: a function becomes a tool.

Owns the two ways to declare one: by its signature, or with a schema written out. A declaration that cannot
work is `BadTool` here, when the module is imported, never later in the middle of a run. It must not know
toolboxes, or how a function is run.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar, Unpack, overload

import msgspec

from farhand.core.tool import Executor, Schema
from farhand.errors import BadTool
from farhand.tools.check import checker
from farhand.tools.declared import DeclaredTool
from farhand.tools.docstring import cleaned
from farhand.tools.knobs import Knobs, NamedKnobs, check_knobs, check_name, facts
from farhand.tools.plain import NotJson, plain, shortened
from farhand.tools.schema import shape_of

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(function: Callable[P, R], /) -> DeclaredTool[P, R]: ...
@overload
def tool(**knobs: Unpack[NamedKnobs]) -> Callable[[Callable[P, R]], DeclaredTool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None, /, **knobs: Unpack[NamedKnobs]
) -> DeclaredTool[P, R] | Callable[[Callable[P, R]], DeclaredTool[P, R]]:
    """Declare a function as a tool, bare or with knobs; its schema comes from hints and Google docstring.

    A server tool stays callable, for unit tests of its own. The body of a frontend tool is never executed.
    """

    def with_knobs(function: Callable[P, R]) -> DeclaredTool[P, R]:
        return declare(function, knobs)

    return with_knobs if function is None else with_knobs(function)


def declare(function: Callable[P, R], knobs: NamedKnobs) -> DeclaredTool[P, R]:
    """A tool by its signature."""
    _check_function(function)
    check_knobs(knobs, function.__name__)
    name = check_name(knobs.get("name") or function.__name__)
    shape = shape_of(function, name)
    known = facts(name, shape.description, shape.arguments.schema, knobs)
    if known.executor is Executor.FRONTEND and not shape.says_returns:
        _warn_of_missing_returns(function, name)
    return DeclaredTool(
        msgspec.structs.replace(known, output_schema=shape.output_schema, returns_text=shape.returns_text),
        function,
        needs_approval=knobs.get("needs_approval", False),
        arguments=shape.arguments,
    )


def declare_explicitly(
    name: str,
    description: str,
    parameters: Mapping[str, object],
    function: Callable[..., object] | None,
    knobs: Knobs,
) -> DeclaredTool[..., object]:
    """A tool by a schema of its own. The function gets the members of the input as keyword arguments."""
    check_knobs(knobs, check_name(name))
    schema = _object_schema(parameters, name)
    known = facts(name, cleaned(description, f"tool `{name}`"), schema, knobs)
    if not known.description:
        raise BadTool(f"Tool `{name}` has no description.", hint="Say what it does; the model reads it.")
    if known.executor is Executor.SERVER and function is None:
        raise BadTool(f"Server tool `{name}` has no function.", hint="Pass the function that runs it.")
    declared = DeclaredTool(known, function, needs_approval=knobs.get("needs_approval", False))
    if function is not None:
        _check_takes(function, schema, name)
    return declared


def _check_function(function: object) -> None:
    if isinstance(function, DeclaredTool):
        raise BadTool(f"`{function.tool.name}` is a tool already.", hint="Pass it on as it is.")
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        raise BadTool(
            f"{shortened(repr(function))} is not a function.",
            hint="Write one with `def`, or use `Toolbox.add` with a schema for other callables.",
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadTool(f"`{function.__name__}` yields; a tool has one result.", hint="Return a value instead.")


def _warn_of_missing_returns(function: Callable[..., object], name: str) -> None:
    # told of the place of the function, wherever it was decorated
    code = getattr(inspect.unwrap(function), "__code__", function.__code__)
    warnings.warn_explicit(
        f"Frontend tool `{name}` has no `Returns:` in its docstring: whoever writes its handler, and the "
        "model, cannot know what comes back.",
        UserWarning,
        code.co_filename,
        code.co_firstlineno,
    )


def _object_schema(parameters: object, name: str) -> Schema:
    try:
        # a copy, so that nobody changes the schema of a tool behind its back
        schema = plain(parameters)
    except NotJson as error:
        raise BadTool(f"The schema of tool `{name}` is not JSON: {error}.") from error
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise BadTool(
            f"The schema of tool `{name}` does not describe an object.",
            hint='Write {"type": "object", "properties": {…}}: the input is one object.',
        )
    return _checkable({"type": "object", **schema}, name)


def _checkable(schema: Schema, name: str) -> Schema:
    try:
        checker(schema)
    except BadTool as error:
        raise BadTool(
            f"The input of tool `{name}` cannot be checked. {error.message}", hint=error.hint
        ) from error
    return schema


def _check_takes(function: Callable[..., object], schema: Schema, name: str) -> None:
    properties = schema.get("properties")
    try:
        inspect.signature(function).bind(**dict.fromkeys(properties if isinstance(properties, dict) else ()))
    except TypeError as error:
        raise BadTool(
            f"The function of tool `{name}` cannot be called with the members of its schema: {error}.",
            hint="It is given each member of the input as a keyword argument.",
        ) from error
    except ValueError:
        # some built-in functions have no signature; they are believed
        return
