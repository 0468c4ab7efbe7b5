"""The chunks of one chat completion as model events. Knows the chunks' shapes, and no connection.

Servers differ: pieces of calls are told apart by their index, and some give every call the same one; some
have no ids or the same one for all, some end with `stop` though they ask for calls, some
without any reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from farhand.core.run import Usage
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
from farhand.models.calling import Names
from farhand.models.openai.chat_messages import PROVIDER
from farhand.models.openai.chat_stream import Done, Heard
from farhand.models.reading import counted
from farhand.models.telling import echo_by

if TYPE_CHECKING:
    from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall

_REASONS: dict[str, StopReason] = {
    "stop": "end",
    "tool_calls": "end",
    "function_call": "end",
    "length": "length",
    "content_filter": "refusal",
}
_REASONING = ("reasoning_content", "reasoning")


class Answer:
    """`stop` is there once the answer is complete."""

    def __init__(self, names: Names, model: str) -> None:
        self._names = names
        self._thinking = _Thinking(model)
        self._calls: list[_Writing] = []
        self._at: dict[int | None, _Writing] = {}
        self._reason: StopReason | None = None
        self._said = False
        self._refused = False
        self._usage = Usage()

    @property
    def stop(self) -> Stop | None:
        if self._reason is None:
            return None
        return Stop(self._reason, self._usage)

    def hear(self, chunk: Heard) -> Iterator[ModelEvent]:
        if isinstance(chunk, Done):
            # a server that gives no reason had none but its end
            if self._reason is None and (self._said or self._calls):
                yield from self._finish("end")
            return
        if chunk.usage is not None:
            self._usage = counted(chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
        # no choices at all in a chunk that counts or keeps the line open
        for choice in (chunk.choices or [])[:1]:
            yield from self._hear_delta(choice.delta)
            if choice.finish_reason and self._reason is None:
                yield from self._finish(_REASONS.get(choice.finish_reason, "other"))

    def _hear_delta(self, delta: ChoiceDelta) -> Iterator[ModelEvent]:
        yield from self._thinking.hear(delta)
        if delta.content or delta.refusal or delta.tool_calls:
            yield from self._thinking.end()
        if delta.content:
            self._said = True
            yield TextDelta(delta.content)
        if delta.refusal:
            self._refused = True
            yield TextDelta(delta.refusal)
        for piece in delta.tool_calls or ():
            yield from self._hear_call(piece)

    def _hear_call(self, piece: ChoiceDeltaToolCall) -> Iterator[ModelEvent]:
        name = (piece.function.name if piece.function else None) or ""
        text = (piece.function.arguments if piece.function else None) or ""
        call = self._at.get(piece.index)
        if call is None or (name and call.is_another(self._names.name(name), piece.id)):
            call = self._at[piece.index] = _Writing(len(self._calls), piece.id)
            self._calls.append(call)
        yield from call.go_on(self._names.name(name), text)

    def _finish(self, reason: StopReason) -> Iterator[ModelEvent]:
        yield from self._thinking.end()
        # of an answer that was cut, the last call is cut
        whole = self._calls[:-1] if reason == "length" else self._calls
        for call in self._calls:
            yield from call.begin()
        for call in whole:
            yield CallDone(call.index, "".join(call.pieces))
        if reason == "end" and self._calls:
            reason = "calls"
        self._reason = "refusal" if self._refused and reason == "end" else reason


class _Thinking:
    """Reasoning, as compatible servers send it beside what the API knows; some want it back with calls."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._member = ""

    def hear(self, delta: ChoiceDelta) -> Iterator[ModelEvent]:
        extra = delta.model_extra or {}
        for member in _REASONING:
            if isinstance(extra.get(member), str) and extra[member]:
                self._member = member
                yield ReasoningDelta(extra[member])
                return

    def end(self) -> Iterator[ModelEvent]:
        if self._member:
            yield ReasoningDone(echo_by(PROVIDER, {"model": self._model, "member": self._member}))
        self._member = ""


class _Writing:
    """A call while it is written. It begins when its name is known."""

    def __init__(self, index: int, model_call_id: str | None) -> None:
        self.index = index
        self.model_call_id = model_call_id or None
        self.pieces: list[str] = []
        self._name = ""
        self._begun = False

    def is_another(self, name: str, model_call_id: str | None) -> bool:
        """True if a piece with this name begins another call, though it comes at the same index.

        Some servers repeat name and id with every piece: those go on with an input that is not whole yet.
        """
        if not self._name:
            return False
        if name != self._name or (model_call_id or self.model_call_id) != self.model_call_id:
            return True
        return _is_whole("".join(self.pieces))

    def go_on(self, name: str, text: str) -> Iterator[ModelEvent]:
        self._name = self._name or name
        if self._name:
            yield from self.begin()
        if text:
            self.pieces.append(text)
            if self._begun:
                yield InputDelta(self.index, text)

    def begin(self) -> Iterator[ModelEvent]:
        if self._begun:
            return
        self._begun = True
        yield CallStart(self.index, self._name, self.model_call_id)
        if self.pieces:
            yield InputDelta(self.index, "".join(self.pieces))


def _is_whole(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
