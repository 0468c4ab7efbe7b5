"""What an id looks like. Generating one needs randomness, so that is `clock.fresh()`."""

from __future__ import annotations

import re

_CHOSEN = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_chosen_id(text: str) -> bool:
    """True for an id that a peer may choose: a thread's, a message's."""
    return _CHOSEN.fullmatch(text) is not None


def is_client_id(text: str) -> bool:
    """True for an id that a registered client may choose, for itself or for one of its tools."""
    return _TOOL_NAME.fullmatch(text) is not None


def is_tool_name(text: str) -> bool:
    return _TOOL_NAME.fullmatch(text) is not None
