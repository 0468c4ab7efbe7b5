"""Texts of a request as what they were: results and inputs are JSON to a script, and text to a model."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from farhand.core.outcome import Success
from farhand.core.thread import AssistantMessage, Message, ResultsMessage, ToolCallPart, ToolResultPart


def understood(text: str) -> object:
    """The JSON that the text is, else the text."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


class Answers:
    """Puts results into a history, each to its call; those of one step are one message."""

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages

    def add(self, call_id: str, text: str) -> None:
        asked = self._asked(call_id)
        # these APIs know no errors, so a script hears of none either
        resolved = ToolResultPart(asked.call_id, asked.tool, asked.input, Success(understood(text)))
        last = self._messages[-1]
        if isinstance(last, ResultsMessage):
            self._messages[-1] = replace(last, results=(*last.results, resolved))
        else:
            self._messages.append(ResultsMessage("run_fake", len(self._messages), (resolved,)))

    def _asked(self, call_id: str) -> ToolCallPart:
        steps = (each for each in reversed(self._messages) if isinstance(each, AssistantMessage))
        return next(asked for step in steps for asked in step.tool_calls if asked.call_id == call_id)
