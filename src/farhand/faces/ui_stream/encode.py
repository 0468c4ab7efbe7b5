"""Our events become the chunks of the AI SDK UI message stream, in an order that its clients accept.

Only chunk types and fields that the oldest supported client knows are sent. A step is opened with its first
content, so that there is never an empty one.
"""

from __future__ import annotations

from typing import assert_never

from farhand.core.call import Phase
from farhand.core.event import (
    ApprovalAnswered,
    CallBegun,
    CallOpened,
    CallRejected,
    CallReleased,
    CallSettled,
    CallTaken,
    Entry,
    Event,
    InputAdded,
    ReasoningAdded,
    RunFailed,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.run import RunState
from farhand.core.tool import Executor
from farhand.errors import FarhandError
from farhand.wire.json_out import encode
from farhand.wire.sse import DONE, frame

CUT = "The server is restarting. Nothing is lost: resume the stream in a moment."

_FINISH_REASON = {"end": "stop", "calls": "tool-calls", "length": "length", "refusal": "content-filter"}


class Encoder:
    """One response. `past` events were seen before: a pause in them does not end this one."""

    def __init__(self, message_id: str, *, past: int = 0) -> None:
        self.ended = False
        self._message_id = message_id
        self._past = past
        self._begun = False
        self._step: int | None = None
        self._step_open = False
        self._block: str | None = None
        self._shown: set[str] = set()
        self._written: set[str] = set()

    def encode_entry(self, entry: Entry) -> bytes:
        if self.ended:
            return b""
        begin = self._begin()
        return begin + b"".join(self._chunks(entry.event, in_the_past=entry.seq <= self._past))

    def close(self, *, cut: bool) -> bytes:
        return self._begin() + (self._fail(CUT) if cut else self._finish("tool-calls"))

    def _finish(self, reason: str) -> bytes:
        self.ended = True
        return b"".join([*self._close_step(), _chunk("finish", finishReason=reason), DONE])

    def _fail(self, text: str) -> bytes:
        self.ended = True
        return b"".join([*self._close_step(), _chunk("error", errorText=text), DONE])

    def _begin(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        return _chunk("start", messageId=self._message_id)

    def _chunks(self, event: Event, *, in_the_past: bool) -> list[bytes]:
        match event:
            case TextAdded() | ReasoningAdded():
                return self._words(event)
            case CallBegun() | InputAdded() | CallOpened() | CallRejected():
                return self._wish(event)
            case ApprovalAnswered() | CallSettled() | CallTaken() | CallReleased():
                return self._move(event)
            case StepStarted() | StepFinished() | StepDiscarded():
                return self._turn(event)
            case RunStarted() | RunParked() | RunResumed() | RunFinished() | RunFailed():
                return [] if in_the_past and isinstance(event, RunParked) else self._course(event)
        assert_never(event)

    def _words(self, event: TextAdded | ReasoningAdded) -> list[bytes]:
        kind = "text" if isinstance(event, TextAdded) else "reasoning"
        block = f"{kind}-{self._step or 0}-{event.part}"
        delta = _chunk(f"{kind}-delta", id=block, delta=event.text)
        if self._block == block:
            return [delta]
        opened = [*self._open_step(), *self._close_block(), _chunk(f"{kind}-start", id=block)]
        self._block = block
        return [*opened, delta]

    def _wish(self, event: CallBegun | InputAdded | CallOpened | CallRejected) -> list[bytes]:
        begin = [*self._open_step(), *self._close_block()]
        match event:
            case CallBegun(call_id=call_id, tool=tool):
                self._shown.add(call_id)
                return [*begin, _chunk("tool-input-start", toolCallId=call_id, toolName=tool)]
            case InputAdded(call_id=call_id, text=text):
                self._written.add(call_id)
                return [*begin, _chunk("tool-input-delta", toolCallId=call_id, inputTextDelta=text)]
            case CallOpened():
                return [*begin, *self._opened(event)]
            case CallRejected(call_id=call_id, tool=tool, input=input, error=error):
                named = {"toolCallId": call_id, "toolName": tool}
                return [*begin, _chunk("tool-input-error", **named, input=input, errorText=error)]
        assert_never(event)

    def _opened(self, event: CallOpened) -> list[bytes]:
        if event.phase is not Phase.ASKING:
            return [_available(event.call_id, event.tool, event.input)]
        ask = _chunk("tool-approval-request", approvalId=event.approval_id, toolCallId=event.call_id)
        if event.executor is Executor.SERVER:
            return [_available(event.call_id, event.tool, event.input), ask]
        # `tool-input-available` makes a client execute the tool, so nobody gets it before the yes
        return [*self._written_out(event.call_id, event.tool, event.input), ask]

    def _written_out(self, call_id: str, tool: str, input: object) -> list[bytes]:
        """The input to be shown and not executed: as if the model were still writing it."""
        chunks = []
        if call_id not in self._shown:
            chunks.append(_chunk("tool-input-start", toolCallId=call_id, toolName=tool))
        if call_id not in self._written:
            chunks.append(
                _chunk("tool-input-delta", toolCallId=call_id, inputTextDelta=encode(input).decode())
            )
        return chunks

    def _move(self, event: ApprovalAnswered | CallSettled | CallTaken | CallReleased) -> list[bytes]:
        if isinstance(event, CallSettled):
            return [*self._close_block(), _settled(event.call_id, event.outcome)]
        if isinstance(event, ApprovalAnswered) and event.approved and event.executor is not Executor.SERVER:
            return [_available(event.call_id, event.tool, event.input)]
        return []

    def _turn(self, event: StepStarted | StepFinished | StepDiscarded) -> list[bytes]:
        closed = self._close_step()
        self._step = event.step if isinstance(event, StepStarted) else None
        return closed

    def _course(self, event: RunStarted | RunParked | RunResumed | RunFinished | RunFailed) -> list[bytes]:
        match event:
            case RunStarted() | RunResumed():
                return []
            case RunParked():
                return [self._finish("tool-calls")]
            case RunFinished(state=state, reason=reason):
                done = state is RunState.DONE
                return [self._finish(_FINISH_REASON.get(reason, "other") if done else "other")]
            case RunFailed(message=message):
                return [self._fail(message)]
        assert_never(event)

    def _open_step(self) -> list[bytes]:
        if self._step is None or self._step_open:
            return []
        self._step_open = True
        return [_chunk("start-step")]

    def _close_step(self) -> list[bytes]:
        closed = self._close_block()
        if self._step_open:
            self._step_open = False
            closed.append(_chunk("finish-step"))
        return closed

    def _close_block(self) -> list[bytes]:
        if self._block is None:
            return []
        block, self._block = self._block, None
        return [_chunk(f"{block.partition('-')[0]}-end", id=block)]


def encode_error(error: FarhandError, status: int) -> bytes:
    return encode({"error": {"code": error.code, "message": str(error)}})


def _available(call_id: str, tool: str, input: object) -> bytes:
    return _chunk("tool-input-available", toolCallId=call_id, toolName=tool, input=input)


def _settled(call_id: str, outcome: Outcome) -> bytes:
    match outcome:
        case Success(output=output):
            return _chunk("tool-output-available", toolCallId=call_id, output=output)
        case Denied():
            return _chunk("tool-output-denied", toolCallId=call_id)
        case Failure(error=error):
            return _error(call_id, error)
        case TimedOut(after_sec=after):
            waited = f" within {after:g} s" if after else ""
            return _error(call_id, f"Nobody answered{waited}.")
        case Cancelled(reason=reason):
            return _error(call_id, f"Cancelled: {reason}.")
    assert_never(outcome)


def _error(call_id: str, text: str) -> bytes:
    return _chunk("tool-output-error", toolCallId=call_id, errorText=text)


def _chunk(kind: str, **fields: object) -> bytes:
    return frame(encode({"type": kind, **fields}))
