"""Encodes a prompt for Anthropic's Messages API. Plain JSON, no library, no network.

The API's rules: roles alternate; every `tool_use` has its `tool_result` first in the very next message; ids
are unique; no text is empty; thinking goes back unchanged; an assistant turn at the end of the request is one
that was paused, and goes back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from farhand.core.thread import (
    AssistantMessage,
    Message,
    Part,
    Reasoning,
    ResultsMessage,
    Text,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
)
from farhand.models.base import Image
from farhand.models.prompt_encoding import PromptEncoder, calls_in_messages, own_echo
from farhand.models.render import as_base64, render_input, render_user_parts
from farhand.models.tool_schema import ToolDefinition

PROVIDER = "anthropic"
LONGEST_ID = 128
LONGEST_NAME = 128
_MEMBERS = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_ANY_OBJECT: dict[str, object] = {"type": "object"}

MessageBlock: TypeAlias = dict[str, object]


def messages_of(encoder: PromptEncoder) -> list[dict[str, object]]:
    turns: list[tuple[str, list[MessageBlock]]] = []
    for message in encoder.prompt.messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = list(_blocks(message, encoder))
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    return [{"role": role, "content": blocks} for role, blocks in _without_unfinished(turns)]


def tools_of(encoder: PromptEncoder) -> list[dict[str, object]]:
    return [_tool(tool) for tool in encoder.definitions(_MEMBERS)]


def former_tools_of(encoder: PromptEncoder) -> list[dict[str, object]]:
    """Tools of calls in the history: if it has calls, the API requires tools even if none is offered."""
    names = dict.fromkeys(asked.tool for asked in calls_in_messages(encoder.prompt.messages))
    return [
        _tool(ToolDefinition(encoder.names.alias(name), "No longer available.", _ANY_OBJECT))
        for name in names
    ]


def _tool(tool: ToolDefinition) -> dict[str, object]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def _blocks(message: Message, encoder: PromptEncoder) -> Iterator[MessageBlock]:
    match message:
        case UserMessage():
            yield from (_content_block(part) for part in render_user_parts(message, encoder.prompt))
        case AssistantMessage():
            yield from _assistant_blocks(message.parts, encoder)
        case ResultsMessage():
            yield from (_result(resolved, encoder) for resolved in message.results)


def _assistant_blocks(parts: Sequence[Part], encoder: PromptEncoder) -> Iterator[MessageBlock]:
    for part, following in pairwise((*parts, None)):
        match part:
            case Text(text=text) if text.strip() and not _replaces_text(following):
                yield {"type": "text", "text": text}
            case Reasoning():
                item = own_echo(PROVIDER, part)
                if item is not None and not _is_blank(item):
                    yield item
            case ToolCallPart():
                yield {
                    "type": "tool_use",
                    "id": encoder.ids[part.call_id],
                    "name": encoder.names.alias(part.tool),
                    "input": render_input(part),
                }
            case _:
                pass


def _replaces_text(part: Part | None) -> bool:
    """True for a text block that is stored whole, because of its citations or next to another text."""
    item = own_echo(PROVIDER, part) if isinstance(part, Reasoning) else None
    return item is not None and item.get("type") == "text"


def _is_blank(item: MessageBlock) -> bool:
    """True for a text of only white space: Claude writes such blocks, and the API refuses them."""
    return item.get("type") == "text" and not str(item.get("text") or "").strip()


def _result(resolved: ToolResultPart, encoder: PromptEncoder) -> MessageBlock:
    shown = encoder.result(resolved)
    block: MessageBlock = {"type": "tool_result", "tool_use_id": encoder.ids[resolved.call_id]}
    if shown.images:
        words = [_content_block(shown.text)] if shown.text.strip() else []
        block["content"] = [*words, *map(_content_block, shown.images)]
    elif shown.text.strip():
        block["content"] = shown.text
    return {**block, "is_error": True} if shown.is_error else block


def _content_block(part: str | Image) -> MessageBlock:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    source = {"type": "base64", "media_type": part.media_type, "data": as_base64(part)}
    return {"type": "image", "source": source}


def _without_unfinished(
    turns: list[tuple[str, list[MessageBlock]]],
) -> Iterator[tuple[str, list[MessageBlock]]]:
    """Omits what was started and never completed, unless Claude is about to continue it.

    That is a call of one of the provider's own tools, or thinking without an answer: no turn may end with it.
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


def _is_done(block: MessageBlock, ended: set[object]) -> bool:
    return block.get("type") != "server_tool_use" or block.get("id") in ended
