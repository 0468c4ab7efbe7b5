"""Uploads: complete or not stored at all, of an accepted type, within the limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import example, given
from hypothesis import settings as searching
from hypothesis import strategies as some

from farhand.core.file import PIECE_BYTES, FileRules, Kept
from farhand.core.principal import Owner
from farhand.core.settings import Limits, Settings
from tests.faces.conftest import Serve
from tests.faces.files.uploads import (
    NOTHING,
    PNG,
    WITHIN_SEC,
    kept,
    people,
    raw_upload,
    stored,
    told,
    until_kept,
    upload,
    uploaded,
)
from tests.faces.served import Options, served
from tests.faces.ui_stream.agents import Scene
from tests.faces.ui_stream.header_auth import check
from tests.requirement import requirement

MIB = 1024 * 1024


def rules(**changes: int | tuple[str, ...]) -> Settings:
    # each is the field that its name says
    return Settings(files=FileRules(**changes))  # type: ignore[arg-type]


async def in_chunks(body: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


@requirement("files:upload")
async def test_an_upload_is_answered_with_its_ref_name_type_and_size(serve: Serve, store: str) -> None:
    server = await serve(Scene(["x"]).agent, store=store)
    response = await upload(server.http, PNG, name="Mein Bild ü.png")
    assert response.status_code == 201
    answer = response.json()
    assert answer == {
        "ref": answer["ref"],
        "name": "Mein Bild ü.png",
        "type": "image/png",
        "size": len(PNG),
    }
    assert len(answer["ref"]) == len("blob_") + 32
    assert (await server.http.get(f"/api/files/{answer['ref']}")).content == PNG


@requirement("files:upload")
async def test_a_file_without_a_name_and_an_empty_one_are_files_too(serve: Serve, store: str) -> None:
    server = await serve(Scene(["x"]).agent, store=store)
    response = await upload(server.http, b"", name=None, media_type="text/plain; charset=utf-8")
    answer = response.json()
    assert (answer["name"], answer["type"], answer["size"]) == ("file", "text/plain", 0)
    assert (await server.http.get(f"/api/files/{answer['ref']}")).content == b""


@searching(max_examples=12)
@given(
    size=some.one_of(
        some.integers(0, 3 * PIECE_BYTES),
        some.sampled_from([PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES]),
    ),
    chunk=some.sampled_from([999, 65_536, PIECE_BYTES, 10**9]),
)
@example(size=PIECE_BYTES, chunk=PIECE_BYTES)
@example(size=PIECE_BYTES + 1, chunk=PIECE_BYTES)
@example(size=2 * PIECE_BYTES - 1, chunk=999)
@pytest.mark.slow
def test_whatever_its_size_and_its_chunks_a_file_comes_back_the_same(size: int, chunk: int) -> None:
    body = (b"0123456789abcde" * (size // 15 + 1))[:size]

    async def there_and_back() -> None:
        async with served(Scene(["x"]).agent, Options()) as server:
            response = await upload(server.http, in_chunks(body, chunk))
            ref = response.json()["ref"]
            assert (await server.http.get(f"/api/files/{ref}")).content == body
            assert (await stored(server, ref)).pieces == max(1, -(-size // PIECE_BYTES))
            assert await kept(server) == Kept(1, size)

    asyncio.run(there_and_back())


@requirement("files:upload")
async def test_a_file_over_the_limit_is_refused_by_its_length_before_it_is_sent(serve: Serve) -> None:
    server = await serve(Scene(["x"]).agent, settings=rules(size=1000))
    reader, writer = await raw_upload(server, 1001, b"")
    async with asyncio.timeout(WITHIN_SEC):
        # not a byte of the body was sent
        answer = await reader.readuntil(b"}}")
    writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"The file is larger than 1000 bytes." in answer
    assert await kept(server) == NOTHING


@requirement("files:upload")
async def test_a_file_over_the_limit_without_a_length_is_refused_when_it_passes_it(
    serve: Serve, store: str
) -> None:
    server = await serve(Scene(["x"]).agent, store=store, settings=rules(size=2 * PIECE_BYTES))
    assert told(await upload(server.http, in_chunks(bytes(2 * PIECE_BYTES + 1)))) == (413, "too_large")
    assert await kept(server) == NOTHING
    assert (await upload(server.http, in_chunks(bytes(2 * PIECE_BYTES)))).status_code == 201


@requirement("files:upload")
async def test_ten_mebibytes_are_the_usual_limit(serve: Serve) -> None:
    server = await serve(Scene(["x"]).agent)
    assert told(await upload(server.http, bytes(10 * MIB + 1))) == (413, "too_large")
    ref = await uploaded(server.http, bytes(10 * MIB))
    assert len((await server.http.get(f"/api/files/{ref}")).content) == 10 * MIB


@requirement("files:nothing-half")
async def test_a_cut_upload_leaves_nothing(serve: Serve, store: str) -> None:
    server = await serve(Scene(["x"]).agent, store=store)
    _, writer = await raw_upload(server, 4 * PIECE_BYTES, bytes(3 * PIECE_BYTES))
    await until_kept(server, Kept(1, 2 * PIECE_BYTES))
    writer.close()
    await until_kept(server, NOTHING)


async def test_an_upload_that_drips_is_cut_and_leaves_nothing(serve: Serve, store: str) -> None:
    settings = Settings(limits=Limits(body_within_sec=0.3))
    server = await serve(Scene(["x"]).agent, store=store, settings=settings)
    reader, writer = await raw_upload(server, 3 * PIECE_BYTES, bytes(2 * PIECE_BYTES))
    answered = asyncio.Event()

    async def drip() -> None:
        # a byte now and then is no reason to wait for the next one
        while not answered.is_set():
            writer.write(b"x")
            await asyncio.sleep(0.02)

    async with asyncio.timeout(WITHIN_SEC), asyncio.TaskGroup() as group:
        group.create_task(drip())
        answer = await reader.readuntil(b"}}")
        answered.set()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"too_slow" in answer
    assert await kept(server) == NOTHING


@pytest.mark.parametrize("value", [None, ""])
async def test_an_upload_without_its_header_is_refused(serve: Serve, value: str | None) -> None:
    server = await serve(Scene(["x"]).agent)
    headers = {"content-type": "image/png"} | ({} if value is None else {"x-farhand": value})
    response = await server.http.post("/api/files", content=PNG, headers=headers)
    assert told(response) == (403, "forbidden")
    assert "X-Farhand" in response.json()["error"]["message"]
    assert await kept(server) == NOTHING


@requirement("files:upload")
@pytest.mark.parametrize(
    "media_type",
    ["application/octet-stream", "video/mp4", "multipart/form-data; boundary=x", "image", "a/b/c", "", "é/x"],
)
async def test_a_type_that_is_not_listed_is_refused_with_the_list(serve: Serve, media_type: str) -> None:
    server = await serve(Scene(["x"]).agent)
    headers = [(b"x-farhand", b"1"), (b"content-type", media_type.encode())]
    response = await server.http.post("/api/files", content=PNG, headers=headers)
    assert told(response) == (415, "wrong_type")
    assert await kept(server) == NOTHING


@requirement("files:upload")
async def test_the_list_of_types_can_be_set(serve: Serve) -> None:
    server = await serve(Scene(["x"]).agent, settings=rules(types=("video/*", "application/x-cad")))
    for media_type, status in (("video/mp4", 201), ("application/x-cad", 201), ("image/png", 415)):
        assert (await upload(server.http, media_type=media_type)).status_code == status
    assert "video/*, application/x-cad" in (await upload(server.http)).text


@requirement("files:safe")
@pytest.mark.parametrize(
    ("header", "name"),
    [
        (b"..%2F..%2Fetc%2Fpasswd", "passwd"),
        (b"C%3A%5Cfakepath%5Ca.png", "a.png"),
        (b"a%0D%0ASet-Cookie%3A%20x%3D1.png", "a Set-Cookie_ x=1.png"),
        (b"gnp.%E2%80%AEexe.png", "gnp. exe.png"),
        (b"%00", "file"),
        (b"..", "file"),
        (b"%22%3E%3Cscript%3E", "___script_"),
    ],
)
async def test_a_name_is_cleaned(serve: Serve, header: bytes, name: str) -> None:
    server = await serve(Scene(["x"]).agent)
    headers = [(b"x-farhand", b"1"), (b"content-type", b"image/png"), (b"x-file-name", header)]
    response = await server.http.post("/api/files", content=PNG, headers=headers)
    assert response.json()["name"] == name


@requirement("files:safe")
@pytest.mark.parametrize("header", [b"%ff", b"\xc3\xbc.png", b"%C3", b"a" * 5000])
async def test_a_name_that_is_no_percent_encoded_text_is_refused(serve: Serve, header: bytes) -> None:
    server = await serve(Scene(["x"]).agent)
    headers = [(b"x-farhand", b"1"), (b"content-type", b"image/png"), (b"x-file-name", header)]
    response = await server.http.post("/api/files", content=PNG, headers=headers)
    assert told(response) == (400, "invalid")
    assert await kept(server) == NOTHING


async def test_an_owner_keeps_so_many_files_and_so_many_bytes(serve: Serve, store: str) -> None:
    settings = rules(per_principal=3, bytes_per_principal=2 * PIECE_BYTES)
    server = await serve(Scene(["x"]).agent, store=store, settings=settings)
    await uploaded(server.http, bytes(PIECE_BYTES))
    assert told(await upload(server.http, bytes(PIECE_BYTES + 1))) == (413, "too_large")
    # also when its length is not told before
    assert told(await upload(server.http, in_chunks(bytes(PIECE_BYTES + 1)))) == (413, "too_large")
    assert await kept(server) == Kept(1, PIECE_BYTES)
    await uploaded(server.http)
    await uploaded(server.http)
    response = await upload(server.http)
    assert (told(response), response.headers["retry-after"]) == ((429, "too_many"), "60")
    assert await kept(server) == Kept(3, PIECE_BYTES + 2 * len(PNG))


async def test_the_room_of_a_tenant_is_shared_and_the_room_of_an_owner_is_not(
    serve: Serve, store: str
) -> None:
    settings = rules(per_principal=1, bytes_per_tenant=3 * len(PNG) - 1)
    server = await serve(Scene(["x"]).agent, store=store, settings=settings, authenticate=check)
    async with people(server, "ann", "bob", "eve") as (ann, bob, eve):
        await uploaded(ann)
        assert told(await upload(ann)) == (429, "too_many")
        await uploaded(bob)
        response = await upload(eve)
    assert told(response) == (413, "too_large")
    assert "your organisation" in response.text
    assert await kept(server, Owner("house", "eve")) == NOTHING


async def test_so_many_files_of_an_owner_arrive_at_once(serve: Serve) -> None:
    server = await serve(Scene(["x"]).agent, settings=rules(uploads_per_principal=1))
    gate = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield bytes(3 * PIECE_BYTES)
        await gate.wait()
        yield b"end"

    async with asyncio.TaskGroup() as group:
        first = group.create_task(upload(server.http, slow()))
        await until_kept(server, Kept(1, 2 * PIECE_BYTES))
        assert told(await upload(server.http)) == (429, "too_many")
        gate.set()
    assert (await first).status_code == 201
    assert (await upload(server.http)).status_code == 201


@pytest.mark.parametrize(
    ("may", "status"),
    [("chat", 201), ("answer", 201), ("client", 201), ("approve inspect execute", 403), ("", 403)],
)
async def test_who_may_chat_answer_or_be_a_client_may_bring_files(
    serve: Serve, may: str, status: int
) -> None:
    server = await serve(Scene(["x"]).agent, authenticate=check)
    async with people(server, "ann") as [free], people(server, "ann", may=may) as [ann]:
        assert (await upload(ann)).status_code == status
        ref = await uploaded(free)
        answer = await ann.get(f"/api/files/{ref}")
    assert answer.status_code == (200 if status == 201 else 403)


async def test_nobody_uploads_without_a_sign_in(serve: Serve) -> None:
    server = await serve(Scene(["x"]).agent)
    assert told(await upload(server.stranger)) == (401, "unauthenticated")
