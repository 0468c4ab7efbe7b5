"""Collects one answer of the chat stream: text, calls, approval requests, and whether it is complete.

It must not know how the chunks are transported.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")


class PendingCall(Struct, frozen=True):
    """A call that may be executed: `call = await client.called("open_url")`."""

    call_id: str
    tool: str
    input: dict[str, object]


class ApprovalRequest(Struct, frozen=True):
    """A call that waits for approval: `await client.approve(request.approval_id)`."""

    approval_id: str
    call_id: str
    tool: str
    input: dict[str, object]


Question = TypeVar("Question", PendingCall, ApprovalRequest)


class AnswerReader:
    def __init__(self) -> None:
        self.chunks: list[dict[str, object]] = []
        self._text: list[str] = []
        self._tools: dict[str, str] = {}
        self._inputs: dict[str, str] = {}
        self._calls: dict[str, PendingCall] = {}
        self._questions: dict[str, ApprovalRequest] = {}
        self._taken: set[str] = set()
        self._reason = ""
        self._over = ""
        self._answers = 0
        self._resumed = 0
        self._changed = asyncio.Event()

    @property
    def paused(self) -> bool:
        """True if the response ended and the answer continues once its calls are answered."""
        return self._reason == "tool-calls"

    def begin(self) -> None:
        """A new response begins: forget how the one before it ended."""
        self._reason = ""

    def read(self, chunk: dict[str, object]) -> PendingCall | None:
        """The new call in this chunk, if any."""
        self.chunks.append(chunk)
        self._changed.set()
        before = len(self._calls)
        note = getattr(self, "_on_" + str(chunk["type"]).replace("-", "_"), None)
        if note is not None:
            note(chunk)
        return list(self._calls.values())[-1] if len(self._calls) > before else None

    def end(self, why: str = "the answer is complete") -> None:
        self._over = why
        self._changed.set()

    def note_answer(self) -> None:
        """A result or an approval was accepted: a paused answer may continue."""
        self._answers += 1
        self._changed.set()

    async def wait_until_answered(self) -> None:
        await self._until(lambda: self._answers > self._resumed or None)
        self._resumed = self._answers

    async def next_call(self, tool: str) -> PendingCall:
        return await self._take(self._calls, tool)

    async def next_question(self, tool: str) -> ApprovalRequest:
        return await self._take(self._questions, tool)

    async def whole_text(self) -> str:
        await self._until(lambda: self._over or None)
        return "".join(self._text)

    def summary(self) -> str:
        """What arrived so far, for the message of a test that failed."""
        counted = Counter(str(chunk["type"]) for chunk in self.chunks)
        return ", ".join(f"{name} × {times}" for name, times in counted.items()) or "nothing"

    async def _take(self, found_items: dict[str, Question], tool: str) -> Question:
        def look() -> str | None:
            fresh = (key for key, each in found_items.items() if key not in self._taken and each.tool == tool)
            found = next(fresh, None)
            if found is None and self._over:
                raise AssertionError(f"Nothing for '{tool}': {self._over}. Received: {self.summary()}.")
            return found

        key = await self._until(look)
        self._taken.add(key)
        return found_items[key]

    async def _until(self, look: Callable[[], T | None]) -> T:
        while True:
            found = look()
            if found is not None:
                return found
            self._changed.clear()
            await self._changed.wait()

    def _on_start(self, chunk: dict[str, object]) -> None:
        # also for a replay, which repeats the whole answer
        self._text.clear()
        self._inputs.clear()

    def _on_text_delta(self, chunk: dict[str, object]) -> None:
        self._text.append(str(chunk["delta"]))

    def _on_tool_input_start(self, chunk: dict[str, object]) -> None:
        self._tools[str(chunk["toolCallId"])] = str(chunk["toolName"])

    def _on_tool_input_delta(self, chunk: dict[str, object]) -> None:
        call_id = str(chunk["toolCallId"])
        self._inputs[call_id] = self._inputs.get(call_id, "") + str(chunk["inputTextDelta"])

    def _on_tool_input_available(self, chunk: dict[str, object]) -> None:
        call_id = str(chunk["toolCallId"])
        input = chunk["input"] if isinstance(chunk["input"], dict) else {}
        self._inputs[call_id] = msgspec.json.encode(input).decode()
        self._calls.setdefault(call_id, PendingCall(call_id, str(chunk["toolName"]), input))

    def _on_tool_approval_request(self, chunk: dict[str, object]) -> None:
        approval_id, call_id = str(chunk["approvalId"]), str(chunk["toolCallId"])
        input = msgspec.json.decode(self._inputs.get(call_id) or "{}", type=dict[str, object])
        asked = ApprovalRequest(approval_id, call_id, self._tools.get(call_id, ""), input)
        self._questions.setdefault(approval_id, asked)

    def _on_finish(self, chunk: dict[str, object]) -> None:
        self._reason = str(chunk.get("finishReason", ""))
