"""A request of Chat Completions as a prompt, so that one script fits every fake. No rule is checked here."""

from __future__ import annotations

from farhand.core.thread import (
    AssistantMessage,
    Message,
    Part,
    ResultsMessage,
    Text,
    ToolCallPart,
    UserMessage,
)
from farhand.core.tool import Tool
from farhand.models.base import Prompt
from farhand.models.render import IMAGES_OF
from tests.fakes.openai.tool_results import Answers, understood
from tests.fakes.provider import Json


def prompt_of_chat(body: Json) -> Prompt:
    messages: list[Message] = []
    instructions: list[str] = []
    answers = Answers(messages)
    for message in body["messages"]:
        text = _words(message.get("content"))
        match message["role"]:
            case "system" | "developer":
                instructions.append(text)
            case "tool":
                answers.add(message["tool_call_id"], text)
            case "assistant":
                said: list[Part] = [Text(text)] if text else []
                said += map(_asked, message.get("tool_calls") or [])
                messages.append(AssistantMessage("run_fake", len(messages), tuple(said)))
            case _ if text.startswith(IMAGES_OF) and isinstance(messages[-1], ResultsMessage):
                # still part of the results, which a script continues from
                pass
            case _:
                messages.append(UserMessage(f"msg_{len(messages)}", (Text(text),)))
    tools = [_tool(tool["function"]) for tool in body.get("tools") or []]
    return Prompt(messages, tools, "\n".join(instructions))


def _asked(call: Json) -> ToolCallPart:
    return ToolCallPart(call["id"], call["function"]["name"], understood(call["function"]["arguments"]))


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part.get("text", "") for part in parts)


def _tool(function: Json) -> Tool:
    schema = function.get("parameters") or {}
    return Tool(name=function["name"], description=function.get("description") or "", input_schema=schema)
