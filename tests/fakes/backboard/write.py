"""Writes a script as Backboard's stream of one round: `data:` lines, no event names, no final event."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from farhand.core.run import Usage
from farhand.core.thread import Part, Text, ToolCallPart
from farhand.errors import ModelFault
from farhand.models.base import (
    CallDone,
    CallStart,
    InputDelta,
    ModelEvent,
    ReasoningDelta,
    ReasoningDone,
    Stop,
    TextDelta,
)
from farhand.wire.sse import frame
from tests.fakes.backboard.state import Run
from tests.fakes.provider import Json


class RoundWriter:
    """`ended` is told what was said once the round has ended well."""

    def __init__(self, run: Run, ended: Callable[[list[Part]], None], *, cumulative: bool) -> None:
        self._run = run
        self._ended = ended
        self._cumulative = cumulative
        self._text = ""
        self._thought = ""
        self._calls: list[Json] = []

    def begin(self) -> bytes:
        return _line("run_started", run_id=self._run.id)

    def write(self, event: ModelEvent) -> bytes:
        match event:
            case TextDelta(text=text):
                self._text += text
                return _line("content_streaming", content=self._text if self._cumulative else text)
            case ReasoningDelta(text=text):
                self._thought += text
                return _line("reasoning_streaming", content=text, accumulated_reasoning=self._thought)
            case CallStart(tool=tool, model_call_id=theirs):
                call = f"{self._run.id[:8]}_{len(self._calls)}" if theirs is None else theirs
                self._calls.append({"id": call, "type": "function", "name": tool, "arguments": ""})
                return b""
            case InputDelta(index=index, text=text):
                self._calls[index]["arguments"] += text
                return b""
            case CallDone() | ReasoningDone():
                return b""
            case Stop():
                return self._stop(event)

    def answer(self) -> Json:
        """The whole round, for a client that does not stream."""
        calls = list(map(_call, self._calls))
        said = "Tool calls requested" if calls else "Message added successfully"
        facts = {"message": said, "run_id": self._run.id, "content": self._text}
        return {**facts, "status": self._run.status.upper(), "tool_calls": calls or None}

    def fail(self, fault: ModelFault) -> bytes:
        self._run.status = "failed"
        return _line("run_failed", run_id=self._run.id, error=fault.message)

    def _stop(self, stop: Stop) -> bytes:
        if stop.reason in {"length", "refusal"}:
            self._run.status = "failed"
            return _line("run_ended", run_id=self._run.id, status=f"incomplete: {stop.reason}")
        asked = [_asked(self._run, number, call) for number, call in enumerate(self._calls)]
        said: list[Part] = [Text(self._text)] if self._text else []
        self._ended([*said, *asked])
        if asked:
            return _line(
                "tool_submit_required", run_id=self._run.id, tool_calls=list(map(_call, self._calls))
            )
        used = stop.usage if stop.usage != Usage() else Usage(1, len(self._text.split()))
        counts = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
        return _line("run_ended", run_id=self._run.id, status="completed", **counts)


def _asked(run: Run, number: int, call: Json) -> ToolCallPart:
    try:
        input = msgspec.json.decode(call["arguments"])
    except msgspec.DecodeError:
        input = call["arguments"]
    return ToolCallPart(f"{run.id}:{number}", call["name"], input, call["id"])


def _call(call: Json) -> Json:
    function = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call["id"], "type": "function", "function": function}


def _line(kind: str, **fields: object) -> bytes:
    return frame(msgspec.json.encode({"type": kind, **fields}))
