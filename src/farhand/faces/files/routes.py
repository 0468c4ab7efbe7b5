"""Endpoints of files: upload, and download by the owner alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from farhand.agent.service import AgentService
from farhand.core.file import PIECE_BYTES, StoredFile
from farhand.errors import NotFound
from farhand.faces.base import Face, Media, Parameter, Request, Route
from farhand.faces.files.decode import decode_label
from farhand.faces.files.encode import encode_uploaded, headers_of
from farhand.faces.files.shapes import UploadedFile
from farhand.wire.http import read_pieces

SCOPE = "chat|answer|client"
"""Anyone who may chat, answer a call or run a tool elsewhere may need a file for it."""


def files_face(service: AgentService) -> Face:
    endpoints = _Endpoints(service)
    return Face(
        name="files",
        routes=(
            # no limit here: the body is not JSON, and the endpoint reads it as a stream
            Route(
                "POST",
                "/api/files",
                endpoints.upload,
                scope=SCOPE,
                takes=Media("text/plain", {"type": "string", "maxLength": 4096}),
                gives={201: UploadedFile},
                parameters=(
                    Parameter("X-Farhand", {"type": "string", "minLength": 1}, "header", required=True),
                    Parameter("X-File-Name", {"type": "string"}, "header"),
                ),
            ),
            Route("GET", "/api/files/{ref}", endpoints.download, scope=SCOPE, gives=Media("*/*")),
            Route("HEAD", "/api/files/{ref}", endpoints.describe, scope=SCOPE, gives={200: None}),
        ),
    )


class _Endpoints:
    def __init__(self, service: AgentService) -> None:
        self._files = service.files
        self._limits = service.settings.limits

    async def upload(self, request: Request) -> None:
        """Upload a file."""
        label = decode_label(request.scope["headers"])
        pieces = read_pieces(
            request.exchange.receive,
            piece=PIECE_BYTES,
            limit=self._files.rules.size,
            within=self._limits.body_within_sec,
        )
        file = await self._files.receive(request.owner, label, pieces)
        await request.reply(201, encode_uploaded(file))

    async def download(self, request: Request) -> None:
        """Download a file."""
        file = await self._find(request)
        pieces = self._files.pieces(file)
        # read before the length is sent: if the file was deleted meanwhile, the response is a 404
        piece = await anext(pieces)
        await self._begin(request, file)
        async with asyncio.TaskGroup() as group:
            # servers may silently drop what is sent to a reader that has left
            listener = group.create_task(request.exchange.listen())
            # an error after the head can only be signalled by closing the connection
            with suppress(NotFound, OSError):
                await self._send_all(request, piece, pieces, file.size)
            listener.cancel()

    async def _send_all(
        self, request: Request, piece: bytes, pieces: AsyncIterator[bytes], size: int
    ) -> None:
        sent = len(piece)
        await self._send(request, piece, more=sent < size)
        async for more in pieces:
            if request.exchange.is_over:
                return
            sent += len(more)
            await self._send(request, more, more=sent < size)

    async def describe(self, request: Request) -> None:
        """Read the headers of a download."""
        await self._begin(request, await self._find(request))
        await self._send(request, b"", more=False)

    async def _find(self, request: Request) -> StoredFile:
        return await self._files.find(request.owner, request.parameter("ref"))

    async def _begin(self, request: Request, file: StoredFile) -> None:
        await request.exchange.send(
            {"type": "http.response.start", "status": 200, "headers": headers_of(file)}
        )

    async def _send(self, request: Request, body: bytes, *, more: bool) -> None:
        # a reader that reads nothing must not hold a connection forever
        async with asyncio.timeout(self._limits.stalled_after_sec):
            await request.exchange.send({"type": "http.response.body", "body": body, "more_body": more})
