"""`@tool`: turns a function into a tool.

Owns the two ways to declare one: by its signature or with an explicit schema. A declaration that cannot work
raises `BadTool` when the module is imported, never later in the middle of a run. It must not know toolboxes
or how a function is run.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar, Unpack, overload

import msgspec

from farhand.core.template import with_defaults
from farhand.core.tool import Executor, Schema, Tool
from farhand.errors import BadTool
from farhand.tools.check import compile_schema
from farhand.tools.context import context_parameter
from farhand.tools.declared import DeclaredTool
from farhand.tools.defaults import complete_input
from farhand.tools.docstring import clean_text
from farhand.tools.options import NamedToolOptions, ToolOptions, build_tool, check_options, check_tool_name
from farhand.tools.schema import read_signature
from farhand.tools.to_json import NotJson, shorten, to_json

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(function: Callable[P, R], /) -> DeclaredTool[P, R]: ...
@overload
def tool(**options: Unpack[NamedToolOptions]) -> Callable[[Callable[P, R]], DeclaredTool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None, /, **options: Unpack[NamedToolOptions]
) -> DeclaredTool[P, R] | Callable[[Callable[P, R]], DeclaredTool[P, R]]:
    """Declare a function as a tool, with or without options.

    Its schema comes from the type hints and the Google-style docstring. A server tool stays callable, so it
    can be unit-tested. The body of a frontend tool is never executed.

    ```python
    from farhand import tool


    @tool(needs_approval=True)
    def delete_file(path: str) -> str:
        '''Delete a file.

        Args:
            path: Where it is.
        '''
        return f"deleted {path}"
    ```
    """

    def with_options(function: Callable[P, R]) -> DeclaredTool[P, R]:
        return declare(function, options)

    return with_options if function is None else with_options(function)


def declare(function: Callable[P, R], options: NamedToolOptions) -> DeclaredTool[P, R]:
    """A tool from a function's signature."""
    _check_function(function)
    check_options(options, function.__name__)
    name = check_tool_name(options.get("name") or function.__name__)
    shape = read_signature(function, name)
    known = build_tool(name, shape.description, shape.arguments.schema, options)
    if known.executor is Executor.FRONTEND and not shape.documents_return:
        _warn_of_missing_returns(function, name)
    is_run_here = known.executor is Executor.SERVER
    return DeclaredTool(
        msgspec.structs.replace(
            known,
            output_schema=shape.output_schema,
            returns_text=shape.returns_text,
            returns_nothing=shape.returns_nothing,
            applies_defaults=is_run_here,
            title=_title_of(known) if is_run_here else known.title,
        ),
        function,
        needs_approval=options.get("needs_approval", False),
        summary=options.get("summary"),
        arguments=shape.arguments,
    )


def _title_of(tool: Tool) -> str | None:
    """Its title says the default of an argument that the model leaves out."""
    return (
        None if tool.title is None else with_defaults(tool.title, complete_input(tool.input_schema, {}).input)
    )


def declare_explicitly(
    name: str,
    description: str,
    parameters: Mapping[str, object],
    function: Callable[..., object] | None,
    options: ToolOptions,
) -> DeclaredTool[..., object]:
    """A tool with an explicit schema. The function gets the members of the input as keyword arguments."""
    check_options(options, check_tool_name(name))
    schema = _object_schema(parameters, name)
    known = build_tool(name, clean_text(description, f"tool `{name}`"), schema, options)
    if not known.description:
        raise BadTool(f"Tool `{name}` has no description.", hint="Describe what it does; the model reads it.")
    if known.executor is Executor.SERVER and function is None:
        raise BadTool(f"Server tool `{name}` has no function.", hint="Pass the function that runs it.")
    declared = DeclaredTool(
        known,
        function,
        needs_approval=options.get("needs_approval", False),
        summary=options.get("summary"),
    )
    if function is not None:
        _check_takes(function, schema, name)
    return declared


def _check_function(function: object) -> None:
    if isinstance(function, DeclaredTool):
        raise BadTool(f"`{function.tool.name}` is already a tool.", hint="Do not decorate it again.")
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        raise BadTool(
            f"{shorten(repr(function))} is not a function.",
            hint="Define one with `def`, or use `Toolbox.add` with a schema for other callables.",
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadTool(
            f"`{function.__name__}` is a generator; a tool has one result.", hint="Return a value instead."
        )


def _warn_of_missing_returns(function: Callable[..., object], name: str) -> None:
    # reported at the function itself, wherever it was decorated
    code = getattr(inspect.unwrap(function), "__code__", function.__code__)
    warnings.warn_explicit(
        f"Frontend tool `{name}` has no `Returns:` in its docstring: the author of its handler and the model "
        "cannot know what it returns.",
        UserWarning,
        code.co_filename,
        code.co_firstlineno,
    )


def _object_schema(parameters: object, name: str) -> Schema:
    try:
        # a copy, so that nobody can change the schema of a tool later
        schema = to_json(parameters)
    except NotJson as error:
        raise BadTool(f"The schema of tool `{name}` is not JSON: {error}.") from error
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise BadTool(
            f"The schema of tool `{name}` does not describe an object.",
            hint='Use {"type": "object", "properties": {…}}: the input is an object.',
        )
    return _check_schema({"type": "object", **schema}, name)


def _check_schema(schema: Schema, name: str) -> Schema:
    try:
        compile_schema(schema)
    except BadTool as error:
        raise BadTool(
            f"The input of tool `{name}` cannot be checked. {error.message}", hint=error.hint
        ) from error
    return schema


def _check_takes(function: Callable[..., object], schema: Schema, name: str) -> None:
    properties = schema.get("properties")
    members = dict.fromkeys(properties if isinstance(properties, dict) else ())
    taken = context_parameter(function)
    try:
        inspect.signature(function).bind(**members, **({} if taken is None else {taken: None}))
    except TypeError as error:
        raise BadTool(
            f"The function of tool `{name}` cannot be called with the members of its schema: {error}.",
            hint="It gets each member of the input as a keyword argument.",
        ) from error
    except ValueError:
        # some built-in functions have no signature; they are not checked
        return
