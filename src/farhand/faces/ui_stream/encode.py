"""Our events become the chunks of the AI SDK UI message stream, in an order that its clients accept.

Only chunk types and fields that the oldest supported client knows are sent. A step is opened with its first
content, so that there is never an empty one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import assert_never

from msgspec import Raw

from farhand.core.call import Call, Phase
from farhand.core.event import (
    AnswerHeard,
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
    ModelDelayed,
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
from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut, told_to_people
from farhand.core.run import RunState
from farhand.core.tool import Executor
from farhand.errors import FarhandError
from farhand.wire.json_out import encode
from farhand.wire.sse import frame

OVER = "This answer has ended and takes no more results. Send a new message to go on."
CUT = "The server cannot go on with this stream now. Nothing is lost: resume it in a moment."

DONE = b"[DONE]"

_FINISH_REASON = {"end": "stop", "calls": "tool-calls", "length": "length", "refusal": "content-filter"}


class Chunks:
    """The chunks of one response, as JSON; the last one is `[DONE]`.

    `past` events were there before the response: a pause in them does not end it. `known` has the calls as
    they are now: of what is replayed, only open calls that may run are shown so that a client runs them.
    A `dead_end` brought results to an answer that ended with its calls: a proper finish would make a client
    that sees them all complete post them again, for ever.
    """

    def __init__(
        self,
        message_id: str,
        *,
        past: int = 0,
        known: Mapping[str, Call] | None = None,
        dead_end: bool = False,
    ) -> None:
        self.ended = False
        self.ended_unheard = False
        """The answer had ended before anybody was reading."""
        self._dead_end = dead_end
        self._message_id = message_id
        self._past = past
        self._known = known or {}
        self._begun = False
        self._step: int | None = None
        self._step_open = False
        self._block: str | None = None
        self._shown: set[str] = set()
        self._written: set[str] = set()
        self._kept_back: Collection[str] = ()

    def of_entry(self, entry: Entry) -> list[bytes]:
        if self.ended:
            return []
        chunks = self._chunks(entry.event, in_the_past=entry.seq <= self._past)
        return chunks if self._begun else [*self._begin(), *chunks]

    def close(self, *, cut: bool) -> list[bytes]:
        return [*self._begin(), *(self._fail(CUT) if cut else self._finish("tool-calls"))]

    def corrected(
        self, calls: Iterable[Call], *, dispatch: Collection[str], altered: Collection[str] = ()
    ) -> list[bytes]:
        """The stored state of open calls, for a client that is mistaken about them.

        Who waits for a yes is asked about again, with the stored input if the client has `altered` it; of
        `dispatch`, what may run is handed out again.
        """
        chunks = self._begin()
        for call in calls:
            if call.phase is Phase.ASKING and call.approval is not None:
                chunks += self._stored_input(call) if call.call_id in altered else []
                chunks.append(_ask(call.approval.approval_id, call.call_id))
            elif call.call_id in dispatch and may_run(call):
                chunks.append(_available(call.call_id, call.tool, call.input))
        return chunks

    def _stored_input(self, call: Call) -> list[bytes]:
        """What the yes would be said to, whatever the client shows."""
        if call.executor is Executor.SERVER:
            return [_available(call.call_id, call.tool, call.input)]
        return self._written_out(call.call_id, call.tool, call.input)

    def keep_back(self, denied: Collection[str]) -> None:
        """Calls that this client denied and shows so, in a step that is not complete yet.

        Its helpers would take a step with a denied part for one that has nothing more to post.
        """
        self._kept_back = denied

    def gap(self) -> list[bytes]:
        """Told to a reader whose position the journal does not know; the whole answer follows."""
        return [*self._begin(), _chunk("data-gap", data={"replay": True}, transient=True)]

    def _finish(self, reason: str) -> list[bytes]:
        self.ended = True
        return [*self._close_step(), _chunk("finish", finishReason=reason), DONE]

    def _fail(self, text: str) -> list[bytes]:
        self.ended = True
        return [*self._close_step(), _chunk("error", errorText=text), DONE]

    def _begin(self) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        return [_chunk("start", messageId=self._message_id)]

    def _chunks(self, event: Event, *, in_the_past: bool) -> list[bytes]:
        # the most frequent ones first
        match event:
            case TextAdded() | ReasoningAdded():
                return self._words(event)
            case StepStarted() | StepFinished() | StepDiscarded():
                return self._turn(event)
            case CallBegun() | InputAdded() | CallOpened() | CallRejected():
                return self._wish(event)
            case CallSettled() | ApprovalAnswered() | CallTaken() | CallReleased():
                return self._move(event, in_the_past=in_the_past)
            case ModelDelayed():
                # the protocol has no word for a model that is late
                return []
            case RunStarted() | RunParked() | RunResumed() | RunFinished() | RunFailed() | AnswerHeard():
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
        now = self._known.get(event.call_id)
        if now is not None and now.phase is Phase.SETTLED:
            # a client runs whatever becomes available, also in a replay
            return self._written_out(event.call_id, event.tool, event.input)
        if event.phase is not Phase.ASKING and event.executor is not Executor.CLIENT:
            return [_available(event.call_id, event.tool, event.input)]
        asks = now is None or now.phase is Phase.ASKING
        ask = [_ask(event.approval_id, event.call_id)] if asks and event.approval_id else []
        if event.executor is Executor.SERVER:
            return [_available(event.call_id, event.tool, event.input), *ask]
        # before the yes nobody gets `tool-input-available`, and no page what a registered client runs
        return [*self._written_out(event.call_id, event.tool, event.input), *ask]

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

    def _move(
        self, event: ApprovalAnswered | CallSettled | CallTaken | CallReleased, *, in_the_past: bool
    ) -> list[bytes]:
        if isinstance(event, CallSettled):
            told = [] if event.call_id in self._kept_back else [_settled(event.call_id, event.outcome)]
            return [*self._close_block(), *told]
        if isinstance(event, ApprovalAnswered) and event.approved and event.executor is Executor.FRONTEND:
            now = self._known.get(event.call_id)
            may_run = not in_the_past if now is None else now.phase is not Phase.SETTLED
            return [_available(event.call_id, event.tool, event.input)] if may_run else []
        return []

    def _turn(self, event: StepStarted | StepFinished | StepDiscarded) -> list[bytes]:
        closed = self._close_step()
        self._step = event.step if isinstance(event, StepStarted) else None
        return closed

    def _course(
        self, event: RunStarted | RunParked | RunResumed | RunFinished | RunFailed | AnswerHeard
    ) -> list[bytes]:
        if isinstance(event, RunFinished | RunFailed):
            self.ended_unheard = not event.heard
        match event:
            case RunStarted() | RunResumed() | AnswerHeard():
                return []
            case RunParked():
                return self._finish("tool-calls")
            case RunFinished() if self._dead_end:
                return self._fail(OVER)
            case RunFinished(state=state, reason=reason):
                done = state is RunState.DONE
                return self._finish(_FINISH_REASON.get(reason, "other") if done else "other")
            case RunFailed(message=message):
                return self._fail(message)
        assert_never(event)

    def _open_step(self) -> list[bytes]:
        if self._step is None or self._step_open:
            return []
        self._step_open = True
        return [_START_STEP]

    def _close_step(self) -> list[bytes]:
        closed = self._close_block()
        if self._step_open:
            self._step_open = False
            closed.append(_FINISH_STEP)
        return closed

    def _close_block(self) -> list[bytes]:
        if self._block is None:
            return []
        block, self._block = self._block, None
        return [_chunk(f"{block.partition('-')[0]}-end", id=block)]


def may_run(call: Call) -> bool:
    """Whether a page may execute it now: allowed, and without an outcome."""
    return call.executor is Executor.FRONTEND and call.phase in (Phase.READY, Phase.TAKEN)


class Encoder:
    """The chunks as server-sent events. `with_ids` is for a reader that keeps its position."""

    def __init__(self, chunks: Chunks, *, first: Sequence[bytes] = (), with_ids: bool = False) -> None:
        self._chunks = chunks
        self._first = list(first)
        self._with_ids = with_ids

    @property
    def ended(self) -> bool:
        return self._chunks.ended

    def encode_event(self, entry: Entry) -> bytes:
        chunks = self._chunks.of_entry(entry)
        if self._first:
            chunks = [*self._take_first(), *chunks]
        if not chunks:
            return b""
        frames = [frame(chunk) for chunk in chunks]
        if self._with_ids:
            # on the last frame, so that whoever has the id has all of the entry
            frames[-1] = b"id: %b\n%b" % (str(entry.end).encode(), frames[-1])
        return b"".join(frames)

    def close(self, *, cut: bool) -> bytes:
        return b"".join(frame(chunk) for chunk in (*self._take_first(), *self._chunks.close(cut=cut)))

    def _take_first(self) -> list[bytes]:
        first, self._first = self._first, []
        return first


def socket_frame(kind: str, request_id: str, error: str | None = None) -> bytes:
    """A frame of AI SDK's own WebSocket transport."""
    told = {"type": kind, "requestId": request_id}
    return encode(told if error is None else {**told, "errorText": error})


def socket_chunk(request_id: str, sequence: int, chunk: bytes) -> bytes:
    return encode({"type": "chunk", "requestId": request_id, "sequence": sequence, "chunk": Raw(chunk)})


def live_error(text: str) -> bytes:
    """An error outside any exchange of the held socket."""
    return frame(_chunk("error", errorText=text))


def live_pong(timestamp: object) -> bytes:
    return encode({"type": "pong", "timestamp": timestamp})


def encode_error(error: FarhandError, status: int) -> bytes:
    return encode({"error": {"code": error.code, "message": str(error)}})


def _ask(approval_id: str | None, call_id: str) -> bytes:
    return _chunk("tool-approval-request", approvalId=approval_id, toolCallId=call_id)


def _available(call_id: str, tool: str, input: object) -> bytes:
    return _chunk("tool-input-available", toolCallId=call_id, toolName=tool, input=input)


def _settled(call_id: str, outcome: Outcome) -> bytes:
    match outcome:
        case Success(output=output):
            return _chunk("tool-output-available", toolCallId=call_id, output=output)
        case Denied():
            return _chunk("tool-output-denied", toolCallId=call_id)
        case Failure() | TimedOut() | Cancelled():
            return _chunk("tool-output-error", toolCallId=call_id, errorText=told_to_people(outcome))
    assert_never(outcome)


def _chunk(kind: str, **fields: object) -> bytes:
    return encode({"type": kind, **fields})


_START_STEP = _chunk("start-step")
_FINISH_STEP = _chunk("finish-step")
