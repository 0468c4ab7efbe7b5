"""The structs of the files wire."""

from __future__ import annotations

from msgspec import Struct


class UploadedFile(Struct):
    """The answer to an upload; a result may contain it as it is."""

    ref: str
    name: str
    type: str
    size: int
