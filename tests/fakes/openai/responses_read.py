"""A request of the Responses API as a prompt, so that one script fits every fake. No rule is checked here."""

from __future__ import annotations

from farhand.core.thread import AssistantMessage, Message, Part, Reasoning, Text, ToolCallPart, UserMessage
from farhand.core.tool import Tool
from farhand.models.base import Prompt
from tests.fakes.openai.responses_rules import items_of
from tests.fakes.openai.tool_results import Answers, understood
from tests.fakes.provider import Json


def prompt_of_response(body: Json) -> Prompt:
    messages: list[Message] = []
    said: list[Part] = []
    answers = Answers(messages)
    for item in items_of(body):
        if item.get("role") not in (None, "assistant"):
            _speak(messages, said)
            messages.append(UserMessage(f"msg_{len(messages)}", (Text(_words(item["content"])),)))
        elif item.get("type") == "function_call_output":
            _speak(messages, said)
            answers.add(item["call_id"], _words(item["output"]))
        else:
            said.append(_part(item))
    _speak(messages, said)
    tools = [_tool(tool) for tool in body.get("tools") or [] if tool.get("type") == "function"]
    return Prompt(messages, tools, body.get("instructions") or "")


def _speak(messages: list[Message], said: list[Part]) -> None:
    if said:
        messages.append(AssistantMessage("run_fake", len(messages), tuple(said)))
        said.clear()


def _part(item: Json) -> Part:
    match item.get("type", "message"):
        case "message":
            return Text(_words(item["content"]))
        case "function_call":
            return ToolCallPart(item["call_id"], item["name"], understood(item["arguments"]))
        case _:
            return Reasoning("".join(piece.get("text", "") for piece in item.get("summary") or []), item)


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part.get("text", "") for part in parts)


def _tool(tool: Json) -> Tool:
    schema = tool.get("parameters") or {}
    return Tool(name=tool["name"], description=tool.get("description") or "", input_schema=schema)
