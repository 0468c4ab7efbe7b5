"""Images that providers accept: their types, sizes and number. The first bytes of a file decide its type.

Owns the limits, which are those of the strictest provider. It must not know where files are stored.
"""

from __future__ import annotations

from farhand.core.thread import File
from farhand.models.base import Image

LARGEST_IMAGE = 5 * 1024 * 1024 * 3 // 4
"""Bytes. In a request it is base64, which is a third longer, and limited to 5 MiB."""
MOST_IMAGES = 20
"""In one request, the newest ones; with more, some providers accept only small images."""
ALL_IMAGES = 20 * 1024 * 1024
"""Bytes of all images of a request together."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types that every provider with images accepts; other files are described in text."""


def may_be_image(file: File) -> bool:
    """True if its bytes are worth reading."""
    return file.media_type.startswith("image/") and 0 < file.size <= LARGEST_IMAGE


def read_image(file: File, data: bytes) -> Image | None:
    """None if it is not an image, whatever its name: a provider would refuse the whole request."""
    kind = _kind(data)
    return None if kind is None else Image(kind, data, file.name)


def _kind(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for mark, kind in _MARKS if data.startswith(mark)), None)


_MARKS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
