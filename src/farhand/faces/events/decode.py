"""Decodes the position and the options of a reader of the events wire."""

from __future__ import annotations

import math
from collections.abc import Mapping

from farhand.core.position import Position, parse_position


def decode_position(last_event_id: bytes | None, query: Mapping[str, str]) -> str | None:
    """The position of the reader. A browser that reconnects sends it in a header, which takes precedence over
    the one in its address. None if it has no position yet."""
    if last_event_id:
        return last_event_id.decode("latin-1")
    return query.get("after")


def decode_keep_alive(query: Mapping[str, str]) -> float:
    """Seconds of silence before the reader wants a keep-alive; a bad value is ignored."""
    try:
        return max(1.0, float(query["keepAlive"]))
    except (KeyError, ValueError):
        return math.inf


def read_position(text: str, span: tuple[int, int]) -> Position | None:
    """The position, if the entries after it are still kept; else None.

    `seq` is the last entry of which all frames were sent, `offset` counts frames of the next one.
    """
    position = parse_position(text)
    first, last = span
    if position is None or not first - 1 <= position.seq <= last:
        return None
    return position
