"""Writes a script as the stream of one message, event by event as the Messages API sends it."""

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
from farhand.wire.sse import frame
from tests.fakes.anthropic.signature import signature_of
from tests.fakes.provider import Json

_REASONS: dict[StopReason, str] = {
    "end": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "refusal": "refusal",
    "pause": "pause_turn",
    "other": "stop_sequence",
}
_numbers = itertools.count(1)


class MessageWriter:
    """`paused` collects the turns that were paused, as the API wants them back."""

    def __init__(self, body: Json, paused: list[list[Json]]) -> None:
        self._model = body["model"]
        self._input_tokens = len(msgspec.json.encode(body["messages"])) // 4
        self._paused = paused
        self._blocks: list[Json] = []
        self._is_open = False

    def begin(self) -> bytes:
        usage = {"input_tokens": self._input_tokens, "output_tokens": 1}
        message = {
            "id": f"msg_fake{next(_numbers)}",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        return _event("message_start", message=message) + _event("ping")

    def write(self, event: ModelEvent) -> bytes:
        match event:
            case TextDelta(text=text):
                return self._block("text", text="") + self._delta("text", "text_delta", text)
            case ReasoningDelta(text=text):
                opened = self._block("thinking", thinking="", signature="")
                return opened + self._delta("thinking", "thinking_delta", text)
            case ReasoningDone(echo=echo):
                return self._raw(echo) if isinstance(echo, dict) else b""
            case CallStart(tool=tool, model_call_id=theirs):
                call = theirs or f"toolu_fake{next(_numbers)}"
                return self._close() + self._open({"type": "tool_use", "id": call, "name": tool, "input": {}})
            case InputDelta(text=text):
                return self._delta("input", "input_json_delta", text)
            case CallDone():
                return self._close()
            case Stop():
                return self._stop(event)

    def fail(self, fault: ModelFault) -> bytes:
        return _event("error", error={"type": "overloaded_error", "message": fault.message})

    def _block(self, kind: str, **fields: object) -> bytes:
        """The block that continues, or a new one."""
        if self._is_open and self._blocks[-1]["type"] == kind:
            return b""
        return self._close() + self._open({"type": kind, **fields})

    def _open(self, block: Json) -> bytes:
        self._blocks.append(dict(block))
        self._is_open = True
        return _event("content_block_start", index=len(self._blocks) - 1, content_block=block)

    def _delta(self, field: str, kind: str, text: str) -> bytes:
        block = self._blocks[-1]
        # an input is written as text and is JSON once it is whole
        said = block[field] if isinstance(block[field], str) else ""
        block[field] = said + text
        name = "partial_json" if kind == "input_json_delta" else field
        return _event("content_block_delta", index=len(self._blocks) - 1, delta={"type": kind, name: text})

    def _close(self) -> bytes:
        if not self._is_open:
            return b""
        self._is_open = False
        block, index = self._blocks[-1], len(self._blocks) - 1
        sealed = b""
        if block["type"] == "thinking":
            block["signature"] = signature_of(block["thinking"])
            delta = {"type": "signature_delta", "signature": block["signature"]}
            sealed = _event("content_block_delta", index=index, delta=delta)
        return sealed + _event("content_block_stop", index=index)

    def _raw(self, block: Json) -> bytes:
        """A block of the API's own: what it holds comes at once, but an input comes as a delta."""
        opened = self._close()
        if "input" not in block:
            return opened + self._open(block) + self._close()
        written = msgspec.json.encode(block["input"]).decode()
        opened += self._open({**block, "input": {}}) + self._delta("input", "input_json_delta", written)
        self._blocks[-1]["input"] = block["input"]
        return opened + self._close()

    def _stop(self, stop: Stop) -> bytes:
        closed = self._close()
        if stop.reason == "pause":
            # texts without a word are said, and never taken back
            self._paused.append([each for each in self._blocks if each.get("text", "word").strip()])
        used = stop.usage if stop.usage != Usage() else Usage(self._input_tokens, len(self._blocks))
        return (
            closed
            + _event(
                "message_delta",
                delta={"stop_reason": _REASONS[stop.reason], "stop_sequence": None},
                usage={"input_tokens": used.input_tokens, "output_tokens": used.output_tokens},
            )
            + _event("message_stop")
        )


def _event(kind: str, **fields: object) -> bytes:
    return frame(msgspec.json.encode({"type": kind, **fields}), event=kind)
