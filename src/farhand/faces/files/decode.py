"""Decodes the headers of an upload. The body is the file itself and is not read here."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from farhand.agent.files import Label
from farhand.core.file import UNNAMED, clean_name, media_type_of
from farhand.errors import Malformed, NotAllowed, WrongType
from farhand.wire.http import Header, declared_length, require_unencoded

NAME_AT_MOST = 4096


def decode_label(headers: Iterable[Header]) -> Label:
    heads = dict(headers)
    require_unencoded(heads.items())
    if not heads.get(b"x-farhand", b"").strip():
        # an HTML form of another site can send any body, but no custom header
        raise NotAllowed("An upload needs the header X-Farhand.", hint="Send X-Farhand: 1.")
    media_type = media_type_of(heads.get(b"content-type", b"").decode("latin-1"))
    if media_type is None:
        raise WrongType("An upload needs a media type.", hint="Send for example Content-Type: image/png.")
    return Label(_name(heads.get(b"x-file-name")), media_type, declared_length(heads.items()))


def _name(header: bytes | None) -> str:
    if header is None:
        return UNNAMED
    if len(header) > NAME_AT_MOST:
        raise Malformed(f"X-File-Name is longer than {NAME_AT_MOST} bytes.")
    try:
        return clean_name(unquote_to_bytes(header.decode("ascii")).decode())
    except UnicodeDecodeError:
        raise Malformed(
            "X-File-Name is not percent-encoded UTF-8.", hint="Send encodeURIComponent(file.name)."
        ) from None
