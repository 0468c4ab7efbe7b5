"""One far call, as the tools of every bridge make it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from farhand import Waiting
from farhand.bridges.bridge import CallOptions, HandCaller, ToolReply
from farhand.bridges.far_tools import Hands


async def call_hand(
    hands: Hands,
    tool: str,
    input: Mapping[str, object],
    *,
    part: str = "1",
    **where: Unpack[CallOptions[None]],
) -> ToolReply | Waiting:
    """In the thread `t`, under the key `t:part`."""
    return await HandCaller[None](hands, {"thread": "t", **where}).call(tool, input, None, part)
