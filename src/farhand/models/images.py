"""Images that providers take: which kinds, how large, how many. What a file is, its first bytes tell.

Owns the limits, which are those of the strictest provider. It must not know where files are kept.
"""

from __future__ import annotations

from farhand.core.thread import File
from farhand.models.base import Image

LARGEST_IMAGE = 5 * 1024 * 1024 * 3 // 4
"""Bytes. In a request it is base64, which is a third longer, and there 5 MiB are the most."""
MOST_IMAGES = 20
"""In one request, the newest; with more, some providers take only small ones."""
ALL_IMAGES = 20 * 1024 * 1024
"""Bytes of all images of a request."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What every provider with eyes takes; anything else is told in words."""


def may_be_shown(file: File) -> bool:
    """Whether it is worth a look at its bytes."""
    return file.media_type.startswith("image/") and 0 < file.size <= LARGEST_IMAGE


def image_of(file: File, data: bytes) -> Image | None:
    """None for what is no image, whatever it is called: a provider would refuse the whole request."""
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
