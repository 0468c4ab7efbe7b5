"""The OpenAPI document of an app's HTTP routes. Pure: faces in, one JSON value out.

What a route takes and gives is told in `routes_told.py`, in the shapes that its face reads and writes.
WebSockets have no place in such a document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from farhand.faces.base import Face, Route
from farhand.server.routes_told import EMPTY, STREAM, TOLD, Link, Parameter, Told, refusal_of

Json: TypeAlias = dict[str, object]


def openapi_of(faces: Sequence[Face], *, version: str) -> Json:
    """Every route of these faces. One that is not told is listed with what the server knows of it."""
    components: dict[str, object] = {}
    paths: dict[str, dict[str, object]] = {}
    for face in faces:
        writer = _Writer(face, components)
        for route in face.routes:
            # a path that ends where its parameter should stand is there to say so, and for nothing else
            if not route.path.endswith("/pending") and not route.path.endswith("/"):
                paths.setdefault(route.path, {})[route.method.lower()] = writer.operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "farhand", "version": version, "license": _LICENSE, "description": _ABOUT},
        "security": [{"bearer": []}],
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(components.items())), "securitySchemes": _SCHEMES},
    }


_ABOUT = (
    "All routes take and give JSON or server-sent events. Each needs a sign-in that has the scope named in "
    "`x-scope`. What belongs to somebody else does not exist for you."
)
_LICENSE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
_SCHEMES = {"bearer": {"type": "http", "scheme": "bearer"}}
_NAMES = re.compile(r"\{(\w+)\}")


class _Writer:
    """One face; its shapes stand under its own name, since faces may call two things the same."""

    def __init__(self, face: Face, components: dict[str, object]) -> None:
        self._face = face
        self._refs = f"#/components/schemas/{face.name}.{{name}}"
        self._components = components

    def operation(self, route: Route) -> Json:
        told = TOLD.get((route.method, route.path), _untold(route))
        written: Json = {
            "operationId": f"{self._face.name}.{told.name or _name_of(route)}",
            "summary": told.what,
            "tags": [self._face.name],
            "x-scope": route.scope,
            "parameters": [
                *(_in_path(name) for name in _NAMES.findall(route.path)),
                *map(_parameter, told.parameters),
            ],
            "responses": self._responses(told),
        }
        if told.takes is not None:
            body = self._body(told.takes)
            if told.example is not None:
                body["examples"] = {"one": {"value": told.example}}
            written["requestBody"] = {"required": True, "content": {told.takes_type: body}}
            written["x-limit-bytes"] = route.limit
        return written

    def _responses(self, told: Told) -> Json:
        responses = {str(status): self._response(given) for status, given in told.gives.items()}
        if told.links:
            responses[next(iter(responses))]["links"] = {link.to: _link(link) for link in told.links}
        refusal = {
            "description": "Refused, and why.",
            "content": {JSON: self._body(refusal_of(self._face.name))},
        }
        return {**responses, "4XX": refusal, "503": {**refusal, "description": "Come back in a moment."}}

    def _response(self, given: object) -> Json:
        if given is EMPTY:
            return {"description": "Nothing to say."}
        if given is STREAM:
            return {"description": "A stream of events.", "content": {"text/event-stream": {}}}
        if isinstance(given, Mapping):
            return {"description": "Done.", "content": {str(kind): {"schema": {}} for kind in given}}
        return {"description": "Done.", "content": {JSON: self._body(given)}}

    def _body(self, shape: object) -> Json:
        if isinstance(shape, Mapping):
            return {"schema": dict(shape)}
        [schema], found = msgspec.json.schema_components(
            [shape], schema_hook=_anything, ref_template=self._refs
        )
        for name, each in found.items():
            self._components[f"{self._face.name}.{name}"] = _with_patterns(f"{self._face.name}.{name}", each)
        return {"schema": schema}


JSON = "application/json"


def _untold(route: Route) -> Told:
    takes: Json | None = {} if route.limit else None
    return Told(f"{route.method} {route.path}", takes=takes, gives={"2XX": {"*/*": {}}})


# what a shape can't say of an id, so that whoever makes one up makes one that can be
_CHOSEN = "^[A-Za-z0-9_.:-]{1,128}$"
_CLIENT = "^[A-Za-z0-9_-]{1,64}$"
_PATTERNS = {
    ("ui_stream.ChatRequest", "id"): _CHOSEN,
    ("client_tools.Register", "clientID"): _CLIENT,
    ("client_tools.Unregister", "clientID"): _CLIENT,
    ("client_tools.OfferedTool", "id"): _CLIENT,
}


def _in_path(name: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _with_patterns(name: str, schema: Json) -> Json:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    narrowed = {
        key: {**each, "pattern": _PATTERNS[name, key]} if (name, key) in _PATTERNS else each
        for key, each in properties.items()
    }
    return {**schema, "properties": narrowed}


def _parameter(parameter: Parameter) -> Json:
    name, schema, where, required = parameter
    return {"name": name, "in": where, "required": required, "schema": dict(schema)}


def _link(link: Link) -> Json:
    return {"operationId": link.to, "parameters": dict(link.parameters)}


def _name_of(route: Route) -> str:
    return "_".join([route.method.lower(), *re.findall(r"\w+", route.path)])


def _anything(kind: type) -> Json:
    """`object` is any JSON at all; an empty schema would be taken for none."""
    if kind is object:
        return {"description": "any JSON"}
    raise NotImplementedError
