"""The OpenAPI document of an app's HTTP routes, and the route that serves it in development.

What a route takes and gives are the shapes on the route itself; its summary is the first line of its
endpoint's docstring. OpenAPI has no place for WebSockets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from inspect import getdoc
from typing import TypeAlias

import msgspec

from farhand.faces.base import STREAM, Face, Media, Parameter, Request, Route
from farhand.wire.json_writer import encode

Json: TypeAlias = dict[str, object]

JSON = "application/json"


def openapi_face(faces: Sequence[Face]) -> Face:
    async def document(request: Request) -> None:
        """This document."""
        await request.reply(200, encode(openapi_of((*faces, face), version=version("farhand"))))

    route = Route("GET", "/openapi.json", document, scope="inspect", gives=dict[str, object])
    face = Face(name="development", routes=(route,))
    return face


def openapi_of(faces: Sequence[Face], *, version: str) -> Json:
    """Every route of these faces that says what it gives."""
    components: dict[str, object] = {}
    paths: dict[str, dict[str, object]] = {}
    for face in faces:
        writer = _Writer(face, components)
        for route in face.routes:
            if route.gives is not None or route.streams:
                paths.setdefault(route.path, {})[route.method.lower()] = writer.operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "farhand", "version": version, "license": _LICENSE, "description": _ABOUT},
        "security": [{"bearer": []}],
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(components.items())), "securitySchemes": _SCHEMES},
    }


_ABOUT = (
    "All routes accept and return JSON or server-sent events. Each needs a credential with the scope in "
    "`x-scope`. What belongs to another principal does not exist for you."
)
_LICENSE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
_SCHEMES = {"bearer": {"type": "http", "scheme": "bearer"}}
_NAMES = re.compile(r"\{(\w+)\}")


class _Writer:
    """For one face, whose name prefixes its components: two faces may use one name for different shapes."""

    def __init__(self, face: Face, components: dict[str, object]) -> None:
        self._face = face
        self._refs = f"#/components/schemas/{face.name}.{{name}}"
        self._components = components

    def operation(self, route: Route) -> Json:
        name = f"{self._face.name}.{route.name or route.endpoint.__name__}"
        written: Json = {
            "operationId": name,
            "summary": (getdoc(route.endpoint) or "").partition("\n")[0],
            "tags": [self._face.name],
            "x-scope": route.scope,
            "parameters": [
                *(_in_path(each) for each in _NAMES.findall(route.path)),
                *map(_parameter, route.parameters),
            ],
            "responses": self._responses(name, route),
        }
        if route.deprecated:
            written["deprecated"] = True
        if route.takes is not None:
            [(kind, body)] = self._content(route.takes).items()
            if name in _EXAMPLES:
                body["examples"] = {"one": {"value": _EXAMPLES[name]}}
            written["requestBody"] = {"required": True, "content": {kind: body}}
            written["x-limit-bytes"] = route.limit
        return written

    def _responses(self, name: str, route: Route) -> Json:
        gives = route.gives if isinstance(route.gives, Mapping) else {200: route.gives or STREAM}
        responses = {str(status): self._response(shape) for status, shape in gives.items()}
        if name in _LINKS:
            links, parameters = _LINKS[name]
            first = next(iter(responses.values()))
            first["links"] = {link: {"operationId": link, "parameters": parameters} for link in links}
        refusal = {
            "description": "The request was refused; the body has the reason.",
            "content": self._content(self._face.refusal),
        }
        return {
            **responses,
            "4XX": refusal,
            "503": {**refusal, "description": "Unavailable; try again in a moment."},
        }

    def _response(self, shape: object) -> Json:
        if shape is None:
            return {"description": "No content."}
        shapes = shape if isinstance(shape, list) else [shape]
        content = {kind: body for each in shapes for kind, body in self._content(each).items()}
        words = "A stream of server-sent events." if shape is STREAM else "Success."
        return {"description": words, "content": content}

    def _content(self, shape: object) -> dict[str, Json]:
        if shape is STREAM:
            return {STREAM.type: {}}
        if isinstance(shape, Media):
            return {shape.type: {"schema": dict(shape.schema)}}
        [schema], found = msgspec.json.schema_components(
            [shape], schema_hook=_any_json, ref_template=self._refs
        )
        self._components.update({f"{self._face.name}.{name}": each for name, each in found.items()})
        return {JSON: {"schema": schema}}


_MESSAGE = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}
_TOOL = {"id": "lamp", "description": "Switch the lamp.", "parameters": {"type": "object"}}
_EXAMPLES: Mapping[str, object] = {
    "admin.purge": {"olderThanSec": 604_800, "dryRun": True},
    "agui.run": {
        "threadId": "first-chat",
        "runId": "first-run",
        "messages": [{"id": "m1", "role": "user", "content": "Hello"}],
    },
    "awaiting.run": {"user_prompt": "Hello"},
    "client_tools.register": {"clientID": "desk", "tools": [_TOOL]},
    "ui_stream.chat": {"id": "first-chat", "messages": [_MESSAGE]},
}
_LINKS: Mapping[str, tuple[Sequence[str], Mapping[str, str]]] = {
    "awaiting.run": (["awaiting.stream"], {"agent_uuid": "$request.body#/agent_uuid"}),
    "client_tools.register": (
        ["client_tools.tools_of", "client_tools.pending"],
        {"client_id": "$request.body#/clientID"},
    ),
    "files.upload": (["files.download", "files.describe"], {"ref": "$response.body#/ref"}),
    "ui_stream.chat": (
        ["ui_stream.resume", "ui_stream.stop", "threads.thread", "threads.rename", "threads.delete"],
        {"thread_id": "$request.body#/id"},
    ),
}
"""By operation: which operations can follow it, and the parameters they get from it."""


def _in_path(name: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _parameter(parameter: Parameter) -> Json:
    name, schema, where, required = parameter
    return {"name": name, "in": where, "required": required, "schema": dict(schema)}


def _any_json(kind: type) -> Json:
    """`object` is any JSON value; an empty schema would read as if there were none."""
    if kind is object:
        return {"description": "any JSON"}
    raise NotImplementedError
