"""File parts of a user's message: bytes in a `data:` address, or a file that was uploaded before.

Nothing is ever fetched: an address of the web is refused in words.
"""

from __future__ import annotations

import binascii
import re
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from farhand.agent.files import Files, Label, part_of
from farhand.core.file import UNNAMED, clean_name, media_type_of
from farhand.core.principal import Owner
from farhand.core.thread import File, Text, UserMessage
from farhand.errors import Malformed, NotFound
from farhand.faces.ui_stream.shapes import UIPart

FILES_AT_MOST = 16
"""In one message."""


class Attached(Struct, frozen=True):
    """Its bytes came with the message."""

    label: Label
    data: bytes


class Referred(Struct, frozen=True):
    """It was uploaded before."""

    ref: str


Said: TypeAlias = Text | Attached | Referred


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


async def say(
    files: Files, owner: Owner, thread_id: str, *, message_id: str, said: tuple[Said, ...]
) -> UserMessage:
    """The message with its files stored. Sent again, it is the same message with the same files."""
    beside = [part for part in said if not isinstance(part, Text)]
    if len(beside) > FILES_AT_MOST:
        raise Malformed(f"A message has at most {FILES_AT_MOST} files.", hint="Nothing was applied.")
    for file in beside:
        # all of them, before the first one is stored
        if isinstance(file, Attached):
            files.check(file.label)
    parts: list[Text | File] = []
    for no, part in enumerate(said):
        if isinstance(part, Text):
            parts.append(part)
        else:
            parts.append(await _stored(files, owner, part, known_as=f"{thread_id}/{message_id}/{no}"))
    return UserMessage(message_id, tuple(parts))


async def _stored(files: Files, owner: Owner, part: Attached | Referred, *, known_as: str) -> File:
    if isinstance(part, Attached):
        return part_of(await files.keep(owner, part.label, part.data, known_as=known_as))
    try:
        return part_of(await files.find(owner, part.ref))
    except NotFound:
        # the chat may well be there: it is the message that is wrong
        raise Malformed("The message refers to a file that is not there.", hint="Upload it again.") from None


# also behind the path of a host that mounts farhand, but never on another server
_OWN_ADDRESS = re.compile(r"(?:/(?!/)[^?#\\]*)?/api/files/(blob_[0-9a-f]{32})")


def _attached(part: UIPart) -> Attached:
    head, comma, body = part.url.removeprefix("data:").partition(",")
    if not comma:
        raise Malformed("The data: address of a file has no comma.", hint="Nothing was applied.")
    media_type = media_type_of(part.media_type or head)
    if media_type is None:
        raise Malformed("A file part needs its mediaType.", hint="Nothing was applied.")
    data = _bytes_of(body, in_base64=head.strip().lower().endswith(";base64"))
    name = clean_name(part.filename) if part.filename else UNNAMED
    return Attached(Label(name, media_type, len(data)), data)


def _bytes_of(body: str, *, in_base64: bool) -> bytes:
    raw = unquote_to_bytes(body)
    if not in_base64:
        return raw
    try:
        return binascii.a2b_base64(raw, strict_mode=True)
    except binascii.Error:
        raise Malformed("The data: address of a file is not base64.", hint="Nothing was applied.") from None
