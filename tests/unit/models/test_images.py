from __future__ import annotations

import pytest

from farhand.core.thread import File
from farhand.models.base import Image
from farhand.models.images import LARGEST_IMAGE, may_be_image, read_image
from tests.requirement import requirement

pytestmark = requirement("models:images")

PNG = b"\x89PNG\r\n\x1a\n" + b"rest"


def file(media_type: str = "image/png", size: int = 12) -> File:
    return File(f"blob_{'1' * 32}", "sea.png", media_type, size)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF87arest", "image/gif"),
        (b"GIF89arest", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPrest", "image/webp"),
    ],
)
def test_an_image_is_what_its_first_bytes_say_whatever_it_was_sent_as(data: bytes, kind: str) -> None:
    assert read_image(file("image/png"), data) == Image(kind, data, "sea.png")


@pytest.mark.parametrize("data", [b"", b"<svg/>", b"RIFF\x00\x00\x00\x00WAVE", b"%PDF-1.7", b"\x89PNG"])
def test_what_is_no_image_is_none(data: bytes) -> None:
    assert read_image(file("image/png"), data) is None


def test_only_images_of_a_size_that_providers_take_are_looked_at() -> None:
    assert may_be_image(file(size=LARGEST_IMAGE))
    assert not may_be_image(file(size=LARGEST_IMAGE + 1))
    assert not may_be_image(file(size=0))
    assert not may_be_image(file("application/pdf"))
