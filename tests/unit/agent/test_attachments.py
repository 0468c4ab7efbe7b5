from __future__ import annotations

import pytest

from farhand.agent.attachments import with_files
from farhand.agent.files import Files, Label, part_of
from farhand.core.file import FileRules, StoredFile
from farhand.core.outcome import Failure, Success
from farhand.core.principal import LOCAL, Owner
from farhand.core.thread import ResultsMessage, Text, ToolResultPart, UserMessage
from farhand.eventlog.log import EventLog
from farhand.models.base import Image, Prompt
from farhand.models.render import ALL_IMAGES, LARGEST_IMAGE
from farhand.store.base import Store
from farhand.testing import FakeClock
from tests.requirement import requirement

PNG = b"\x89PNG\r\n\x1a\n"
LOST = f"blob_{'0' * 32}"


@pytest.fixture
def files(store: Store, clock: FakeClock) -> Files:
    return Files(EventLog(store), clock, FileRules())


async def kept(files: Files, data: bytes, media_type: str = "image/png") -> StoredFile:
    return await files.keep(LOCAL, Label("a", media_type), data, known_as="test")


def brought(*refs: str) -> ResultsMessage:
    output = {"files": [{"ref": ref} for ref in refs]}
    return ResultsMessage("run_1", 1, (ToolResultPart("call_1", "bring", {}, Success(output)),))


@requirement("models:images")
async def test_a_conversation_without_files_stays_as_it_is(files: Files) -> None:
    failed = ResultsMessage("run_1", 1, (ToolResultPart("call_1", "bring", {}, Failure(LOST)),))
    prompt = Prompt((UserMessage("m1", (Text(LOST),)), failed))
    assert await with_files(files, LOCAL, prompt) is prompt


@requirement("models:images")
async def test_images_come_with_their_bytes_and_others_by_name(files: Files) -> None:
    photo, plan = await kept(files, PNG), await kept(files, b"%PDF", "application/pdf")
    sent = UserMessage("m1", (part_of(photo),))
    prompt = await with_files(files, LOCAL, Prompt((sent, brought(plan.ref, LOST))))
    assert prompt.images == {photo.ref: Image("image/png", PNG, "a")}
    assert prompt.files == {photo.ref: part_of(photo), plan.ref: part_of(plan), LOST: None}


@requirement("models:images")
async def test_another_owner_is_given_nothing(files: Files) -> None:
    photo = await kept(files, PNG)
    prompt = await with_files(files, Owner("local", "bob"), Prompt((brought(photo.ref),)))
    assert prompt.images == {}
    assert prompt.files == {photo.ref: None}


@requirement("models:images")
async def test_together_images_are_no_larger_than_a_request_and_the_newest_go_first(files: Files) -> None:
    many = ALL_IMAGES // LARGEST_IMAGE + 1
    photos = [await kept(files, PNG + bytes([number]) * (LARGEST_IMAGE - len(PNG))) for number in range(many)]
    messages = [brought(photo.ref) for photo in photos]
    prompt = await with_files(files, LOCAL, Prompt(messages))
    assert set(prompt.images) == {photo.ref for photo in photos[1:]}
    assert set(prompt.files) == {photo.ref for photo in photos}
