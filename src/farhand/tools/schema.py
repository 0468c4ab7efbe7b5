"""Converts a Python signature to JSON Schema, and JSON back to the arguments of that signature.

pydantic provides the types, the docstring the descriptions. A signature that cannot be described to a model
without guessing raises `BadTool` when the tool is declared. It must not know who runs a tool, or when.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, get_type_hints

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import PydanticSerializationError, SchemaError, core_schema

from farhand.core.tool import Schema
from farhand.errors import BadTool
from farhand.tools.check import compile_schema, mismatch
from farhand.tools.context import context_parameter
from farhand.tools.docstring import ParsedDocstring, parse_docstring
from farhand.tools.to_json import NotJson, shorten, to_json

# Any: a hint is anything that pydantic understands, not always a type
Hint = Any
Hints = dict[str, Hint]


class ToolSignature(Struct, frozen=True, kw_only=True):
    """A function's signature and docstring, as a tool needs them."""

    description: str
    arguments: ToolArguments
    output_schema: Schema | None
    returns_text: bool
    returns_nothing: bool
    documents_return: bool
    """True if the docstring has a `Returns:` section."""


def read_signature(function: Callable[..., object], name: str) -> ToolSignature:
    doc = parse_docstring(function, name)
    hints = _hints(function, name)
    arguments = ToolArguments(_fields(function, name, hints, doc))
    _check_defaults(arguments.schema, name)
    output_schema = _output_schema(hints, name)
    return ToolSignature(
        description=doc.description,
        arguments=arguments,
        output_schema=output_schema,
        returns_text=_is_text(output_schema),
        returns_nothing=hints.get("return", Any) is type(None),
        documents_return=doc.returns is not None,
    )


class ToolArguments:
    """The parameters of one function: their schema, and the conversion of JSON to values of their types."""

    def __init__(self, fields: dict[str, tuple[Hint, FieldInfo]]) -> None:
        # fields are numbered and have the parameter's name as an alias: `_x`, `json` or `model_x` are valid
        # names for parameters, but not for fields of a pydantic model
        self._names = {f"p{index}": name for index, name in enumerate(fields)}
        # Any: the overloads of create_model cannot describe fields that come from a dict
        numbered: dict[str, Any] = dict(zip(self._names, fields.values(), strict=True))
        self._model: type[BaseModel] = create_model("Input", __config__=_CONFIG, **numbered)
        self.schema: Schema = self._model.model_json_schema(schema_generator=_Writer)
        del self.schema["title"]

    def bind(self, input: bytes) -> dict[str, object]:
        """Keyword arguments from JSON text. Raises pydantic's `ValidationError` for a wrong type.

        Only members of the input are set, so the function's own defaults apply.
        """
        made = self._model.model_validate_json(input)
        return {self._names[field]: getattr(made, field) for field in made.model_fields_set}


_CONFIG = ConfigDict(extra="forbid", hide_input_in_errors=True)
# LookupError: a type with its own schema refers to something that does not exist
_UNFIT = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, LookupError)
_TYPES_THAT_FIT = (
    "Use str, int, float, bool, Literal, an Enum, a date, lists and dicts of those, a pydantic model, "
    "a dataclass or a typing_extensions.TypedDict."
)


class _Writer(GenerateJsonSchema):
    """No titles (they repeat names), no default that JSON cannot represent, no incomplete union."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def encode_default(self, dft: object) -> object:
        try:
            return to_json(super().encode_default(dft))
        except NotJson as error:
            raise PydanticSerializationError(str(error)) from error

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        # some versions of pydantic describe a string of digits by a pattern with look-around, which we reject
        described = super().decimal_schema(schema)
        for choice in described.get("anyOf", ()):
            choice.pop("pattern", None)
        return described

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        # the other kind says that a default was omitted, which is intended
        if kind == "skipped-choice":
            raise PydanticInvalidForJsonSchema(detail)


def _hints(function: Callable[..., object], name: str) -> Hints:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise BadTool(
            f"A type hint of tool `{name}` cannot be resolved: {shorten(str(error))}.",
            hint="Define or import the type at the top level of the module.",
        ) from error


def _fields(
    function: Callable[..., object], name: str, hints: Hints, doc: ParsedDocstring
) -> dict[str, tuple[Hint, FieldInfo]]:
    parameters = inspect.signature(function).parameters
    for documented in doc.parameters:
        if documented not in parameters:
            raise BadTool(
                f"The docstring of tool `{name}` describes `{documented}`, which is not a parameter.",
                hint="Remove it from `Args:` or add it to the signature.",
            )
    if next(iter(parameters), None) == "self" and "self" not in hints:
        raise BadTool(
            f"`{name}` is a method without its object.",
            hint=f"Leave out @tool, and pass it from an object: tools=[thing.{name}].",
        )
    taken = context_parameter(function)
    return {
        parameter.name: _field(parameter, f"Parameter `{parameter.name}` of tool `{name}`", hints, doc)
        for parameter in parameters.values()
        if parameter.name != taken
    }


def _field(parameter: Parameter, what: str, hints: Hints, doc: ParsedDocstring) -> tuple[Hint, FieldInfo]:
    if parameter.kind not in {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}:
        raise BadTool(
            f"{what} is {parameter.kind.description}; a model passes arguments by name.",
            hint="Name every parameter, without `*`, `**` or a `/` after it.",
        )
    if parameter.name not in hints:
        raise BadTool(f"{what} has no type hint.", hint=f"Write `{parameter.name}: <type>` in the signature.")
    hint = hints[parameter.name]
    _schema_of(hint, what)
    annotated = FieldInfo.from_annotation(hint)
    if not annotated.is_required() or isinstance(parameter.default, FieldInfo):
        raise BadTool(
            f"{what} has its default inside `Field`, where Python ignores it.",
            hint=f"Write `{parameter.name}: Annotated[<type>, Field(...)] = <default>`.",
        )
    described = doc.parameters.get(parameter.name) or annotated.description
    if not described:
        raise BadTool(f"{what} has no description.", hint="Describe it under `Args:` in the docstring.")
    return hint, _field_info(parameter, described)


def _field_info(parameter: Parameter, description: str) -> Any:
    name = parameter.name
    default = ... if parameter.default is Parameter.empty else parameter.default
    # all three aliases: one inside the hint's own `Field` must not rename the parameter
    return Field(
        default, alias=name, validation_alias=name, serialization_alias=name, description=description
    )


def _check_defaults(schema: Schema, name: str) -> None:
    """A model that sends the documented default must not be refused."""
    members = schema.get("properties")
    alone = {key: rule for key, rule in schema.items() if key != "required"}
    for member, rule in (members if isinstance(members, dict) else {}).items():
        if "default" not in rule:
            continue
        wrong = mismatch(alone, {member: rule["default"]})
        if wrong is not None:
            default = shorten(repr(rule["default"]))
            raise BadTool(
                f"Parameter `{member}` of tool `{name}` has the default {default}, which its type does not "
                f"allow: {wrong}.",
                hint=f"Change one of them; use `{member}: <type> | None = None` for an optional parameter.",
            )


def _output_schema(hints: Hints, name: str) -> Schema | None:
    """None if the return annotation has nothing that can be checked."""
    hint = hints.get("return", Any)
    if hint is type(None):
        return None
    schema = _schema_of(hint, f"The result of tool `{name}`")
    return None if schema in _UNCONSTRAINED else schema


_UNCONSTRAINED: tuple[Schema, ...] = ({}, {"type": "object", "additionalProperties": True})


def _schema_of(hint: Hint, what: str) -> Schema:
    try:
        schema: Schema = TypeAdapter(hint).json_schema(schema_generator=_Writer)
    except _UNFIT as error:
        raise BadTool(
            f"{what} has a type that JSON Schema cannot describe: {shorten(inspect.formatannotation(hint))}.",
            hint=_TYPES_THAT_FIT,
        ) from error
    schema.pop("title", None)
    try:
        compile_schema(schema)
    except BadTool as error:
        # a type may have its own schema, with a pattern or a reference that we do not support
        raise BadTool(f"{what} cannot be checked. {error.message}", hint=error.hint) from error
    return schema


def _is_text(schema: Schema | None) -> bool:
    """True if every value that fits is a string or null."""
    if schema is None:
        return False
    choices = schema.get("anyOf")
    types = [choice.get("type") for choice in (choices if isinstance(choices, list) else [schema])]
    return "string" in types and all(name in {"string", "null"} for name in types)
