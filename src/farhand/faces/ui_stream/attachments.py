"""File parts of a user's message: bytes in a `data:` address, or a file that was uploaded before.

Nothing is ever fetched: an address of the web is refused in words.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from farhand.agent.attachments import Attached, Referred, from_base64
from farhand.agent.files import Label
from farhand.core.file import UNNAMED, clean_name, media_type_of
from farhand.errors import Malformed
from farhand.faces.ui_stream.shapes import UIPart


def file_of(part: UIPart) -> Attached | Referred:
    if part.url.startswith("data:"):
        return _attached(part)
    found = _OWN_ADDRESS.fullmatch(part.url)
    if found is None:
        raise Malformed(
            "A file part needs a data: address, or the address of a file that was uploaded here.",
            hint="Upload it (POST /api/files) and send /api/files/ and its ref; nothing is fetched.",
        )
    return Referred(found[1])


# also behind the path of a host that mounts farhand, but never on another server
_OWN_ADDRESS = re.compile(r"(?:/(?!/)[^?#\\]*)?/api/files/(blob_[0-9a-f]{32})")


def _attached(part: UIPart) -> Attached:
    head, comma, body = part.url.removeprefix("data:").partition(",")
    if not comma:
        raise Malformed("The data: address of a file has no comma.", hint="Nothing was applied.")
    media_type = media_type_of(part.media_type or head)
    if media_type is None:
        raise Malformed("A file part needs its mediaType.", hint="Nothing was applied.")
    raw = unquote_to_bytes(body)
    in_base64 = head.strip().lower().endswith(";base64")
    data = from_base64(raw, what="The data: address of a file") if in_base64 else raw
    name = clean_name(part.filename) if part.filename else UNNAMED
    return Attached(Label(name, media_type, len(data)), data)
