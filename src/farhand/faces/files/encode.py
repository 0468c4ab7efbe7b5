"""Encodes downloads: never displayed as a page, always with a safe name."""

from __future__ import annotations

from urllib.parse import quote

from farhand.core.file import StoredFile
from farhand.faces.files.shapes import UploadedFile
from farhand.wire.http import Header
from farhand.wire.json_writer import encode


def encode_uploaded(file: StoredFile) -> bytes:
    return encode(UploadedFile(file.ref, file.name, file.media_type, file.size))


def headers_of(file: StoredFile) -> list[Header]:
    return [
        (b"content-type", _served_type(file.media_type).encode()),
        (b"content-length", b"%d" % file.size),
        (b"content-disposition", _disposition(file.name)),
        *_SAFE,
    ]


_SAFE: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    # even if a browser ignores the attachment header, no script runs and no frame embeds it
    (b"content-security-policy", b"default-src 'none'; sandbox; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-site"),
    (b"referrer-policy", b"no-referrer"),
    # the next user of this browser may be somebody else
    (b"cache-control", b"private, no-store"),
)

_ACTIVE = ("html", "svg", "xml", "script")


def _served_type(media_type: str) -> str:
    """A type that a browser could run as a page or a script becomes plain bytes."""
    return "application/octet-stream" if any(word in media_type for word in _ACTIVE) else media_type


def _disposition(name: str) -> bytes:
    plain = "".join(char if char.isascii() and char not in '"\\%' else "_" for char in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}".encode()
