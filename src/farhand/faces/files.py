"""Files that are too big for a result: uploaded once, then referred to, and downloaded by their owner alone.

Downloads are never displayed as a page, and always have a safe name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from urllib.parse import quote, unquote_to_bytes

from msgspec import Struct

from farhand.agent.files import Label
from farhand.agent.service import AgentService
from farhand.core.file import PIECE_BYTES, UNNAMED, StoredFile, clean_name, media_type_of
from farhand.errors import Malformed, NotAllowed, NotFound, StoreDown, WrongType
from farhand.faces.base import Face, Media, Parameter, Request, Route
from farhand.wire.http import Header, declared_length, read_pieces, require_unencoded
from farhand.wire.json_writer import encode

NAME_AT_MOST = 4096
SCOPE = "chat|answer|client"
"""Anyone who may chat, answer a call or run a tool elsewhere may need a file for it."""


class UploadedFile(Struct):
    """The answer to an upload; a result may contain it as it is."""

    ref: str
    name: str
    type: str
    size: int


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
        await request.reply(201, encode(UploadedFile(file.ref, file.name, file.media_type, file.size)))

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
            with suppress(NotFound, StoreDown, OSError):
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


def decode_label(headers: Iterable[Header]) -> Label:
    heads = dict(headers)
    require_unencoded(heads.items())
    if not heads.get(b"x-farhand", b"").strip():
        # an HTML form of another site can send any body, but no custom header
        raise NotAllowed("An upload needs the header X-Farhand.", hint="Send X-Farhand: 1.")
    media_type = media_type_of(heads.get(b"content-type", b"").decode("latin-1"))
    if media_type is None:
        raise WrongType("An upload needs a media type.", hint="Send for example Content-Type: image/png.")
    return Label(_name(heads.get(b"x-file-name")), media_type, declared_length(heads.items()))


def _name(header: bytes | None) -> str:
    if header is None:
        return UNNAMED
    if len(header) > NAME_AT_MOST:
        raise Malformed(f"X-File-Name is longer than {NAME_AT_MOST} bytes.")
    try:
        return clean_name(unquote_to_bytes(header.decode("ascii")).decode())
    except UnicodeDecodeError:
        raise Malformed(
            "X-File-Name is not percent-encoded UTF-8.", hint="Send encodeURIComponent(file.name)."
        ) from None


def headers_of(file: StoredFile) -> list[Header]:
    return [
        (b"content-type", _served_type(file.media_type).encode()),
        (b"content-length", b"%d" % file.size),
        (b"content-disposition", _disposition(file.name)),
        *_SAFE,
    ]


_SAFE: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    # even if a browser ignores the attachment header, no script runs and no frame embeds it
    (b"content-security-policy", b"default-src 'none'; sandbox; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-site"),
    (b"referrer-policy", b"no-referrer"),
    # the next user of this browser may be somebody else
    (b"cache-control", b"private, no-store"),
)

_ACTIVE = ("html", "svg", "xml", "script")


def _served_type(media_type: str) -> str:
    """A type that a browser could run as a page or a script becomes plain bytes."""
    return "application/octet-stream" if any(word in media_type for word in _ACTIVE) else media_type


def _disposition(name: str) -> bytes:
    plain = "".join(char if char.isascii() and char not in '"\\%' else "_" for char in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}".encode()
