"""Files in a conversation: stored with the message that carries or names them, and passed to the model.

Owns how many files a message may have and how they are stored. A model gets images with their bytes, newest
first and as many as providers accept, and every other file by its name. Knows no wire and no provider.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.files import Files, Label, WholeFile, part_of
from farhand.core.file import refs_in
from farhand.core.outcome import Success
from farhand.core.principal import Owner
from farhand.core.thread import File, Message, Note, ResultsMessage, Text, UserMessage
from farhand.errors import Malformed, NotFound
from farhand.models.base import Image, Prompt
from farhand.models.render import ALL_IMAGES, MOST_IMAGES, may_be_image, read_image

FILES_AT_MOST = 16
"""Per message."""
REFS_LOOKED_UP = 256
"""Per conversation, newest first: each costs a look-up in every step."""


class AttachedFile(Struct, frozen=True):
    """A file whose bytes came with the message."""

    label: Label
    data: bytes


class FileReference(Struct, frozen=True):
    """A file that was uploaded before."""

    ref: str


MessageInput: TypeAlias = Text | Note | AttachedFile | FileReference


class PreparedMessage(Struct, frozen=True):
    """A message, and the files that came with it. They are stored once nothing speaks against the message:
    files of a refused one would count against the quota until they are purged."""

    message: UserMessage
    files: tuple[WholeFile, ...] = ()


async def prepare_message(
    files: Files, owner: Owner, thread_id: str, *, message_id: str, said: tuple[MessageInput, ...]
) -> PreparedMessage:
    """If it is sent again, it is the same message with the same files."""
    beside = [part for part in said if not isinstance(part, Text | Note)]
    if len(beside) > FILES_AT_MOST:
        raise Malformed(f"A message may have at most {FILES_AT_MOST} files.", hint="Nothing was applied.")
    known = {
        file.ref: await _known(files, owner, file.ref) for file in beside if isinstance(file, FileReference)
    }
    parts: list[Text | Note | File] = []
    attached: list[WholeFile] = []
    for no, part in enumerate(said):
        match part:
            case Text() | Note():
                parts.append(part)
            case FileReference(ref=ref):
                parts.append(known[ref])
            case AttachedFile(label=label, data=data):
                attached.append(files.describe(owner, label, data, known_as=f"{thread_id}/{message_id}/{no}"))
                parts.append(part_of(attached[-1].file))
    return PreparedMessage(UserMessage(message_id, tuple(parts)), tuple(attached))


def from_base64(text: str | bytes, *, what: str) -> bytes:
    """The bytes; raises `Malformed` for anything that is not strictly base64."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        raise Malformed(f"{what} is not base64.", hint="Nothing was applied.") from None


async def _known(files: Files, owner: Owner, ref: str) -> File:
    try:
        return part_of(await files.find(owner, ref))
    except NotFound:
        # the chat may well exist: it is the message that is wrong
        raise Malformed(
            "The message refers to a file that does not exist.", hint="Upload it again."
        ) from None


async def with_files(files: Files, owner: Owner, prompt: Prompt) -> Prompt:
    """The prompt with what is known of its files. Another owner's file counts as missing."""
    found = _newest_first(prompt.messages)
    if not found:
        return prompt
    refs = list(dict.fromkeys(found))[:REFS_LOOKED_UP]
    known = {ref: part_of(file) for ref, file in (await files.known(owner, refs)).items()}
    by_ref = {ref: known.get(ref) for ref in refs}
    return replace(prompt, files=by_ref, images=await _images(files, owner, known))


async def _images(files: Files, owner: Owner, known: dict[str, File]) -> dict[str, Image]:
    images: dict[str, Image] = {}
    bytes_left = ALL_IMAGES
    for ref, file in known.items():
        if len(images) == MOST_IMAGES:
            break
        if not may_be_image(file) or file.size > bytes_left:
            continue
        loaded = await files.load(owner, ref)
        image = read_image(file, loaded[1]) if loaded is not None else None
        if image is not None:
            images[ref] = image
            bytes_left -= file.size
    return images


def _newest_first(messages: Sequence[Message]) -> list[str]:
    """All files referred to, newest message first."""
    refs: list[str] = []
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            refs += [part.ref for part in message.parts if isinstance(part, File)]
        elif isinstance(message, ResultsMessage):
            for resolved in message.results:
                outcome = resolved.outcome
                refs += refs_in(outcome.output) if isinstance(outcome, Success) else ()
    return refs
