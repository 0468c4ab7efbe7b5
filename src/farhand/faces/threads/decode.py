"""Requests of the threads wire become our nouns."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from farhand.core.ids import is_chosen_id
from farhand.core.settings import Limits
from farhand.core.thread import printable
from farhand.errors import Malformed, TooLarge
from farhand.faces.threads.shapes import Rename
from farhand.wire.guard import read_as

MOST_AT_ONCE = 100


class Page(Struct, frozen=True):
    limit: int
    after: str | None


def decode_page(parameters: Mapping[str, str]) -> Page:
    text = parameters.get("limit", "50")
    if not text.isascii() or not text.isdigit() or len(text) > 3 or not 1 <= int(text) <= MOST_AT_ONCE:
        raise Malformed(f"limit must be a number from 1 to {MOST_AT_ONCE}.")
    after = parameters.get("after")
    if after is not None and not is_chosen_id(after):
        raise Malformed("after is not a thread id.", hint="Send the `next` of the page before.")
    return Page(int(text), after)


def decode_title(body: bytes, limits: Limits) -> str:
    title = printable(read_as(body, Rename).title)
    if not title:
        raise Malformed("title is empty.")
    if len(title.encode()) > limits.title:
        raise TooLarge(f"title is larger than {limits.title} bytes.")
    return title
