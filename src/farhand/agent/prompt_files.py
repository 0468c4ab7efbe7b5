"""The files that a conversation refers to, as a model is given them.

Images come with their bytes, the newest first and as many as providers take; every other file by its name.
Knows no provider.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from farhand.agent.files import Files, part_of
from farhand.core.file import refs_in
from farhand.core.outcome import Success
from farhand.core.principal import Owner
from farhand.core.thread import File, Message, ResultsMessage, UserMessage
from farhand.models.base import Image, Prompt
from farhand.models.images import ALL_IMAGES, MOST_IMAGES, may_be_image, read_image

REFS_LOOKED_UP = 256
"""Of one conversation, the newest: each costs a look-up, in every step."""


async def with_files(files: Files, owner: Owner, prompt: Prompt) -> Prompt:
    """The prompt, and what is known of the files in it. Another owner's file is as good as none."""
    found = _newest_first(prompt.messages)
    if not found:
        return prompt
    refs = list(dict.fromkeys(found))[:REFS_LOOKED_UP]
    known = {ref: part_of(file) for ref, file in (await files.known(owner, refs)).items()}
    told = {ref: known.get(ref) for ref in refs}
    return replace(prompt, files=told, images=await _images(files, owner, known))


async def _images(files: Files, owner: Owner, known: dict[str, File]) -> dict[str, Image]:
    images: dict[str, Image] = {}
    room = ALL_IMAGES
    for ref, file in known.items():
        if len(images) == MOST_IMAGES:
            break
        if not may_be_image(file) or file.size > room:
            continue
        loaded = await files.load(owner, ref)
        image = read_image(file, loaded[1]) if loaded is not None else None
        if image is not None:
            images[ref] = image
            room -= file.size
    return images


def _newest_first(messages: Sequence[Message]) -> list[str]:
    """All that are referred to, the newest message first."""
    refs: list[str] = []
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            refs += [part.ref for part in message.parts if isinstance(part, File)]
        elif isinstance(message, ResultsMessage):
            for resolved in message.results:
                outcome = resolved.outcome
                refs += refs_in(outcome.output) if isinstance(outcome, Success) else ()
    return refs
