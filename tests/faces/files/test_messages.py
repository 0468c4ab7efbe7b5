"""Files in a user's message: stored, shown again after a reload, never fetched."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from farhand.core.file import PIECE_BYTES, FileRules, Kept
from farhand.core.settings import Settings
from farhand.core.thread import File, Text, UserMessage
from farhand.server.app import create_app
from tests.faces.agui import page as agui_page
from tests.faces.conftest import Serve
from tests.faces.files.uploads import NOTHING, PNG, kept, people, uploaded
from tests.faces.served import Served
from tests.faces.test_mounting import hosted, in_starlette
from tests.faces.ui_stream.agents import Scene
from tests.faces.ui_stream.header_auth import check
from tests.faces.ui_stream.page import Page
from tests.faces.ui_stream.test_posts import slow_scene
from tests.requirement import requirement

# Any: what comes over the wire is looked at by its fields, and a wrong one fails the test
Json = Any
NO_REF = "blob_" + "0" * 32


def data_url(data: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def file_part(url: str, **more: object) -> Json:
    return {"type": "file", "url": url, "mediaType": "image/png", **more}


def said(page: Page, *parts: Json, message_id: str = "m1") -> Page:
    page.messages = [{"id": message_id, "role": "user", "parts": list(parts)}]
    return page


async def shown(page: Page) -> list[Json]:
    """The parts of the first message, as a page gets them after a reload."""
    answer = (await page.http.get(f"/api/chat/{page.id}")).json()
    parts: list[Json] = answer["messages"][0]["parts"]
    return parts


def heard(scene: Scene) -> UserMessage:
    message = scene.model.prompts[-1].messages[-1]
    assert isinstance(message, UserMessage)
    return message


def page_of(served: Served) -> Page:
    return Page(served.http, "chat")


TEXT = {"type": "text", "text": "Look:"}


@requirement("files:in-messages")
async def test_bytes_in_a_message_become_a_stored_file(serve: Serve, store: str) -> None:
    scene = Scene(["Nice."])
    server = await serve(scene.agent, store=store)
    page = said(page_of(server), TEXT, file_part(data_url(PNG), filename="../a.png"))
    assert (await page.send()).text == "Nice."
    text, file = heard(scene).parts
    assert text == Text("Look:")
    assert isinstance(file, File)
    assert (file.name, file.media_type, file.size) == ("a.png", "image/png", len(PNG))
    assert (await server.http.get(f"/api/files/{file.ref}")).content == PNG


@requirement("files:in-messages")
async def test_after_a_reload_a_file_is_shown_by_its_address(serve: Serve, store: str) -> None:
    server = await serve(Scene(["Nice."]).agent, store=store)
    page = said(page_of(server), TEXT, file_part(data_url(PNG), filename="a.png"))
    await page.send()
    text, file = await shown(page)
    assert text["text"] == "Look:"
    assert file == {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": file["url"]}
    assert (await server.http.get(file["url"])).content == PNG


@requirement("files:in-messages")
async def test_a_message_sent_again_has_the_same_files_and_starts_nothing(serve: Serve, store: str) -> None:
    scene = Scene(["Nice.", "Never said."])
    server = await serve(scene.agent, store=store)
    page = said(page_of(server), TEXT, file_part(data_url(PNG)))
    first = await page.send()
    again = await said(page, TEXT, file_part(data_url(PNG))).send()
    assert again.text == first.text == "Nice."
    assert len(scene.model.prompts) == 1
    assert await kept(server) == Kept(1, len(PNG))


@requirement("files:in-messages")
async def test_a_message_of_a_file_alone_names_its_chat(serve: Serve) -> None:
    server = await serve(Scene(["Nice."]).agent)
    await said(page_of(server), file_part(data_url(PNG), filename="report.png")).send()
    [thread] = (await server.http.get("/api/chat")).json()["threads"]
    assert thread["title"] == "report.png"


@requirement("files:in-messages")
async def test_a_file_that_was_uploaded_before_is_referred_to(serve: Serve, store: str) -> None:
    scene = Scene(["One.", "Two.", "Three."])
    server = await serve(scene.agent, store=store)
    ref = await uploaded(server.http, bytes(PIECE_BYTES + 1), name="big.png")
    for number, prefix in enumerate(("", "/farhand", "/a/b")):
        page = said(page_of(server), file_part(f"{prefix}/api/files/{ref}"), message_id=f"m{number}")
        await page.send()
        [file] = heard(scene).parts
        # what it is says the store and not the message
        assert file == File(ref, "big.png", "image/png", PIECE_BYTES + 1)
    assert await kept(server) == Kept(1, PIECE_BYTES + 1)


@requirement("files:in-messages")
async def test_a_file_of_somebody_else_cannot_be_said(serve: Serve, store: str) -> None:
    scene = Scene(["Never said."])
    server = await serve(scene.agent, store=store, authenticate=check)
    async with people(server, "ann", "bob") as (ann, bob):
        ref = await uploaded(ann)
        answers = [
            await said(Page(bob, "chat"), file_part(f"/api/files/{each}")).refused() for each in (ref, NO_REF)
        ]
        assert [answer.status for answer in answers] == [400, 400]
        assert answers[0].body == answers[1].body
        assert (await bob.get("/api/chat")).json() == {"threads": []}
    assert scene.model.prompts == []


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a.png",
        "http://127.0.0.1/api/files/" + NO_REF,
        "//evil.example/api/files/" + NO_REF,
        "/\\evil.example/api/files/" + NO_REF,
        "file:///etc/passwd",
        "blob:https://example.org/1",
        "javascript:alert(1)",
        "/api/files/../chat",
        "",
    ],
)
async def test_an_address_of_the_web_is_refused_in_words(serve: Serve, url: str) -> None:
    scene = Scene(["Never said."])
    server = await serve(scene.agent)
    refused = await said(page_of(server), TEXT, file_part(url)).refused()
    assert refused.status == 400
    assert "nothing is fetched" in str(refused.body)
    assert scene.model.prompts == []


@requirement("files:in-messages")
@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("data:image/png;base64,????", 400),
        ("data:image/png;base64", 400),
        ("data:image/png;base64,AAA", 400),
        (data_url(b"MZ", "application/x-msdownload"), 415),
        (data_url(bytes(1001)), 413),
    ],
)
async def test_bad_bytes_in_a_message_are_refused_and_nothing_of_it_is_kept(
    serve: Serve, url: str, status: int
) -> None:
    scene = Scene(["Never said."])
    server = await serve(scene.agent, settings=Settings(files=FileRules(size=1000)))
    good = file_part(data_url(PNG))
    bad = {"type": "file", "url": url, "mediaType": ""}
    refused = await said(page_of(server), TEXT, good, bad).refused()
    assert refused.status == status
    assert await kept(server) == NOTHING
    assert scene.model.prompts == []


@requirement("files:in-messages")
async def test_the_files_of_a_message_that_is_refused_are_not_kept(serve: Serve, store: str) -> None:
    scene = slow_scene()
    server = await serve(scene.agent, store=store)
    page = page_of(server)
    async with page.saying("a") as live:
        await live.until("text-delta")
        refused = await said(Page(server.http, "chat"), TEXT, file_part(data_url(PNG))).refused()
        assert refused.status == 409
        agui = agui_page.Page(server.http, "chat")
        source = {"type": "data", "value": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
        agui.says([{"type": "image", "source": source}], "m7")
        assert (await agui.run()).code == "busy"
        scene.gate("go").set()
        await live.rest()
    other = said(Page(server.http, "chat"), TEXT, file_part(data_url(PNG)), message_id=page.messages[0]["id"])
    assert (await other.refused()).status == 400
    assert await kept(server) == NOTHING


@requirement("files:in-messages")
async def test_the_files_of_a_message_that_exceed_the_quota_together_are_not_kept(serve: Serve) -> None:
    rules = FileRules(bytes_per_principal=2 * len(PNG) - 1, per_principal=2)
    server = await serve(Scene(["Nice."]).agent, settings=Settings(files=rules))
    file = file_part(data_url(PNG))
    assert (await said(page_of(server), TEXT, file, file).refused()).status == 413
    empty = file_part("data:text/plain,")
    assert (await said(page_of(server), TEXT, empty, empty, empty).refused()).status == 429
    assert await kept(server) == NOTHING
    assert (await said(page_of(server), TEXT, file).send()).text == "Nice."


@requirement("files:in-messages")
async def test_bytes_need_no_base64_and_a_message_has_so_many_files(serve: Serve) -> None:
    scene = Scene(["Nice."])
    server = await serve(scene.agent)
    plain = {"type": "file", "url": "data:text/plain,a%20b%C3%BC"}
    many = await said(page_of(server), *[plain] * 17).refused()
    assert (many.status, await kept(server)) == (400, NOTHING)
    await said(page_of(server), *[plain] * 16).send()
    files = heard(scene).parts
    # each is a file of its own, though they are alike
    assert len({file.ref for file in files if isinstance(file, File)}) == 16
    assert (await server.http.get((await shown(page_of(server)))[0]["url"])).text == "a bü"


@requirement("files:in-messages")
async def test_behind_the_path_of_a_host_files_are_shown_at_that_path() -> None:
    app = create_app(Scene(["Nice.", "Nice."]).agent, store="memory:")
    async with hosted(in_starlette(app), app, "/farhand") as http:
        page = said(Page(http, "chat"), file_part(data_url(PNG)))
        await page.send()
        [file] = await shown(page)
        assert file["url"].startswith("/farhand/api/files/blob_")
        # as a page asks for it, which knows its origin alone
        address = str(http.base_url).removesuffix("/farhand/").removesuffix("/farhand") + file["url"]
        assert (await http.get(address)).content == PNG
        # and it may be sent as it was shown
        again = said(Page(http, "another"), file_part(file["url"]))
        assert (await again.send()).status == 200
