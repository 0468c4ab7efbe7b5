"""Writes a script as the stream of one response, event by event as the Responses API sends it."""

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
    TextDelta,
)
from farhand.wire.sse import frame
from tests.fakes.openai.encrypted_reasoning import sealed
from tests.fakes.provider import Json

_INCOMPLETE = {"length": "max_output_tokens", "refusal": "content_filter"}
_numbers = itertools.count(1)


class ResponseWriter:
    """`reasons` collects which reasoning item each call came with: the API wants both back."""

    def __init__(self, body: Json, reasons: dict[str, str]) -> None:
        self._reasons = reasons
        self._input_tokens = len(msgspec.json.encode(body["input"])) // 4
        self._output: list[Json] = []
        self._is_open = False
        self._sent = 0
        self._response: Json = {
            "id": f"resp_fake{next(_numbers)}",
            "object": "response",
            "created_at": 1_800_000_000,
            "model": body["model"],
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "status": "in_progress",
        }

    def begin(self) -> bytes:
        return self._event("created", response=self._response) + self._event(
            "in_progress", response=self._response
        )

    def write(self, event: ModelEvent) -> bytes:
        match event:
            case TextDelta(text=text):
                return self._say(text)
            case ReasoningDelta(text=text):
                return self._think(text)
            case CallStart(tool=tool, model_call_id=theirs):
                return self._close() + self._call(tool, theirs or f"call_fake{next(_numbers)}")
            case InputDelta(text=text):
                self._output[-1]["arguments"] += text
                return self._on_item("function_call_arguments.delta", delta=text)
            case CallDone():
                return self._close()
            case ReasoningDone():
                return b""
            case Stop():
                return self._stop(event)

    def fail(self, fault: ModelFault) -> bytes:
        told = {"type": "error", "code": "server_error", "message": fault.message, "param": None}
        return self._frame(told)

    def _say(self, text: str) -> bytes:
        opened = b""
        if not self._is("message"):
            item = {"type": "message", "id": f"msg_fake{next(_numbers)}", "role": "assistant", "content": []}
            opened = self._close() + self._open(item)
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            opened += self._on_item("content_part.added", content_index=0, part=part)
            self._output[-1]["content"] = [part]
        self._output[-1]["content"][0]["text"] += text
        return opened + self._on_item("output_text.delta", content_index=0, delta=text, logprobs=[])

    def _think(self, text: str) -> bytes:
        opened = b""
        if not self._is("reasoning"):
            opened = self._close() + self._open(
                {"type": "reasoning", "id": f"rs_fake{next(_numbers)}", "summary": []}
            )
            part = {"type": "summary_text", "text": ""}
            opened += self._on_item("reasoning_summary_part.added", summary_index=0, part=part)
            self._output[-1]["summary"] = [part]
        self._output[-1]["summary"][0]["text"] += text
        return opened + self._on_item("reasoning_summary_text.delta", summary_index=0, delta=text)

    def _call(self, tool: str, call_id: str) -> bytes:
        before = self._output[-1] if self._output else {}
        # an id that is given out again tells nothing
        known = self._reasons.pop(call_id, None)
        if known is None and before.get("type") == "reasoning":
            self._reasons[call_id] = before["id"]
        item = {"type": "function_call", "id": f"fc_fake{next(_numbers)}", "call_id": call_id, "name": tool}
        return self._open({**item, "arguments": ""})

    def _is(self, kind: str) -> bool:
        return self._is_open and bool(self._output[-1]["type"] == kind)

    def _open(self, item: Json) -> bytes:
        self._is_open = True
        self._output.append({**item, "status": "in_progress"} if item["type"] != "reasoning" else item)
        return self._event(
            "output_item.added", output_index=len(self._output) - 1, item=dict(self._output[-1])
        )

    def _close(self, status: str = "completed") -> bytes:
        if not self._is_open:
            return b""
        self._is_open = False
        item = self._output[-1]
        if item["type"] == "reasoning":
            item["encrypted_content"] = sealed(item)
        else:
            item["status"] = status
        return self._event("output_item.done", output_index=len(self._output) - 1, item=item)

    def _stop(self, stop: Stop) -> bytes:
        why = _INCOMPLETE.get(stop.reason)
        closed = self._close("incomplete" if why else "completed")
        used = stop.usage if stop.usage != Usage() else Usage(self._input_tokens, len(self._output))
        status = "incomplete" if why else "completed"
        response = {
            **self._response,
            "status": status,
            "output": self._output,
            "incomplete_details": {"reason": why} if why else None,
            "usage": {
                "input_tokens": used.input_tokens,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": used.output_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": used.input_tokens + used.output_tokens,
            },
        }
        return closed + self._event(status, response=response)

    def _on_item(self, kind: str, **fields: object) -> bytes:
        place = {"item_id": self._output[-1]["id"], "output_index": len(self._output) - 1}
        return self._event(kind, **place, **fields)

    def _event(self, kind: str, **fields: object) -> bytes:
        return self._frame({"type": f"response.{kind}", **fields})

    def _frame(self, told: Json) -> bytes:
        self._sent += 1
        return frame(msgspec.json.encode({**told, "sequence_number": self._sent}), event=told["type"])
