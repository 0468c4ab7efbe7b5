"""The words of the files wire."""

from __future__ import annotations

from msgspec import Struct


class Uploaded(Struct):
    """The answer to an upload; a result may hold it as it is."""

    ref: str
    name: str
    type: str
    size: int


class ErrorBody(Struct):
    code: str
    message: str


class ErrorShape(Struct):
    error: ErrorBody
