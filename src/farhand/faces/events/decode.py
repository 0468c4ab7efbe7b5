"""Where a reader of the events wire stands, and what it wishes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from farhand.core.event import Position, parse_position


def decode_position(last_event_id: bytes | None, query: Mapping[str, str]) -> str | None:
    """What the reader says of itself: a browser that reconnects says it in a header, over what its address
    said when it first came. None for one that has no position yet."""
    if last_event_id:
        return last_event_id.decode("latin-1")
    return query.get("after")


def decode_keep_alive(query: Mapping[str, str]) -> float:
    """After how many seconds without news the reader wants a sign of life; what cannot be read is no wish."""
    try:
        return max(1.0, float(query["keepAlive"]))
    except (KeyError, ValueError):
        return math.inf


def read_position(text: str, span: tuple[int, int]) -> Position | None:
    """The position, if what follows on it is still kept; else None.

    `seq` counts entries of which everything was told, `offset` frames of the next one.
    """
    position = parse_position(text)
    first, last = span
    # feeds are stored before they are told: there are no takeovers in them
    if position is None or position.takeover or not first - 1 <= position.seq <= last:
        return None
    return position
