"""Writes JSON Schemas as TypeScript types, without Node.

Owns how a type is spelled. A schema may come from anywhere: what TypeScript cannot express becomes `unknown`,
and nothing in a schema can end a comment or a string of the generated file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, count
from textwrap import indent
from typing import TypeAlias

from farhand.core.tool import Executor, Tool

Names: TypeAlias = Mapping[str, str]
"""References as written in the schema, and the names of their types."""

HEAD = "// Written by `farhand types` from the Python tools. Do not edit: write it again.\n"


def frontend_types(tools: Iterable[Tool]) -> str:
    """A file with the input and output types of every frontend tool, and the handlers a page must provide."""
    named = _Definitions()
    entries = [_entry(tool, named) for tool in tools if tool.executor is Executor.FRONTEND]
    listed = indent("\n".join(entries), "  ")
    tools_type = f"export interface FrontendTools {{\n{listed}\n}}\n" if entries else _NO_TOOLS
    return "\n".join([HEAD, *named.written, tools_type, _HANDLERS])


def declaration(name: str, schema: object, names: Names) -> str:
    """One exported type with its description."""
    return f"{_comment(schema)}export type {name} = {type_of(schema, names)};\n"


def type_of(schema: object, names: Names) -> str:
    if not isinstance(schema, dict):
        return "never" if schema is False else "unknown"
    for keyword, write in _KEYWORDS.items():
        if keyword in schema:
            return write(schema[keyword], names)
    return _by_type(schema, names)


def pascal(name: str) -> str:
    """`open_url` as the name of a type: `OpenUrl`."""
    words = "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name))
    return f"T{words}" if not words or words[0].isdigit() else words


_NO_TOOLS = "// the agent has no frontend tools\nexport type FrontendTools = Record<never, never>;\n"

_HANDLERS = """\
/** What a handler gets besides its input. The signal fires when nobody waits for the result any more. */
export interface HandlerContext {
  readonly callId: string;
  readonly signal: AbortSignal;
}

/** One handler for each frontend tool: a missing one, a wrong argument or a wrong return does not compile. */
export type Handlers = {
  readonly [Name in keyof FrontendTools]: (
    input: FrontendTools[Name]["input"],
    context: HandlerContext,
  ) => FrontendTools[Name]["output"] | Promise<FrontendTools[Name]["output"]>;
};
"""


class _Definitions:
    """Types defined inside schemas; the same name in two tools makes two types."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self._taken = {"FrontendTools", "HandlerContext", "Handlers"}

    def names_of(self, schema: object, prefix: str) -> Names:
        found = schema.get("$defs") if isinstance(schema, dict) else None
        defined: dict[str, object] = found if isinstance(found, dict) else {}
        names = {f"#/$defs/{key}": self._fresh(prefix + pascal(key)) for key in defined}
        for key, each in defined.items():
            self.written.append(declaration(names[f"#/$defs/{key}"], each, names))
        return names

    def _fresh(self, wanted: str) -> str:
        name = next(name for name in _candidates(wanted) if name not in self._taken)
        self._taken.add(name)
        return name


def _candidates(wanted: str) -> Iterable[str]:
    return chain([wanted], (f"{wanted}{number}" for number in count(2)))


def _entry(tool: Tool, named: _Definitions) -> str:
    sides = {"input": tool.input_schema, "output": tool.output_schema}
    fields = [
        f"readonly {side}: {type_of(schema, named.names_of(schema, pascal(tool.name) + pascal(side)))};"
        for side, schema in sides.items()
    ]
    body = indent("\n".join(fields), "  ")
    return f"{_comment({'description': tool.description})}readonly {_key(tool.name)}: {{\n{body}\n}};"


def _by_type(schema: dict[str, object], names: Names) -> str:
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, list):
        return _union([{**schema, "type": each} for each in kind], names)
    if kind == "object":
        return _object(schema, names)
    if kind == "array":
        return _array(schema, names)
    return _PLAIN.get(str(kind), "unknown")


_PLAIN = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}


def _object(schema: dict[str, object], names: Names) -> str:
    properties, required = schema.get("properties"), schema.get("required")
    more = schema.get("additionalProperties")
    if not isinstance(properties, dict) or not properties:
        return _record(more, names)
    needed = required if isinstance(required, list) else []
    lines = [
        _property(name, each, names, mark="" if name in needed else "?") for name, each in properties.items()
    ]
    listed = "{\n" + indent("\n".join(lines), "  ") + "\n}"
    # an index signature would forbid every property of another type
    return listed if more is None or more is False else f"{listed} & Readonly<Record<string, unknown>>"


def _record(more: object, names: Names) -> str:
    of = "never" if more is False else type_of(more, names)
    return f"Readonly<Record<string, {of}>>"


def _property(name: str, schema: object, names: Names, *, mark: str) -> str:
    return f"{_comment(schema)}readonly {_key(name)}{mark}: {type_of(schema, names)};"


def _array(schema: dict[str, object], names: Names) -> str:
    first, items = schema.get("prefixItems"), schema.get("items")
    if not isinstance(first, list):
        return f"ReadonlyArray<{type_of(items, names)}>"
    rest = [] if items is False or items is None else [f"...ReadonlyArray<{type_of(items, names)}>"]
    return f"readonly [{', '.join([*(type_of(each, names) for each in first), *rest])}]"


def _union(schemas: object, names: Names) -> str:
    return _joined(schemas, names, " | ") or "never"


def _intersection(schemas: object, names: Names) -> str:
    return _joined(schemas, names, " & ") or "unknown"


def _joined(schemas: object, names: Names, sign: str) -> str:
    types = [type_of(each, names) for each in schemas] if isinstance(schemas, list) else []
    # each once, in order
    spelled = dict.fromkeys(f"({each})" if " | " in each or " & " in each else each for each in types)
    return sign.join(spelled)


def _literal(value: object, _names: Names) -> str:
    if isinstance(value, dict | list):
        return "unknown"
    return json.dumps(value)


def _literals(values: object, names: Names) -> str:
    found = values if isinstance(values, list) else []
    return " | ".join(dict.fromkeys(_literal(value, names) for value in found)) or "never"


def _reference(target: object, names: Names) -> str:
    return names.get(str(target), "unknown")


_KEYWORDS: dict[str, Callable[[object, Names], str]] = {
    "$ref": _reference,
    "const": _literal,
    "enum": _literals,
    "anyOf": _union,
    "oneOf": _union,
    "allOf": _intersection,
}


def _comment(schema: object) -> str:
    text = schema.get("description") if isinstance(schema, dict) else None
    if not isinstance(text, str) or not text.strip():
        return ""
    lines = [line.rstrip() for line in text.strip().replace("*/", "* /").splitlines()]
    if len(lines) == 1:
        return f"/** {lines[0]} */\n"
    return "/**\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */\n"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", name) else json.dumps(name)
