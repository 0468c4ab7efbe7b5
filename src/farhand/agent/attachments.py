"""What a user says with files beside the text: the bytes come along, or were uploaded before.

Owns how many files a message may have and how they are stored. Knows no wire, and fetches nothing.
"""

from __future__ import annotations

import binascii
from typing import TypeAlias

from msgspec import Struct

from farhand.agent.files import Files, Label, part_of
from farhand.core.principal import Owner
from farhand.core.thread import File, Note, Text, UserMessage
from farhand.errors import Malformed, NotFound

FILES_AT_MOST = 16
"""In one message."""


class Attached(Struct, frozen=True):
    """Its bytes came with the message."""

    label: Label
    data: bytes


class Referred(Struct, frozen=True):
    """It was uploaded before."""

    ref: str


MessageInput: TypeAlias = Text | Note | Attached | Referred


async def store_message(
    files: Files, owner: Owner, thread_id: str, *, message_id: str, said: tuple[MessageInput, ...]
) -> UserMessage:
    """The message with its files stored. Sent again, it is the same message with the same files."""
    beside = [part for part in said if not isinstance(part, Text | Note)]
    if len(beside) > FILES_AT_MOST:
        raise Malformed(f"A message has at most {FILES_AT_MOST} files.", hint="Nothing was applied.")
    for file in beside:
        # all of them, before the first one is stored
        if isinstance(file, Attached):
            files.check(file.label)
    known = {file.ref: await _known(files, owner, file.ref) for file in beside if isinstance(file, Referred)}
    parts: list[Text | Note | File] = []
    for no, part in enumerate(said):
        match part:
            case Text() | Note():
                parts.append(part)
            case Referred(ref=ref):
                parts.append(known[ref])
            case Attached(label=label, data=data):
                kept = await files.keep(owner, label, data, known_as=f"{thread_id}/{message_id}/{no}")
                parts.append(part_of(kept))
    return UserMessage(message_id, tuple(parts))


def from_base64(text: str | bytes, *, what: str) -> bytes:
    """The bytes; anything that is not base64 to the letter is `Malformed`."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        raise Malformed(f"{what} is not base64.", hint="Nothing was applied.") from None


async def _known(files: Files, owner: Owner, ref: str) -> File:
    try:
        return part_of(await files.find(owner, ref))
    except NotFound:
        # the chat may well be there: it is the message that is wrong
        raise Malformed("The message refers to a file that is not there.", hint="Upload it again.") from None
