"""Content from far hands or people that is too big for a result: stored separately, and referred to by its
id.

A result refers to a file with `{"ref": "blob_…"}` anywhere in its output, a message with a `File` part. Does
not know where the bytes are stored.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import TypeAlias

from msgspec import Struct

from farhand.core.explained_struct import ExplainedStruct
from farhand.core.principal import Owner

PIECE_BYTES = 256 * 1024
"""How much of a file is stored and read at once."""

REFS_AT_MOST = 64
"""Per result. More than a person could pick; each costs a look-up."""

NAME_BYTES = 200
UNNAMED = "file"


class FileRules(ExplainedStruct, frozen=True, kw_only=True):
    """What is accepted, and how much of it. In bytes, unless the name says otherwise."""

    size: int = 10 * 1024 * 1024
    types: tuple[str, ...] = (
        "image/*",
        "audio/*",
        "text/*",
        "application/pdf",
        "application/json",
        "application/zip",
        "application/x-zip-compressed",
    )
    per_principal: int = 2_000
    """Files of one owner."""
    bytes_per_principal: int = 1024 * 1024 * 1024
    bytes_per_tenant: int = 20 * 1024 * 1024 * 1024
    uploads_per_principal: int = 8
    """Uploads at the same time, on one worker."""


class StoredFile(Struct, frozen=True, kw_only=True):
    """`size` is counted by the store, piece by piece."""

    owner: Owner
    ref: str
    name: str
    media_type: str
    size: int = 0
    created_at: float

    @property
    def pieces(self) -> int:
        """An empty file has one empty piece."""
        return max(1, -(-self.size // PIECE_BYTES))


class Kept(Struct, frozen=True):
    """How much is stored for an owner, including files that are still arriving."""

    files: int = 0
    size: int = 0


def is_ref(text: str) -> bool:
    return _REF.fullmatch(text) is not None


def refs_in(value: object) -> tuple[str, ...]:
    """The files that a result refers to, each once, in order of appearance."""
    if not isinstance(value, _HOLDERS):
        return ()
    found: dict[str, None] = {}
    rest: list[_Holder] = [value]
    while rest and len(found) < REFS_AT_MOST:
        each = rest.pop()
        if isinstance(each, dict):
            ref = each.get("ref")
            if isinstance(ref, str) and is_ref(ref):
                found[ref] = None
            rest += _containers(reversed(each.values()))
        else:
            rest += _containers(reversed(each))
    return tuple(found)


def _containers(values: Iterable[object]) -> list[_Holder]:
    """The objects and lists in a value; only containers, because most values of a large result are plain and
    each step costs time."""
    return [each for each in values if isinstance(each, _HOLDERS) and each]


def clean_name(text: str) -> str:
    """A name that is safe to show and to save under: one line, no folders, no hidden characters."""
    visible = "".join(char if char.isprintable() else " " for char in unicodedata.normalize("NFC", text))
    last = _FOLDERS.split(visible)[-1]
    name = " ".join(_UNSAFE.sub("_", last).split()).strip(" .")
    return _shortened(name) or UNNAMED


def media_type_of(content_type: str) -> str | None:
    """`type/subtype` in lower case, without parameters; None for anything else."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind if len(kind) <= 127 and _MEDIA_TYPE.fullmatch(kind) else None


def is_pattern(text: str) -> bool:
    """Whether a list of types may have this entry."""
    family, slash, kind = text.partition("/")
    return text == "*/*" or media_type_of(f"{family}{slash}{'x' if kind == '*' else kind}") is not None


def is_listed(media_type: str, listed: Collection[str]) -> bool:
    """Whether a list such as `image/*, application/pdf` includes this type."""
    family = media_type.partition("/")[0]
    return any(each in (media_type, f"{family}/*", "*/*") for each in listed)


_HOLDERS = (dict, list, tuple)
_Holder: TypeAlias = dict[str, object] | list[object] | tuple[object, ...]
_REF = re.compile(r"blob_[0-9a-f]{32}")
_FOLDERS = re.compile(r"[/\\]")
_UNSAFE = re.compile(r'[<>:"|?*]')
_WORD = r"[a-z0-9!#$&^_.+-]+"
_MEDIA_TYPE = re.compile(f"{_WORD}/{_WORD}")


def _shortened(name: str) -> str:
    """At most this many bytes, as file systems count; a short extension is kept."""
    raw = name.encode(errors="replace")
    if len(raw) <= NAME_BYTES:
        return raw.decode()
    stem, dot, ending = raw.rpartition(b".")
    tail = dot + ending if stem and len(ending) <= 16 else b""
    return raw[: NAME_BYTES - len(tail)].decode(errors="ignore").rstrip(" .") + tail.decode(errors="ignore")
