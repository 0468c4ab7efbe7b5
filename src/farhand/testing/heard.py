"""One answer of the chat stream as a far hand hears it: text, calls, questions, and whether it is over.

Owns what was said; must not know how the chunks travelled.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")


class Called(Struct, frozen=True):
    """A call that may be executed."""

    call_id: str
    tool: str
    input: dict[str, object]


class Asked(Struct, frozen=True):
    """A call that waits for a yes or no, which is addressed to `approval_id`."""

    approval_id: str
    call_id: str
    tool: str
    input: dict[str, object]


Question = TypeVar("Question", Called, Asked)


class Heard:
    def __init__(self) -> None:
        self.chunks: list[dict[str, object]] = []
        self._text: list[str] = []
        self._tools: dict[str, str] = {}
        self._inputs: dict[str, str] = {}
        self._calls: dict[str, Called] = {}
        self._questions: dict[str, Asked] = {}
        self._handed_out: set[str] = set()
        self._reason = ""
        self._over = ""
        self._answers = 0
        self._taken_up = 0
        self._news = asyncio.Event()

    @property
    def paused(self) -> bool:
        """The response ended, and the answer goes on once its calls are answered."""
        return self._reason == "tool-calls"

    def begin(self) -> None:
        """Another response: what it says counts, also if that is nothing."""
        self._reason = ""

    def hear(self, chunk: dict[str, object]) -> Called | None:
        """The call that this chunk brings, if it brings a new one."""
        self.chunks.append(chunk)
        self._news.set()
        before = len(self._calls)
        note = getattr(self, "_on_" + str(chunk["type"]).replace("-", "_"), None)
        if note is not None:
            note(chunk)
        return list(self._calls.values())[-1] if len(self._calls) > before else None

    def end(self, why: str = "it came to its end") -> None:
        self._over = why
        self._news.set()

    def answered(self) -> None:
        """A result or a yes was accepted: an answer that paused may go on."""
        self._answers += 1
        self._news.set()

    async def moved_on(self) -> None:
        await self._until(lambda: self._answers > self._taken_up or None)
        self._taken_up = self._answers

    async def next_call(self, tool: str) -> Called:
        return await self._hand_out(self._calls, tool)

    async def next_question(self, tool: str) -> Asked:
        return await self._hand_out(self._questions, tool)

    async def whole_text(self) -> str:
        await self._until(lambda: self._over or None)
        return "".join(self._text)

    def story(self) -> str:
        """What came so far, for the sentence of a test that waited in vain."""
        counted = Counter(str(chunk["type"]) for chunk in self.chunks)
        return ", ".join(f"{name} × {times}" for name, times in counted.items()) or "nothing"

    async def _hand_out(self, heard: dict[str, Question], tool: str) -> Question:
        def look() -> str | None:
            fresh = (key for key, each in heard.items() if key not in self._handed_out and each.tool == tool)
            found = next(fresh, None)
            if found is None and self._over:
                raise AssertionError(f"Nothing came of '{tool}': {self._over}. Heard: {self.story()}.")
            return found

        key = await self._until(look)
        self._handed_out.add(key)
        return heard[key]

    async def _until(self, look: Callable[[], T | None]) -> T:
        while True:
            found = look()
            if found is not None:
                return found
            self._news.clear()
            await self._news.wait()

    def _on_start(self, chunk: dict[str, object]) -> None:
        # also of a replay, which tells the whole answer once more
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
        self._calls.setdefault(call_id, Called(call_id, str(chunk["toolName"]), input))

    def _on_tool_approval_request(self, chunk: dict[str, object]) -> None:
        approval_id, call_id = str(chunk["approvalId"]), str(chunk["toolCallId"])
        input = msgspec.json.decode(self._inputs.get(call_id) or "{}", type=dict[str, object])
        asked = Asked(approval_id, call_id, self._tools.get(call_id, ""), input)
        self._questions.setdefault(approval_id, asked)

    def _on_finish(self, chunk: dict[str, object]) -> None:
        self._reason = str(chunk.get("finishReason", ""))
