"""Decodes requests of the threads wire."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from farhand.core.ids import is_chosen_id
from farhand.core.settings import Limits
from farhand.core.thread import ThreadCursor, printable
from farhand.errors import Malformed, TooLarge
from farhand.faces.base import decode_number
from farhand.faces.threads.shapes import Rename
from farhand.wire.json_reader import read_as

MOST_AT_ONCE = 100
MOST_WORDS = 200
_TIME = re.compile(r"[0-9]{1,12}(\.[0-9]{1,17})?")


class Page(Struct, frozen=True):
    limit: int
    after: ThreadCursor | None
    words: str = ""
    """Only chats that have these."""


def decode_page(parameters: Mapping[str, str]) -> Page:
    limit = decode_number(parameters, "limit", default=50, least=1, most=MOST_AT_ONCE)
    after = parameters.get("after")
    words = parameters.get("q", "")
    if len(words) > MOST_WORDS:
        raise Malformed(f"q has at most {MOST_WORDS} characters.")
    return Page(limit, None if after is None else _cursor(after), words.strip())


def decode_resume(parameters: Mapping[str, str]) -> bool:
    """Whether the page will resume the stream, which sends the current answer from its start."""
    text = parameters.get("resume", "false")
    if text not in ("true", "false"):
        raise Malformed("resume must be true or false.")
    return text == "true"


def _cursor(text: str) -> ThreadCursor:
    at, _, thread_id = text.partition(":")
    if not _TIME.fullmatch(at) or not is_chosen_id(thread_id):
        raise Malformed("after is not a position in the list.", hint="Send the `next` of the previous page.")
    return ThreadCursor(float(at), thread_id)


def decode_title(body: bytes, limits: Limits) -> str:
    title = printable(read_as(body, Rename).title)
    if not title:
        raise Malformed("title is empty.")
    if len(title.encode()) > limits.title:
        raise TooLarge(f"title is larger than {limits.title} bytes.")
    return title
