"""How providers judge the images in a request: base64, of a known type, and not too large."""

from __future__ import annotations

import base64
import binascii

from farhand.core.thread import File
from farhand.models.render import IMAGE_TYPES, read_image

LONGEST = 5 * 1024 * 1024
"""Characters of base64."""


def wrong_with(media_type: str, data: str) -> str | None:
    """None for an image that can be taken."""
    if media_type not in IMAGE_TYPES:
        return f"unsupported media type {media_type}"
    if len(data) > LONGEST:
        return f"image exceeds 5 MB maximum: {len(data)} bytes > {LONGEST} bytes"
    try:
        raw = base64.b64decode(data, validate=True)
    except binascii.Error:
        return "invalid base64 data"
    found = read_image(File("", "", media_type, len(raw)), raw)
    if found is None:
        return "Could not process image"
    if found.media_type != media_type:
        return f"Image does not match the provided media type {media_type}"
    return None


def wrong_with_url(url: object) -> str | None:
    """As above, of a data URL; other addresses are not looked at."""
    head, comma, data = str(url).partition(",")
    if not head.startswith("data:"):
        return None
    if not comma or not head.endswith(";base64"):
        return "Expected a base64-encoded data URL with an image MIME type"
    return wrong_with(head.removeprefix("data:").removesuffix(";base64"), data)
