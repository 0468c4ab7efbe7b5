"""A request of the Messages API as a prompt, so that one script fits every fake. No rule is checked here."""

from __future__ import annotations

import msgspec

from farhand.core.outcome import Failure, Success
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
from farhand.core.tool import Tool
from farhand.models.base import Prompt
from tests.fakes.anthropic.rules import turns_of
from tests.fakes.provider import Json


def prompt_of(body: Json) -> Prompt:
    messages: list[Message] = []
    known: dict[str, ToolCallPart] = {}
    for number, (role, blocks) in enumerate(turns_of(body)):
        if role == "assistant":
            said = AssistantMessage("run_fake", number, tuple(map(_part, blocks)))
            known |= {asked.call_id: asked for asked in said.tool_calls}
            messages.append(said)
            continue
        results = tuple(_resolved(block, known) for block in blocks if block["type"] == "tool_result")
        if results:
            messages.append(ResultsMessage("run_fake", number, results))
        told = tuple(Text(block["text"]) for block in blocks if block["type"] == "text")
        if told or not results:
            messages.append(UserMessage(f"msg_{number}", told))
    return Prompt(messages, [_tool(tool) for tool in body.get("tools") or []], _words(body.get("system", "")))


def _part(block: Json) -> Part:
    match block["type"]:
        case "text":
            return Text(block["text"])
        case "tool_use":
            return ToolCallPart(block["id"], block["name"], block["input"])
        case _:
            return Reasoning(str(block.get("thinking", "")), block)


def _resolved(block: Json, known: dict[str, ToolCallPart]) -> ToolResultPart:
    asked = known[block["tool_use_id"]]
    words = _words(block.get("content", ""))
    outcome = Failure(words) if block.get("is_error") else Success(_understood(words))
    return ToolResultPart(asked.call_id, asked.tool, asked.input, outcome)


def _understood(words: str) -> object:
    """Results are text to a model; a script reads them more easily as the JSON they were."""
    try:
        return msgspec.json.decode(words)
    except msgspec.DecodeError:
        return words


def _tool(tool: Json) -> Tool:
    schema = tool.get("input_schema") or {}
    return Tool(name=tool["name"], description=tool.get("description", ""), input_schema=schema)


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "".join(block.get("text", "") for block in blocks if isinstance(block, dict))
