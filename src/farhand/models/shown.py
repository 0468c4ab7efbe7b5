"""What a provider is shown of our messages: inputs as objects, results as text, files as images or words.

Owns the wording. It must not know how any provider spells a request.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from farhand.core.outcome import Success, canonical, seen_by_model
from farhand.core.thread import Asked, File, Part, Resolved, Text, UserMessage
from farhand.models.base import Image

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What every provider with eyes takes; anything else is told in words."""

NO_WORDS = "(no text)"


class Shown(Struct, frozen=True):
    """A result as a model is given it."""

    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()


def input_shown(asked: Asked) -> dict[str, object]:
    """Providers want an object in their history, also where the model wrote none."""
    if isinstance(asked.input, dict):
        return asked.input
    return {"INVALID_JSON": asked.input}


def input_text(asked: Asked) -> str:
    return msgspec.json.encode(input_shown(asked)).decode()


def result_shown(resolved: Resolved, asked: Asked, images: Mapping[str, Image]) -> Shown:
    """The outcome in words; if a person changed the input, with what really ran."""
    seen = seen_by_model(resolved.outcome)
    output = resolved.outcome.output if isinstance(resolved.outcome, Success) else None
    return Shown(f"{_edited(resolved, asked)}{seen.text}", seen.is_error, tuple(_images(output, images)))


def user_parts(message: UserMessage, images: Mapping[str, Image]) -> list[str | Image]:
    """Its texts and images in their order: never nothing, and no text that is only blanks."""
    parts = [shown for part in message.parts if (shown := _user_part(part, images)) is not None]
    return parts or [NO_WORDS]


def words(parts: list[str | Image]) -> str:
    """For a provider without eyes."""
    return "\n\n".join(part if isinstance(part, str) else f"[an image: {part.media_type}]" for part in parts)


def as_base64(image: Image) -> str:
    return base64.b64encode(image.data).decode()


def as_data_url(image: Image) -> str:
    return f"data:{image.media_type};base64,{as_base64(image)}"


def _user_part(part: Part, images: Mapping[str, Image]) -> str | Image | None:
    match part:
        case Text(text=text):
            return text if text.strip() else None
        case File(ref=ref, media_type=media_type) if ref in images and media_type in IMAGE_TYPES:
            return images[ref]
        case File(name=name, media_type=media_type, size=size):
            return f"[file {name}: {media_type}, {size} bytes]"
        case _:
            return None


def _images(output: object, known: Mapping[str, Image]) -> Iterator[Image]:
    """Those that a result refers to, wherever it does."""
    waiting = [output]
    while known and waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            ref = value.get("ref")
            if isinstance(ref, str) and ref in known and known[ref].media_type in IMAGE_TYPES:
                yield known[ref]
            waiting.extend(reversed(value.values()))
        elif isinstance(value, list):
            waiting.extend(reversed(value))


def _edited(resolved: Resolved, asked: Asked) -> str:
    if asked.input == resolved.input:
        return ""
    return f"The user changed the input before allowing it, to {canonical(resolved.input).decode()}.\n"
