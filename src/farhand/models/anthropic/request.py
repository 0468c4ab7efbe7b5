"""A prompt as Anthropic's Messages API takes it. Plain JSON, no library, no network.

The API's rules: roles alternate; every `tool_use` has its `tool_result` first in the very next message; ids
are unique; no text is empty; what Claude thought goes back as it came; a turn that ends the request is one
that was paused, and comes back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from farhand.core.thread import (
    Asked,
    AssistantMessage,
    Message,
    Part,
    Reasoning,
    Resolved,
    ResultsMessage,
    Text,
    UserMessage,
)
from farhand.models.base import Image
from farhand.models.calling import calls_in
from farhand.models.offered import Offer
from farhand.models.shown import as_base64, input_shown, user_parts
from farhand.models.telling import Telling, echoed

PROVIDER = "anthropic"
LONGEST_ID = 128
LONGEST_NAME = 128
_MEMBERS = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_ANY_OBJECT: dict[str, object] = {"type": "object"}

Block: TypeAlias = dict[str, object]


def messages_of(telling: Telling) -> list[dict[str, object]]:
    turns: list[tuple[str, list[Block]]] = []
    for message in telling.prompt.messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = list(_blocks(message, telling))
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    return [{"role": role, "content": blocks} for role, blocks in _without_loose_ends(turns)]


def tools_of(telling: Telling) -> list[dict[str, object]]:
    return [_tool(offer) for offer in telling.offers(_MEMBERS)]


def gone_tools_of(telling: Telling) -> list[dict[str, object]]:
    """Those that the history tells of: with calls in it, the API wants tools even where none is offered."""
    names = dict.fromkeys(asked.tool for asked in calls_in(telling.prompt.messages))
    return [_tool(Offer(telling.names.alias(name), "No longer available.", _ANY_OBJECT)) for name in names]


def _tool(offer: Offer) -> dict[str, object]:
    return {"name": offer.name, "description": offer.description, "input_schema": offer.schema}


def _blocks(message: Message, telling: Telling) -> Iterator[Block]:
    match message:
        case UserMessage():
            yield from (_shown(part) for part in user_parts(message, telling.prompt))
        case AssistantMessage():
            yield from _said(message.parts, telling)
        case ResultsMessage():
            yield from (_result(resolved, telling) for resolved in message.results)


def _said(parts: Sequence[Part], telling: Telling) -> Iterator[Block]:
    for part, following in pairwise((*parts, None)):
        match part:
            case Text(text=text) if text.strip() and not _stands_for_text(following):
                yield {"type": "text", "text": text}
            case Reasoning():
                item = echoed(PROVIDER, part)
                if item is not None and not _is_blank(item):
                    yield item
            case Asked():
                yield {
                    "type": "tool_use",
                    "id": telling.ids[part.call_id],
                    "name": telling.names.alias(part.tool),
                    "input": input_shown(part),
                }
            case _:
                pass


def _stands_for_text(part: Part | None) -> bool:
    """True for a text block that is kept whole: with its sources, or apart from its neighbour."""
    item = echoed(PROVIDER, part) if isinstance(part, Reasoning) else None
    return item is not None and item.get("type") == "text"


def _is_blank(item: Block) -> bool:
    """True for a text without a word: Claude says such blocks, and the API takes none back."""
    return item.get("type") == "text" and not str(item.get("text") or "").strip()


def _result(resolved: Resolved, telling: Telling) -> Block:
    shown = telling.result(resolved)
    block: Block = {"type": "tool_result", "tool_use_id": telling.ids[resolved.call_id]}
    if shown.images:
        words = [_shown(shown.text)] if shown.text.strip() else []
        block["content"] = [*words, *map(_shown, shown.images)]
    elif shown.text.strip():
        block["content"] = shown.text
    return {**block, "is_error": True} if shown.is_error else block


def _shown(part: str | Image) -> Block:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    source = {"type": "base64", "media_type": part.media_type, "data": as_base64(part)}
    return {"type": "image", "source": source}


def _without_loose_ends(turns: list[tuple[str, list[Block]]]) -> Iterator[tuple[str, list[Block]]]:
    """Leaves out what was begun and never ended, unless Claude is about to go on with it.

    That is a call of the provider's own tools, and a thought that nothing came of: no turn may end with one.
    """
    ended = {block.get("tool_use_id") for _, blocks in turns for block in blocks}
    for number, (role, blocks) in enumerate(turns, start=1):
        if role == "assistant" and number < len(turns):
            kept = [block for block in blocks if _is_done(block, ended)]
            while kept and kept[-1].get("type") in _THOUGHTS:
                kept.pop()
            if kept:
                yield role, kept
        else:
            yield role, blocks


def _is_done(block: Block, ended: set[object]) -> bool:
    return block.get("type") != "server_tool_use" or block.get("id") in ended
