"""Uploads files, and checks what the server stores."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx2

from farhand.core.file import Kept, StoredFile
from farhand.core.principal import LOCAL, Owner
from tests.faces.served import Served
from tests.faces.ui_stream.header_auth import person

# Any: what comes over the wire is looked at by its fields, and a wrong one fails the test
Json = Any

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
NOTHING = Kept()
WITHIN_SEC = 20.0


async def upload(
    http: httpx2.AsyncClient,
    body: bytes | AsyncIterator[bytes] = PNG,
    *,
    name: str | None = "a.png",
    media_type: str = "image/png",
    **headers: str,
) -> httpx2.Response:
    named = {} if name is None else {"X-File-Name": quote(name, safe="")}
    head = {"Content-Type": media_type, "X-Farhand": "1", **named, **headers}
    return await http.post("/api/files", content=body, headers=head)


async def uploaded(
    http: httpx2.AsyncClient, body: bytes = PNG, *, name: str | None = "a.png", media_type: str = "image/png"
) -> str:
    """The ref of a file that the server took."""
    response = await upload(http, body, name=name, media_type=media_type)
    assert response.status_code == 201, response.text
    return str(response.json()["ref"])


async def kept(served: Served, owner: Owner = LOCAL) -> Kept:
    """What there is of the owner's files, whole or not."""
    return await served.service.log.files.kept(owner.tenant, owner.subject)


async def stored(served: Served, ref: str, owner: Owner = LOCAL) -> StoredFile:
    return await served.service.files.find(owner, ref)


async def until_kept(served: Served, wanted: Kept) -> None:
    """Waits for a fact that nobody announces."""
    async with asyncio.timeout(WITHIN_SEC):
        # looked at again and again: the fact has no event to wait for
        while await kept(served) != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def raw_upload(served: Served, length: int, body: bytes) -> tuple[Reader, Writer]:
    """A connection on which an upload has begun that says this length."""
    reader, writer = await connect(served)
    head = f"POST /api/files HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {served.token}\r\n"
    head += f"X-Farhand: 1\r\nContent-Type: image/png\r\nContent-Length: {length}\r\n\r\n"
    writer.write(head.encode() + body)
    return reader, writer


async def connect(served: Served) -> tuple[Reader, Writer]:
    return await asyncio.open_connection("127.0.0.1", int(served.url.rpartition(":")[2]), limit=1024)


def told(response: httpx2.Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    return response.status_code, str(response.json()["error"]["code"])


@asynccontextmanager
async def people(
    served: Served, *names: str, may: str | None = None
) -> AsyncIterator[list[httpx2.AsyncClient]]:
    """Those who name themselves in a header; what they may is everything unless it is said."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(person(served, name, may)) for name in names]
