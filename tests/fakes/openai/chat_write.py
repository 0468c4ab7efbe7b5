"""Writes a script as the chunks of one chat completion."""

from __future__ import annotations

import itertools

import msgspec

from farhand.core.run import Usage
from farhand.errors import ModelFault
from farhand.models.base import (
    CallDone,
    CallStart,
    InputDelta,
    ModelEvent,
    ReasoningDelta,
    ReasoningDone,
    Stop,
    StopReason,
    TextDelta,
)
from farhand.wire.sse import DONE, frame
from tests.fakes.provider import Json

_REASONS: dict[StopReason, str] = {
    "end": "stop",
    "calls": "tool_calls",
    "length": "length",
    "refusal": "content_filter",
    "pause": "stop",
    "other": "stop",
}
_numbers = itertools.count(1)


class ChunkWriter:
    """`thoughts` collects what was thought, as a server may want it back, under the name `member`."""

    def __init__(self, body: Json, member: str, thoughts: set[str]) -> None:
        self._member = member
        self._thoughts = thoughts
        self._thought = ""
        self._input_tokens = len(msgspec.json.encode(body["messages"])) // 4
        self._wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        self._said = 0
        self._head = {
            "id": f"chatcmpl-fake{next(_numbers)}",
            "object": "chat.completion.chunk",
            "created": 1_800_000_000,
            "model": body["model"],
        }

    def begin(self) -> bytes:
        return self._delta(role="assistant", content="")

    def write(self, event: ModelEvent) -> bytes:
        self._said += 1
        match event:
            case TextDelta(text=text):
                return self._delta(content=text)
            case ReasoningDelta(text=text):
                self._thought += text
                return self._delta(**{self._member: text})
            case CallStart(index=index, tool=tool, model_call_id=theirs):
                call = f"call_fake{next(_numbers)}" if theirs is None else theirs
                begun = {"index": index, "type": "function", "function": {"name": tool, "arguments": ""}}
                return self._delta(tool_calls=[{**begun, "id": call} if call else begun])
            case InputDelta(index=index, text=text):
                return self._delta(tool_calls=[{"index": index, "function": {"arguments": text}}])
            case Stop():
                return self._stop(event)
            case CallDone() | ReasoningDone():
                return b""

    def fail(self, fault: ModelFault) -> bytes:
        error = {"message": fault.message, "type": "server_error", "param": None, "code": None}
        return frame(msgspec.json.encode({"error": error}))

    def _stop(self, stop: Stop) -> bytes:
        if self._thought:
            self._thoughts.add(self._thought)
        ended = self._chunk([{"index": 0, "delta": {}, "finish_reason": _REASONS[stop.reason]}])
        if not self._wants_usage:
            return ended + DONE
        used = stop.usage if stop.usage != Usage() else Usage(self._input_tokens, self._said)
        usage = {
            "prompt_tokens": used.input_tokens,
            "completion_tokens": used.output_tokens,
            "total_tokens": used.input_tokens + used.output_tokens,
        }
        return ended + self._chunk([], usage=usage) + DONE

    def _delta(self, **delta: object) -> bytes:
        return self._chunk([{"index": 0, "delta": delta, "finish_reason": None}])

    def _chunk(self, choices: list[Json], **fields: object) -> bytes:
        return frame(msgspec.json.encode({**self._head, "choices": choices, **fields}))
