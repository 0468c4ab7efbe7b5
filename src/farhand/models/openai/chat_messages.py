"""A prompt as Chat Completions takes it. Plain JSON, no library, no network.

The API's rules: right after an assistant message with calls stands one `tool` message for each of them; no
content is empty. Servers whose models think want back what led to calls, and only that. Tool messages are
text: the images of a step's results follow in a message of their own.
"""

from __future__ import annotations

from typing import TypeAlias

from farhand.core.thread import AssistantMessage, Message, Reasoning, ResultsMessage, UserMessage, text_of
from farhand.models.base import Image
from farhand.models.shown import IMAGES_OF, as_data_url, input_text, user_parts, words
from farhand.models.telling import Telling, echoed

PROVIDER = "openai-chat"
LONGEST_ID = 40

Item: TypeAlias = dict[str, object]


def messages_of(telling: Telling, model: str) -> list[Item]:
    """`model` is who is asked: what another one thought is none of its own."""
    told = [item for message in telling.prompt.messages for item in _items(message, telling, model)]
    if not telling.prompt.instructions:
        return told
    return [{"role": "system", "content": telling.prompt.instructions}, *told]


def tools_of(telling: Telling) -> list[Item]:
    return [
        {
            "type": "function",
            "function": {
                "name": offer.name,
                "description": offer.description,
                "parameters": {"properties": {}, **offer.schema},
            },
        }
        for offer in telling.offers()
    ]


def _items(message: Message, telling: Telling, model: str) -> list[Item]:
    match message:
        case UserMessage():
            return [{"role": "user", "content": _content(user_parts(message, telling.prompt))}]
        case AssistantMessage():
            return _said(message, telling, model)
        case ResultsMessage():
            return _results(message, telling)


def _said(message: AssistantMessage, telling: Telling, model: str) -> list[Item]:
    text = text_of(message)
    said: Item = {"role": "assistant", "content": text if text.strip() else None}
    calls = [
        {
            "id": telling.ids[asked.call_id],
            "type": "function",
            "function": {"name": telling.names.alias(asked.tool), "arguments": input_text(asked)},
        }
        for asked in message.asked
    ]
    if calls:
        return [{**said, **_thoughts(message, model), "tool_calls": calls}]
    return [said] if said["content"] else []


def _thoughts(message: AssistantMessage, model: str) -> Item:
    """As they came: under the same name, in one piece."""
    thoughts: dict[str, str] = {}
    for part in message.parts:
        echo = echoed(PROVIDER, part) if isinstance(part, Reasoning) else None
        if isinstance(part, Reasoning) and echo is not None and echo.get("model") == model:
            member = str(echo.get("member"))
            thoughts[member] = thoughts.get(member, "") + part.text
    return dict(thoughts)


def _results(message: ResultsMessage, telling: Telling) -> list[Item]:
    told: list[Item] = []
    seen: list[str | Image] = []
    for resolved in message.results:
        shown = telling.result(resolved)
        call = telling.ids[resolved.call_id]
        told.append({"role": "tool", "tool_call_id": call, "content": shown.text})
        if shown.images:
            seen += [f"{IMAGES_OF} {telling.names.alias(resolved.tool)} ({call}):", *shown.images]
    return [*told, {"role": "user", "content": _content(seen)}] if seen else told


def _content(parts: list[str | Image]) -> str | list[Item]:
    if all(isinstance(part, str) for part in parts):
        # the plain form: servers that see no images often know no parts either
        return words(parts)
    return [_part(part) for part in parts]


def _part(part: str | Image) -> Item:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": as_data_url(part)}}
