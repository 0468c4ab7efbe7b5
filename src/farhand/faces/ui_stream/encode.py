"""Our events become the chunks of the AI SDK UI message stream, in an order that its clients accept.

Only chunk types and fields that the oldest supported client knows are sent. A step is opened with its first
content, so that there is never an empty one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

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
    mark_of,
)
from farhand.core.run import RunState
from farhand.core.tool import Executor
from farhand.errors import FarhandError
from farhand.faces.ui_stream.written import (
    DONE,
    FINISH,
    FINISH_STEP,
    START_STEP,
    approval_request,
    chunk,
    input_available,
    input_delta,
    input_start,
    outcome,
    start,
)
from farhand.wire.json_out import encode
from farhand.wire.sse import frame, frames

OVER = "This answer has ended and takes no more results. Send a new message to go on."
CUT = "The server cannot go on with this stream now. Nothing is lost: resume it in a moment."

Told: TypeAlias = list[bytes]
"""Chunks as JSON, in their order."""

_Words: TypeAlias = tuple[type[TextAdded | ReasoningAdded], int, bytes]

_FINISH_REASON = {"end": "stop", "calls": "tool-calls", "length": "length", "refusal": "content-filter"}


class Chunks:
    """The chunks of one response, as JSON; the last one is `[DONE]`.

    `past` events were there before the response: a pause in them does not end it. `known` has the calls as
    they are now: of what is replayed, only open calls that may run are shown so that a client runs them.
    A `dead_end` brought results to an answer that ended with its calls: a proper finish would make a client
    that sees them all complete post them again, for ever.
    """

    __slots__ = (
        "_begun",
        "_block",
        "_dead_end",
        "_in_the_past",
        "_kept_back",
        "_known",
        "_message_id",
        "_past",
        "_shown",
        "_step",
        "_step_open",
        "_words",
        "_written",
        "ended",
        "ended_unheard",
    )

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
        self._in_the_past = False
        self._known = known or {}
        self._begun = False
        self._step: int | None = None
        self._step_open = False
        self._block: bytes | None = None
        self._words: _Words | None = None
        """Of the open block: kind and part, and how every delta of it begins."""
        self._shown: Collection[str] = ()
        self._written: Collection[str] = ()
        self._kept_back: Collection[str] = ()

    @property
    def mark(self) -> str:
        """Tells this answer's positions from another's."""
        return mark_of(self._message_id)

    def of_entries(self, entries: Iterable[Entry]) -> Told:
        told: Told = []
        for entry in entries:
            if self.ended:
                break
            if not self._begun:
                self._begin(told)
            self._in_the_past = entry.seq <= self._past
            self._TELLING[type(entry.event)](self, entry.event, told)
        return told

    def close(self, *, cut: bool) -> Told:
        told = self._begin([])
        if cut:
            self._fail(told, CUT)
        else:
            self._finish(told, "tool-calls")
        return told

    def corrected(
        self, calls: Iterable[Call], *, dispatch: Collection[str], altered: Collection[str] = ()
    ) -> Told:
        """The stored state of open calls, for a client that is mistaken about them.

        Who waits for a yes is asked about again, with the stored input if the client has `altered` it; of
        `dispatch`, what may run is handed out again.
        """
        told = self._begin([])
        for call in calls:
            if call.phase is Phase.ASKING and call.approval is not None:
                if call.call_id in altered:
                    self._show_stored_input(told, call)
                told.append(approval_request(call.approval.approval_id, call.call_id))
            elif call.call_id in dispatch and may_run(call):
                told.append(input_available(call.call_id, call.tool, call.input))
        return told

    def keep_back(self, denied: Collection[str]) -> None:
        """Calls that this client denied and shows so, in a step that is not complete yet.

        Its helpers would take a step with a denied part for one that has nothing more to post.
        """
        self._kept_back = denied

    def gap(self) -> Told:
        """Told to a reader whose position the journal does not know; the whole answer follows."""
        return [*self._begin([]), chunk("data-gap", data={"replay": True}, transient=True)]

    def _begin(self, told: Told) -> Told:
        if not self._begun:
            self._begun = True
            told.append(start(self._message_id))
        return told

    def _finish(self, told: Told, reason: str) -> None:
        self.ended = True
        self._close_step(told)
        told += (FINISH[reason], DONE)

    def _fail(self, told: Told, text: str) -> None:
        self.ended = True
        self._close_step(told)
        told += (chunk("error", errorText=text), DONE)

    def _tell_words(self, event: TextAdded | ReasoningAdded, told: Told) -> None:
        words = self._words
        if words is None or words[1] != event.part or words[0] is not type(event):
            words = self._begin_words(event, told)
        told.append(b"%b%b}" % (words[2], encode(event.text)))

    def _begin_words(self, event: TextAdded | ReasoningAdded, told: Told) -> _Words:
        self._begin_content(told)
        kind = b"text" if type(event) is TextAdded else b"reasoning"
        block = self._block = b"%b-%d-%d" % (kind, self._step or 0, event.part)
        told.append(b'{"type":"%b-start","id":"%b"}' % (kind, block))
        self._words = (type(event), event.part, b'{"type":"%b-delta","id":"%b","delta":' % (kind, block))
        return self._words

    def _tell_wish(self, event: CallBegun | InputAdded | CallOpened | CallRejected, told: Told) -> None:
        self._begin_content(told)
        match event:
            case CallBegun(call_id=call_id, tool=tool):
                self._shown = (*self._shown, call_id)
                told.append(input_start(call_id, tool))
            case InputAdded(call_id=call_id, text=text):
                if call_id not in self._written:
                    self._written = (*self._written, call_id)
                told.append(input_delta(call_id, text))
            case CallOpened():
                self._show_opened(told, event)
            case CallRejected(call_id=call_id, tool=tool, input=input, error=error):
                named = {"toolCallId": call_id, "toolName": tool}
                told.append(chunk("tool-input-error", **named, input=input, errorText=error))

    def _show_opened(self, told: Told, event: CallOpened) -> None:
        now = self._known.get(event.call_id)
        if now is not None and now.phase is Phase.SETTLED:
            # a client runs whatever becomes available, also in a replay
            self._write_out(told, event.call_id, event.tool, event.input)
            return
        is_asking = event.phase is Phase.ASKING
        # before the yes nobody gets `tool-input-available`, and no page what a registered client runs
        is_shown = event.executor is Executor.SERVER if is_asking else event.executor is not Executor.CLIENT
        if is_shown:
            told.append(input_available(event.call_id, event.tool, event.input))
        else:
            self._write_out(told, event.call_id, event.tool, event.input)
        if is_asking and event.approval_id and (now is None or now.phase is Phase.ASKING):
            told.append(approval_request(event.approval_id, event.call_id))

    def _show_stored_input(self, told: Told, call: Call) -> None:
        """What the yes would be said to, whatever the client shows."""
        if call.executor is Executor.SERVER:
            told.append(input_available(call.call_id, call.tool, call.input))
        else:
            self._write_out(told, call.call_id, call.tool, call.input)

    def _write_out(self, told: Told, call_id: str, tool: str, input: object) -> None:
        """The input to be shown and not executed: as if the model were still writing it."""
        if call_id not in self._shown:
            told.append(input_start(call_id, tool))
        if call_id not in self._written:
            told.append(input_delta(call_id, encode(input).decode()))

    def _tell_settled(self, event: CallSettled, told: Told) -> None:
        if self._block is not None:
            self._close_block(told)
        if event.call_id not in self._kept_back:
            told.append(outcome(event.call_id, event.outcome))

    def _tell_answered(self, event: ApprovalAnswered, told: Told) -> None:
        if not event.approved or event.executor is not Executor.FRONTEND:
            return
        now = self._known.get(event.call_id)
        may_run = not self._in_the_past if now is None else now.phase is not Phase.SETTLED
        if may_run:
            told.append(input_available(event.call_id, event.tool, event.input))

    def _tell_step(self, event: StepStarted, told: Told) -> None:
        self._close_step(told)
        self._step = event.step

    def _tell_end_of_step(self, event: StepFinished | StepDiscarded, told: Told) -> None:
        self._close_step(told)
        self._step = None

    def _tell_pause(self, event: RunParked, told: Told) -> None:
        if not self._in_the_past:
            self._finish(told, "tool-calls")

    def _tell_end(self, event: RunFinished | RunFailed, told: Told) -> None:
        self.ended_unheard = not event.heard
        if isinstance(event, RunFailed):
            self._fail(told, event.message)
        elif self._dead_end:
            self._fail(told, OVER)
        else:
            is_done = event.state is RunState.DONE
            self._finish(told, _FINISH_REASON.get(event.reason, "other") if is_done else "other")

    def _tell_nothing(self, event: Event, told: Told) -> None:
        """The protocol has no word for it, or none is needed."""

    def _begin_content(self, told: Told) -> None:
        """A step is opened with its first content, and what was being said has ended."""
        if self._step is not None and not self._step_open:
            self._step_open = True
            told.append(START_STEP)
        if self._block is not None:
            self._close_block(told)

    def _close_step(self, told: Told) -> None:
        if self._block is not None:
            self._close_block(told)
        if self._step_open:
            self._step_open = False
            told.append(FINISH_STEP)

    def _close_block(self, told: Told) -> None:
        assert self._block is not None, "only what was opened is closed"
        block, self._block, self._words = self._block, None, None
        told.append(b'{"type":"%b-end","id":"%b"}' % (block.partition(b"-")[0], block))

    # Any: each of them takes its own kind of event, and the key says which
    _TELLING: ClassVar[dict[type[Event], Callable[[Chunks, Any, Told], None]]] = {
        TextAdded: _tell_words,
        ReasoningAdded: _tell_words,
        StepStarted: _tell_step,
        StepFinished: _tell_end_of_step,
        StepDiscarded: _tell_end_of_step,
        CallBegun: _tell_wish,
        InputAdded: _tell_wish,
        CallOpened: _tell_wish,
        CallRejected: _tell_wish,
        CallSettled: _tell_settled,
        ApprovalAnswered: _tell_answered,
        RunParked: _tell_pause,
        RunFinished: _tell_end,
        RunFailed: _tell_end,
        CallTaken: _tell_nothing,
        CallReleased: _tell_nothing,
        ModelDelayed: _tell_nothing,
        RunStarted: _tell_nothing,
        RunResumed: _tell_nothing,
        AnswerHeard: _tell_nothing,
    }
    """What is told of each event. A test counts them."""


def may_run(call: Call) -> bool:
    """Whether a page may execute it now: allowed, and without an outcome."""
    return call.executor is Executor.FRONTEND and call.phase in (Phase.READY, Phase.TAKEN)


class Encoder:
    """The chunks as server-sent events. `with_ids` is for a reader that keeps its position."""

    __slots__ = ("_chunks", "_first", "_with_ids")

    def __init__(self, chunks: Chunks, *, first: Sequence[bytes] = (), with_ids: bool = False) -> None:
        self._chunks = chunks
        self._first = list(first)
        self._with_ids = with_ids

    @property
    def ended(self) -> bool:
        return self._chunks.ended

    def encode_events(self, entries: Sequence[Entry]) -> bytes:
        if self._with_ids:
            return b"".join([self._with_id(entry) for entry in entries])
        if not entries:
            return b""
        told = self._chunks.of_entries(entries)
        return frames(self._with_first(told) if self._first else told)

    def close(self, *, cut: bool) -> bytes:
        return frames(self._with_first(self._chunks.close(cut=cut)))

    def _with_id(self, entry: Entry) -> bytes:
        """On the last frame, so that whoever has the id has all of the entry."""
        told = self._with_first(self._chunks.of_entries((entry,)))
        return frames(told, f"{entry.end}~{self._chunks.mark}".encode()) if told else b""

    def _with_first(self, chunks: Told) -> Told:
        if self._first:
            chunks, self._first = [*self._first, *chunks], []
        return chunks


def socket_frame(kind: str, request_id: str, error: str | None = None) -> bytes:
    """A frame of AI SDK's own WebSocket transport."""
    told = {"type": kind, "requestId": request_id}
    return encode(told if error is None else {**told, "errorText": error})


def socket_chunk(request_id: str, sequence: int, chunk: bytes) -> bytes:
    return encode({"type": "chunk", "requestId": request_id, "sequence": sequence, "chunk": Raw(chunk)})


def live_error(text: str) -> bytes:
    """An error outside any exchange of the held socket."""
    return frame(chunk("error", errorText=text))


def live_pong(timestamp: object) -> bytes:
    return encode({"type": "pong", "timestamp": timestamp})


def encode_error(error: FarhandError, status: int) -> bytes:
    return encode({"error": {"code": error.code, "message": str(error)}})
