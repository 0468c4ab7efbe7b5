"""Downloads: only for the owner, and never displayed as a page."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from email.message import Message
from urllib.parse import unquote

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as some
from starlette.requests import HTTPConnection

from farhand.core.file import PIECE_BYTES, StoredFile, clean_name
from farhand.core.principal import LOCAL, Owner, Principal
from farhand.core.settings import Limits, Settings
from farhand.errors import StoreDown
from farhand.faces.files import headers_of
from tests.faces.conftest import Serve
from tests.faces.files.uploads import PNG, connect, people, told, uploaded
from tests.faces.ui_stream.agents import Scene
from tests.faces.ui_stream.page import until
from tests.requirement import requirement

REF = "blob_" + "0" * 32


def of_tenant(request: HTTPConnection) -> Principal | None:
    """`x-name` is `tenant/subject`."""
    tenant, _, subject = request.headers.get("x-name", "").partition("/")
    return Principal(tenant, subject) if subject else None


@requirement("files:safe")
async def test_a_file_leaves_as_an_attachment_that_runs_nowhere(serve: Serve, store: str) -> None:
    server = await serve(Scene(["x"]).agent, store=store)
    ref = await uploaded(server.http, PNG, name='a "b" ü.png')
    response = await server.http.get(f"/api/files/{ref}")
    assert (response.status_code, response.content) == (200, PNG)
    heads = response.headers
    assert heads["content-disposition"] == (
        "attachment; filename=\"a _b_ _.png\"; filename*=UTF-8''a%20_b_%20%C3%BC.png"
    )
    assert (heads["content-type"], heads["content-length"]) == ("image/png", str(len(PNG)))
    assert heads["x-content-type-options"] == "nosniff"
    assert heads["cache-control"] == "private, no-store"
    assert {"sandbox", "default-src 'none'", "frame-ancestors 'none'"} == set(
        heads["content-security-policy"].split("; ")
    )


@requirement("files:safe")
@pytest.mark.parametrize(
    "media_type", ["text/html", "image/svg+xml", "text/xml", "text/javascript", "text/x-html-template"]
)
async def test_what_could_run_is_only_bytes_to_a_browser(serve: Serve, media_type: str) -> None:
    server = await serve(Scene(["x"]).agent)
    ref = await uploaded(server.http, b"<svg onload=alert(1)>", name="a.svg", media_type=media_type)
    response = await server.http.get(f"/api/files/{ref}")
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["content-disposition"].startswith("attachment;")
    # what it is stays known
    assert (await server.service.files.find(LOCAL, ref)).media_type == media_type


@requirement("files:safe")
async def test_a_head_has_the_same_headers_and_no_body(serve: Serve) -> None:
    server = await serve(Scene(["x"]).agent)
    ref = await uploaded(server.http)
    got, head = await server.http.get(f"/api/files/{ref}"), await server.http.head(f"/api/files/{ref}")
    same = ("content-type", "content-length", "content-disposition", "content-security-policy")
    assert [head.headers[name] for name in same] == [got.headers[name] for name in same]
    assert head.content == b""


@requirement("files:safe")
@given(some.text())
def test_no_name_breaks_out_of_its_header(name: str) -> None:
    cleaned = clean_name(name)
    file = StoredFile(owner=LOCAL, ref=REF, name=cleaned, media_type="image/png", created_at=0.0)
    header = dict(headers_of(file))[b"content-disposition"]
    assert header.isascii()
    assert not any(byte < 0x20 for byte in header)
    parsed = Message()
    parsed["content-disposition"] = header.decode()
    assert parsed.get_content_disposition() == "attachment"
    plain, _, encoded = header.decode().partition("; filename*=UTF-8''")
    assert unquote(encoded) == cleaned
    assert plain.count('"') == 2


@requirement("attack:who-you-are")
async def test_to_everybody_but_its_owner_a_file_is_not_there(serve: Serve, store: str) -> None:
    server = await serve(Scene(["x"]).agent, store=store, authenticate=of_tenant)
    async with people(server, "acme/ann", "acme/bob", "evil/ann", "ann/acme") as (ann, *others):
        ref = await uploaded(ann)
        unknown = await ann.get(f"/api/files/{REF}")
        assert told(unknown) == (404, "unknown")
        for other in others:
            answer = await other.get(f"/api/files/{ref}")
            # byte for byte what is said of a file that never was
            assert (answer.status_code, answer.content) == (404, unknown.content)
        assert (await ann.get(f"/api/files/{ref}")).content == PNG


@requirement("attack:who-you-are")
@pytest.mark.parametrize(
    "ref", ["x", "blob_", REF.upper(), f"{REF}0", "%00", "..%2f..%2fetc", REF[:-1] + "g"]
)
async def test_what_is_no_ref_is_not_there(serve: Serve, ref: str) -> None:
    server = await serve(Scene(["x"]).agent)
    assert told(await server.http.get(f"/api/files/{ref}")) == (404, "unknown")


@requirement("files:any-worker")
async def test_a_file_is_served_after_a_restart(serve: Serve, file_store: str) -> None:
    first = await serve(Scene(["x"]).agent, store=file_store)
    body = bytes(range(256)) * (PIECE_BYTES // 128 + 1)
    ref = await uploaded(first.http, body)
    await first.stop()
    second = await serve(Scene(["x"]).agent, store=file_store)
    assert (await second.http.get(f"/api/files/{ref}")).content == body


@requirement("attack:who-you-are")
async def test_a_file_that_goes_before_its_first_piece_is_read_is_not_there(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve(Scene(["x"]).agent)
    ref = await uploaded(server.http)
    files = server.service.log.files

    async def gone(*asked: object) -> None:
        return None

    monkeypatch.setattr(files, "piece", gone)
    assert told(await server.http.get(f"/api/files/{ref}")) == (404, "unknown")


@requirement("files:safe")
async def test_a_download_that_the_store_interrupts_is_cut_and_no_bug(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = await serve(Scene(["x"]).agent)
    ref = await uploaded(server.http, bytes(2 * PIECE_BYTES))
    piece = server.service.log.files.piece

    async def away(owner: Owner, ref: str, no: int) -> bytes | None:
        if no:
            raise StoreDown("The store is away.")
        return await piece(owner, ref, no)

    monkeypatch.setattr(server.service.log.files, "piece", away)
    with pytest.raises(httpx2.RemoteProtocolError):
        await server.http.get(f"/api/files/{ref}")
    await until(lambda: server.under_way == 0)
    assert "unhandled" not in caplog.text
    assert "Traceback" not in caplog.text


@requirement("files:safe")
async def test_a_reader_that_takes_nothing_is_let_go(serve: Serve) -> None:
    server = await serve(Scene(["x"]).agent, settings=Settings(limits=Limits(stalled_after_sec=0.2)))
    size, rest = 8 * 1024 * 1024, b""
    ref = await uploaded(server.http, bytes(size))
    reader, writer = await connect(server)
    head = f"GET /api/files/{ref} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    writer.write(f"{head}Authorization: Bearer {server.token}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    # read again only when it has been let go: what the socket holds may come, and then a reset or the end
    await until(lambda: server.under_way == 0)
    with suppress(ConnectionResetError):
        rest = await asyncio.wait_for(reader.read(-1), 20)
    writer.close()
    assert len(rest) < size, "less than the Content-Length, so nobody takes it for the whole file"
