"""Endpoints of files: upload, and download by the owner alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from farhand.agent.farhand import Farhand
from farhand.core.file import PIECE_BYTES, StoredFile
from farhand.errors import NotFound
from farhand.faces.base import Face, Request, Route
from farhand.faces.files.decode import decode_label
from farhand.faces.files.encode import encode_error, encode_uploaded, headers_of
from farhand.wire.body import read_pieces

SCOPE = "chat|answer|client"
"""Whoever may say something, answer a call, or run a tool elsewhere may need a file for it."""


def files_face(farhand: Farhand) -> Face:
    endpoints = _Endpoints(farhand)
    return Face(
        name="files",
        explain=encode_error,
        routes=(
            # no limit here: its body is no JSON, and is read by the endpoint itself as it comes
            Route("POST", "/api/files", endpoints.upload, scope=SCOPE),
            Route("GET", "/api/files/{ref}", endpoints.download, scope=SCOPE),
            Route("HEAD", "/api/files/{ref}", endpoints.describe, scope=SCOPE),
        ),
    )


class _Endpoints:
    def __init__(self, farhand: Farhand) -> None:
        self._files = farhand.files
        self._limits = farhand.settings.limits

    async def upload(self, request: Request) -> None:
        label = decode_label(request.scope["headers"])
        pieces = read_pieces(
            request.line.receive,
            piece=PIECE_BYTES,
            limit=self._files.rules.size,
            within=self._limits.body_within_sec,
        )
        file = await self._files.receive(request.owner, label, pieces)
        await request.reply(201, encode_uploaded(file))

    async def download(self, request: Request) -> None:
        file = await self._find(request)
        pieces = self._files.pieces(file)
        # read before its length is promised: a file that goes until then is one that is not there
        piece = await anext(pieces)
        await self._begin(request, file)
        async with asyncio.TaskGroup() as group:
            # servers may drop what is sent to a reader that left without a word
            listener = group.create_task(request.line.listen())
            # what goes wrong on the way is told by cutting the connection
            with suppress(NotFound, OSError):
                await self._send_all(request, piece, pieces, file.size)
            listener.cancel()

    async def _send_all(
        self, request: Request, piece: bytes, pieces: AsyncIterator[bytes], size: int
    ) -> None:
        sent = len(piece)
        await self._send(request, piece, more=sent < size)
        async for more in pieces:
            if request.line.is_over:
                return
            sent += len(more)
            await self._send(request, more, more=sent < size)

    async def describe(self, request: Request) -> None:
        await self._begin(request, await self._find(request))
        await self._send(request, b"", more=False)

    async def _find(self, request: Request) -> StoredFile:
        return await self._files.find(request.owner, request.parameter("ref"))

    async def _begin(self, request: Request, file: StoredFile) -> None:
        await request.line.send({"type": "http.response.start", "status": 200, "headers": headers_of(file)})

    async def _send(self, request: Request, body: bytes, *, more: bool) -> None:
        # a reader that takes nothing must not hold a connection for ever
        async with asyncio.timeout(self._limits.stalled_after_sec):
            await request.line.send({"type": "http.response.body", "body": body, "more_body": more})
