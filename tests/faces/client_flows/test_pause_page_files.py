"""Images and documents in a prompt of the page that pauses."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from farhand.agent.agent import Agent
from farhand.core.file import FileRules
from farhand.core.settings import Limits, Settings
from farhand.core.thread import File, Text, UserMessage
from farhand.models.scripted import ScriptedModel
from tests.faces.client_flows.pause_page import PausePage
from tests.faces.conftest import Serve
from tests.faces.files.uploads import NOTHING, PNG, kept, uploaded
from tests.faces.ui_stream.header_auth import check, person

# Any: bodies of a wire
Json = Any
TEXT = {"type": "text", "text": "Look:"}
PDF = b"%PDF-1.7 ..."


def image(data: bytes = PNG, media_type: str = "image/png") -> Json:
    return {"type": "image", "source": base64_of(data, media_type)}


def document(data: bytes = PDF, media_type: str = "application/pdf", **more: object) -> Json:
    return {"type": "document", "source": base64_of(data, media_type), **more}


def base64_of(data: bytes, media_type: str) -> Json:
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}


def agent_of() -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(lambda moment: "I see.")
    return Agent(model), model


def heard(model: ScriptedModel) -> UserMessage:
    message = model.prompts[-1].messages[-1]
    assert isinstance(message, UserMessage)
    return message


@pytest.mark.parametrize("as_message", [False, True])
async def test_images_and_documents_of_a_prompt_reach_the_model_as_files(
    serve: Serve, store: str, *, as_message: bool
) -> None:
    agent, model = agent_of()
    served = await serve(agent, store=store)
    notes = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "naïve"}}
    blocks = [
        TEXT,
        image(),
        {**document(title="../report.pdf"), "cache_control": {"type": "ephemeral"}},
        notes,
    ]
    page = PausePage(served.http, {})
    await page.run({"role": "user", "content": blocks} if as_message else blocks)
    assert page.text == "I see."
    text, picture, report, words = heard(model).parts
    assert text == Text("Look:")
    assert [type(part) for part in (picture, report, words)] == [File, File, File]
    assert isinstance(picture, File)
    assert isinstance(report, File)
    assert isinstance(words, File)
    assert (picture.media_type, picture.size) == ("image/png", len(PNG))
    assert (report.media_type, report.name, report.size) == ("application/pdf", "report.pdf", len(PDF))
    download = await served.http.get(f"/api/files/{words.ref}")
    assert (download.content, words.media_type) == ("naïve".encode(), "text/plain")
    [conversation] = (await served.http.get(f"/agent/{page.agent_uuid}/conversations")).json()[
        "conversations"
    ]
    assert conversation["messages"][0]["content"][1:3] == [
        {"type": "image", "source": {"type": "file", "file_id": picture.ref}},
        {"type": "document", "source": {"type": "file", "file_id": report.ref}, "title": "report.pdf"},
    ]


async def test_a_block_may_refer_to_an_uploaded_file_and_needs_no_text_beside(serve: Serve) -> None:
    agent, model = agent_of()
    served = await serve(agent)
    ref = await uploaded(served.http, PNG, name="map.png")
    page = PausePage(served.http, {})
    await page.run([{"type": "image", "source": {"type": "file", "file_id": ref}}])
    assert page.text == "I see."
    assert heard(model).parts == (File(ref, "map.png", "image/png", len(PNG)),)


@pytest.mark.parametrize(
    ("block", "status", "words"),
    [
        ({"type": "image", "source": {**image()["source"], "data": "no base64!"}}, 400, "not base64"),
        ({"type": "image", "source": {**image()["source"], "data": "ä"}}, 400, "not base64"),
        (image(media_type="application/pdf"), 400, "An image cannot have the media_type 'application/pdf'"),
        (document(media_type="nonsense"), 400, "'nonsense' is not a media_type"),
        (document(media_type="application/x-msdownload"), 415, "are not accepted"),
        (document(bytes(300)), 413, "larger than 256 bytes"),
        (
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            400,
            "nothing is fetched",
        ),
        ({"type": "image", "source": {"type": "file", "file_id": "blob_" + "0" * 32}}, 400, "does not exist"),
        ({"type": "image", "source": {"type": "file", "file_id": "../etc"}}, 400, "does not exist"),
        ({"type": "video", "source": {}}, 400, "Blocks look like"),
        ({"type": "image"}, 400, "Blocks look like"),
        ("text", 400, "Blocks look like"),
    ],
)
async def test_a_block_that_cannot_be_taken_is_refused_and_nothing_is_started_or_kept(
    serve: Serve, block: Json, status: int, words: str
) -> None:
    agent, model = agent_of()
    served = await serve(agent, settings=Settings(files=FileRules(size=256)))
    response = await served.http.post("/agent/run", json={"user_prompt": [TEXT, image(), block]})
    assert response.status_code == status
    assert words in response.json()["error"]["message"]
    assert (model.prompts, await kept(served)) == ([], NOTHING)
    assert (await served.http.get("/agent/sessions")).json()["total"] == 0


async def test_another_persons_file_is_not_there(serve: Serve) -> None:
    agent, model = agent_of()
    served = await serve(agent, authenticate=check)
    async with person(served, "ada") as ada, person(served, "bob") as bob:
        ref = await uploaded(ada)
        block = {"type": "image", "source": {"type": "file", "file_id": ref}}
        response = await bob.post("/agent/run", json={"user_prompt": [block]})
        assert (response.status_code, model.prompts) == (400, [])
        assert "does not exist" in response.json()["error"]["message"]


async def test_a_body_that_is_too_large_is_told_to_upload_and_too_many_files_are_refused(
    serve: Serve,
) -> None:
    agent, model = agent_of()
    served = await serve(agent, settings=Settings(limits=Limits(chat_body=20_000)))
    large = await served.http.post("/agent/run", json={"user_prompt": [image(bytes(20_000))]})
    assert large.status_code == 413
    assert "POST /api/files" in large.json()["error"]["message"]
    many = await served.http.post("/agent/run", json={"user_prompt": [image()] * 17})
    assert many.status_code == 400
    assert "at most 16 files" in many.json()["error"]["message"]
    assert (model.prompts, await kept(served)) == ([], NOTHING)
    assert (await served.http.get("/agent/sessions")).json()["total"] == 0
