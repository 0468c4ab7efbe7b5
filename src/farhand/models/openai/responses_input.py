"""A prompt as the Responses API takes it, with nothing kept at OpenAI. Plain JSON, no library, no network.

The API's rules: a call is answered by its `call_id`, every call of the input has an output; a reasoning item
goes back as it came, with the item that followed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from farhand.models.shown import as_data_url, input_text, user_parts
from farhand.models.telling import Telling, echoed

PROVIDER = "openai"
PHASE = "phase"
"""The type of an item of our own: which phase of the answer the text before it belongs to."""

Item: TypeAlias = dict[str, object]


def input_of(telling: Telling) -> list[Item]:
    return [item for message in telling.prompt.messages for item in _items(message, telling)]


def tools_of(telling: Telling) -> list[Item]:
    return [
        {
            "type": "function",
            "name": offer.name,
            "description": offer.description,
            "parameters": {"properties": {}, **offer.schema},
            # strict takes a part of JSON Schema only; the desk checks every input anyway
            "strict": False,
        }
        for offer in telling.offers()
    ]


def _items(message: Message, telling: Telling) -> Sequence[Item]:
    match message:
        case UserMessage():
            parts = user_parts(message, telling.prompt)
            return [{"role": "user", "content": [_content(part) for part in parts]}]
        case AssistantMessage():
            return _said(message.parts, telling)
        case ResultsMessage():
            return [_output(resolved, telling) for resolved in message.results]


def _said(parts: Sequence[Part], telling: Telling) -> list[Item]:
    items: list[Item] = []
    for part in parts:
        match part:
            case Text(text=text) if text.strip():
                items.append({"role": "assistant", "content": text})
            case Asked():
                items.append(_call(part, telling))
            case Reasoning():
                items = _with_echo(items, echoed(PROVIDER, part))
            case _:
                pass
    # reasoning that nothing came of: without its following item it would be refused
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    return items


def _with_echo(items: list[Item], echo: Item | None) -> list[Item]:
    if echo is None:
        return items
    if echo.get("type") != PHASE:
        return [*items, echo]
    if items and items[-1].get("role") == "assistant":
        return [*items[:-1], {**items[-1], PHASE: echo.get(PHASE)}]
    return items


def _call(asked: Asked, telling: Telling) -> Item:
    return {
        "type": "function_call",
        "call_id": telling.ids[asked.call_id],
        "name": telling.names.alias(asked.tool),
        "arguments": input_text(asked),
    }


def _output(resolved: Resolved, telling: Telling) -> Item:
    shown = telling.result(resolved)
    output: object = shown.text
    if shown.images:
        output = [_content(part) for part in _in_order(shown.text, shown.images)]
    return {"type": "function_call_output", "call_id": telling.ids[resolved.call_id], "output": output}


def _in_order(text: str, images: Sequence[Image]) -> Iterator[str | Image]:
    yield text
    yield from images


def _content(part: str | Image) -> Item:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    return {"type": "input_image", "image_url": as_data_url(part), "detail": "auto"}
