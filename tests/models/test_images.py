"""Files in a conversation, over every provider: models that accept images see them, other files are
described."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from farhand import Success
from farhand.agent.files import Label, part_of
from farhand.core.file import StoredFile
from farhand.core.principal import LOCAL, Owner
from farhand.core.thread import Part, Text, UserMessage
from farhand.models.render import LARGEST_IMAGE, MOST_IMAGES
from farhand.models.scripted import Ask, Moment, Step
from tests.models.stage import PROVIDERS, Provider, Stage, stage
from tests.requirement import requirement

# Any: requests are JSON
Json: TypeAlias = Any

SEEING = PROVIDERS[:3]
PNG = b"\x89PNG\r\n\x1a\n"
seeing = pytest.mark.parametrize("provider", SEEING, ids=lambda provider: provider.name)


def asks(moment: Moment) -> Step:
    if moment.text.endswith("Ask me") and not moment.results:
        return Ask("bring", {"what": "a photo"})
    return "I see."


async def kept(at: Stage, data: bytes, media_type: str = "image/png", *, owner: Owner = LOCAL) -> StoredFile:
    files = (await at.service()).files
    return await files.keep(owner, Label("sea.png", media_type), data, known_as="test")


async def says(at: Stage, *files: StoredFile) -> None:
    service = await at.service()
    parts: list[Part] = [Text("Look"), *(part_of(file) for file in files)]
    await service.start(LOCAL, "t", UserMessage("m1", tuple(parts)), hold_for=0.0)
    assert await at.text_at_end("t") == "I see."


async def brings(at: Stage, output: object) -> str:
    paused = await at.agent.run("Ask me", thread="t")
    return (await at.agent.answer("t", [(paused.pending[0].call_id, Success(output))])).text


def images(value: Json) -> Iterator[bytes]:
    """Those in a request, wherever they stand."""
    if isinstance(value, dict):
        if value.get("type") == "base64":
            yield base64.b64decode(value["data"])
        for each in value.values():
            yield from images(each)
    elif isinstance(value, list):
        for each in value:
            yield from images(each)
    elif isinstance(value, str) and value.startswith("data:image/"):
        yield base64.b64decode(value.partition(",")[2])


def seen(at: Stage) -> list[bytes]:
    return list(images(at.fake.requests[-1].body))


@seeing
@requirement("models:images")
async def test_an_image_of_a_user_is_seen(provider: Provider) -> None:
    async with stage(provider, asks) as at:
        await says(at, await kept(at, PNG + b"sea"))
        assert seen(at) == [PNG + b"sea"]


@seeing
@requirement("models:images")
async def test_images_that_results_refer_to_are_seen_in_their_order(provider: Provider) -> None:
    async with stage(provider, asks) as at:
        first, second = await kept(at, PNG + b"1"), await kept(at, PNG + b"2")
        assert await brings(at, {"photos": [{"ref": first.ref}, {"deep": {"ref": second.ref}}]}) == "I see."
        assert seen(at) == [PNG + b"1", PNG + b"2"]
        # and they stay in the history, which the provider takes again
        await at.agent.run("Thanks", thread="t")
        assert seen(at) == [PNG + b"1", PNG + b"2"]


@requirement("models:images")
async def test_other_files_are_told_by_name_type_and_size(provider: Provider) -> None:
    async with stage(provider, asks) as at:
        plan = await kept(at, b"%PDF-1.7", "application/pdf")
        lost = f"blob_{'0' * 32}"
        await brings(at, {"plan": {"ref": plan.ref}, "lost": {"ref": lost}})
        told = str(at.fake.requests[-1].body)
        assert f"[{plan.ref}: file sea.png: application/pdf, 8 bytes]" in told
        assert f"[{lost}: file not available]" in told
        assert seen(at) == []


@requirement("models:images")
async def test_a_file_of_somebody_else_is_neither_seen_nor_told(provider: Provider) -> None:
    async with stage(provider, asks) as at:
        theirs = await kept(at, PNG + b"secret", owner=Owner("local", "somebody else"))
        await brings(at, {"ref": theirs.ref})
        assert f"[{theirs.ref}: file not available]" in str(at.fake.requests[-1].body)
        assert seen(at) == []


@requirement("models:images")
async def test_what_only_calls_itself_an_image_or_is_too_large_is_told(provider: Provider) -> None:
    async with stage(provider, asks) as at:
        page = await kept(at, b"<html>not a photo</html>")
        large = await kept(at, PNG + b"x" * LARGEST_IMAGE)
        await says(at, page, large)
        told = str(at.fake.requests[-1].body)
        assert f"[file sea.png: image/png, {page.size} bytes]" in told
        assert f"[file sea.png: image/png, {large.size} bytes]" in told
        assert seen(at) == []


@requirement("models:images")
async def test_a_provider_without_eyes_is_told_of_images() -> None:
    async with stage(PROVIDERS[3], asks) as at:
        photo = await kept(at, PNG + b"sea")
        await says(at, photo)
        content = at.fake.requests[-1].body["content"]
        assert content == "Look\n\n[image sea.png: image/png, 11 bytes]"


@seeing
@requirement("models:images")
async def test_of_very_many_images_the_newest_are_seen(provider: Provider) -> None:
    async with stage(provider, asks) as at:
        photos = [await kept(at, PNG + bytes([number])) for number in range(MOST_IMAGES + 2)]
        await says(at, *photos[:2])
        await brings(at, [{"ref": photo.ref} for photo in photos[2:]])
        assert seen(at) == [PNG + bytes([number]) for number in range(2, MOST_IMAGES + 2)]


@seeing
async def test_an_image_that_the_provider_refuses_does_not_spoil_the_thread(provider: Provider) -> None:
    async with stage(provider, asks) as at:
        at.fake.refuse(400, "image input is not supported", headers={"x-should-retry": "false"})
        await says(at, await kept(at, PNG + b"sea"))
        assert seen(at) == []
        assert "[file sea.png: image/png, 11 bytes]" in str(at.fake.requests[-1].body)
        await at.agent.run("And now?", thread="t")
        assert [request.status for request in at.fake.requests] == [400, 200, 200]
