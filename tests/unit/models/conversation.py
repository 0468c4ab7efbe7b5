"""Short ways to write a conversation, and to read a model's answer to it."""

from __future__ import annotations

from collections.abc import Iterable

from farhand.core.outcome import Outcome
from farhand.core.thread import (
    AssistantMessage,
    Message,
    ResultsMessage,
    Text,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
)
from farhand.core.tool import Tool
from farhand.models.base import Model, ModelEvent, Prompt, TextDelta


class Talk:
    """A history that grows: `Talk("hi").asked("look").got(Success(1))`."""

    def __init__(self, text: str) -> None:
        self.messages: list[Message] = []
        self._calls = 0
        self._open: list[ToolCallPart] = []
        self.user(text)

    def user(self, text: str) -> Talk:
        self.messages.append(UserMessage(f"m{len(self.messages)}", (Text(text),)))
        return self

    def said(self, text: str) -> Talk:
        self.messages.append(AssistantMessage("run_1", len(self.messages), (Text(text),)))
        return self

    def asked(self, *tools: str) -> Talk:
        self._open = [ToolCallPart(f"call_{self._calls + n}", tool, {"n": n}) for n, tool in enumerate(tools)]
        self._calls += len(tools)
        self.messages.append(AssistantMessage("run_1", len(self.messages), tuple(self._open)))
        return self

    def got(self, *outcomes: Outcome) -> Talk:
        pairs = zip(self._open, outcomes, strict=True)
        resolved = tuple(
            ToolResultPart(call.call_id, call.tool, call.input, outcome) for call, outcome in pairs
        )
        self.messages.append(ResultsMessage("run_1", len(self.messages), resolved))
        return self

    def prompt(self, *tools: str) -> Prompt:
        offered = [Tool(name=name, description="", input_schema={}) for name in tools]
        return Prompt(self.messages, offered, "be brief", "thr_1")


async def collect(model: Model, talk: Talk) -> list[ModelEvent]:
    return [event async for event in model.stream(talk.prompt())]


def text_in(events: Iterable[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))
