"""What is served during development alone: the OpenAPI document. With an `authenticate` hook it is off."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from farhand.errors import FarhandError
from farhand.faces.base import Face, Request, Route
from farhand.wire.json_out import encode


def development_face(faces: Sequence[Face]) -> Face:
    async def document(request: Request) -> None:
        await request.reply(200, _document((*faces, face)))

    face = Face(
        name="development",
        explain=_explain,
        routes=(Route("GET", "/openapi.json", document, scope="inspect"),),
    )
    return face


def _document(faces: Sequence[Face]) -> bytes:
    # all that is told of every route: loaded for whoever wants to read it
    from farhand.server.openapi import openapi_of

    return encode(openapi_of(faces, version=version("farhand")))


def _explain(error: FarhandError, status: int) -> bytes:
    return encode({"error": {"code": error.code, "message": str(error)}})
