"""Encodes events as the chunks of the AI SDK UI message stream, in an order that its clients accept.

Only chunk types and fields that the oldest supported client knows are sent. A step is opened with its first
content, so that no step is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from farhand.agent.turns import CallAnswers, Turn, may_run
from farhand.core.call import Call, Phase
from farhand.core.decide.calls import Reply
from farhand.core.event import (
    THREAD_EVENTS,
    AnswerDelivered,
    ApprovalAnswered,
    CallBegun,
    CallersMoved,
    CallOpened,
    CallRejected,
    CallReleased,
    CallSettled,
    CallTaken,
    Event,
    InputAdded,
    ModelDelayed,
    OutcomeReported,
    ReasoningAdded,
    RunFailed,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TakeRenewed,
    TextAdded,
)
from farhand.core.outcome import Denied
from farhand.core.position import START, Entry, Position, mark_of
from farhand.core.run import Run, RunState
from farhand.core.tool import Executor
from farhand.faces.ui_stream.decode import Chat
from farhand.faces.ui_stream.shapes import (
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
from farhand.wire.json_writer import encode
from farhand.wire.sse import frames

OVER = "This answer has ended and accepts no more results. Send a new message to continue."
CUT = "The server cannot continue this stream now. Nothing is lost: resume it in a moment."

ChunkList: TypeAlias = list[bytes]
"""Chunks as JSON, in their order."""

_OpenText: TypeAlias = tuple[type[TextAdded | ReasoningAdded], int, bytes]

_FINISH_REASON = {"end": "stop", "calls": "tool-calls", "length": "length", "refusal": "content-filter"}


class Chunks:
    """The chunks of one response, as JSON; the last one is `[DONE]`.

    The first `past` events were there before the response: a pause among them does not end it. `known` has
    the calls as they are now: of a replay, only open calls that may run are sent as available, since clients
    run what is available. A `dead_end` answers results for a run that has ended: after a proper finish, a
    client that sees all its calls complete would post them again forever.
    """

    __slots__ = (
        "_block",
        "_dead_end",
        "_in_the_past",
        "_is_started",
        "_kept_back",
        "_known",
        "_message_id",
        "_open_delta",
        "_past",
        "_shown",
        "_step",
        "_step_open",
        "_written",
        "ended",
        "ended_unread",
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
        self.ended_unread = False
        """The answer ended before anyone read it."""
        self._dead_end = dead_end
        self._message_id = message_id
        self._past = past
        self._in_the_past = False
        self._known = known or {}
        self._is_started = False
        self._step: int | None = None
        self._step_open = False
        self._block: bytes | None = None
        self._open_delta: _OpenText | None = None
        """The open block: its kind and part, and how each of its deltas begins."""
        self._shown: Collection[str] = ()
        self._written: Collection[str] = ()
        self._kept_back: Collection[str] = ()

    @property
    def mark(self) -> str:
        """Distinguishes the positions of this answer from those of others."""
        return mark_of(self._message_id)

    def of_entries(self, entries: Sequence[Entry]) -> ChunkList:
        chunks = self._begin([]) if entries else []
        for entry in entries:
            if self.ended:
                break
            self._in_the_past = entry.seq <= self._past
            self._METHODS[type(entry.event)](self, entry.event, chunks)
        return chunks

    def close(self, *, cut: bool) -> ChunkList:
        chunks = self._begin([])
        if cut:
            self._fail(chunks, CUT)
        else:
            self._finish(chunks, "tool-calls")
        return chunks

    def corrected(
        self, calls: Iterable[Call], *, dispatch: Collection[str], altered: Collection[str] = ()
    ) -> ChunkList:
        """The stored state of open calls, for a client that is mistaken about them.

        A call that waits for an approval is asked about again, with the stored input if the client has
        `altered` it; calls in `dispatch` that may run are sent again.
        """
        chunks = self._begin([])
        for call in calls:
            if call.phase is Phase.ASKING and call.approval is not None:
                if call.call_id in altered:
                    self._show_stored_input(chunks, call)
                chunks.append(approval_request(call.approval.approval_id, call.call_id))
            elif call.call_id in dispatch and may_run(call):
                chunks.append(input_available(call.call_id, call.tool, call.input))
        return chunks

    def keep_back(self, denied: Collection[str]) -> None:
        """Holds back calls that this client denied, in a step that is not complete yet.

        A client with a denied part would conclude that the step has nothing more to post.
        """
        self._kept_back = denied

    def gap(self) -> ChunkList:
        """For a reader whose position is unknown; the whole answer follows."""
        return [*self._begin([]), chunk("data-gap", data={"replay": True}, transient=True)]

    def _begin(self, chunks: ChunkList) -> ChunkList:
        if not self._is_started:
            self._is_started = True
            chunks.append(start(self._message_id))
        return chunks

    def _finish(self, chunks: ChunkList, reason: str) -> None:
        self.ended = True
        self._close_step(chunks)
        chunks += (FINISH[reason], DONE)

    def _fail(self, chunks: ChunkList, text: str) -> None:
        self.ended = True
        self._close_step(chunks)
        chunks += (chunk("error", errorText=text), DONE)

    def _write_text(self, event: TextAdded | ReasoningAdded, chunks: ChunkList) -> None:
        words = self._open_delta
        if words is None or words[1] != event.part or words[0] is not type(event):
            words = self._open_text(event, chunks)
        chunks.append(b"%b%b}" % (words[2], encode(event.text)))

    def _open_text(self, event: TextAdded | ReasoningAdded, chunks: ChunkList) -> _OpenText:
        self._begin_content(chunks)
        kind = b"text" if type(event) is TextAdded else b"reasoning"
        block = self._block = b"%b-%d-%d" % (kind, self._step or 0, event.part)
        chunks.append(b'{"type":"%b-start","id":"%b"}' % (kind, block))
        self._open_delta = (type(event), event.part, b'{"type":"%b-delta","id":"%b","delta":' % (kind, block))
        return self._open_delta

    def _begin_call(self, event: CallBegun, chunks: ChunkList) -> None:
        self._begin_content(chunks)
        self._shown = (*self._shown, event.call_id)
        chunks.append(input_start(event.call_id, event.tool))

    def _add_input(self, event: InputAdded, chunks: ChunkList) -> None:
        self._begin_content(chunks)
        if event.call_id not in self._written:
            self._written = (*self._written, event.call_id)
        chunks.append(input_delta(event.call_id, event.text))

    def _open_call(self, event: CallOpened, chunks: ChunkList) -> None:
        if event.parent is not None and self._step is None:
            # a tool asks after the model's step: in a separate step, which a client posts when its questions
            # are answered, though the tool that asks has no output yet
            self._step = event.step
        self._begin_content(chunks)
        self._show_opened(chunks, event)

    def _reject_call(self, event: CallRejected, chunks: ChunkList) -> None:
        self._begin_content(chunks)
        named = {"toolCallId": event.call_id, "toolName": event.tool}
        chunks.append(chunk("tool-input-error", **named, input=event.input, errorText=event.error))

    def _show_opened(self, chunks: ChunkList, event: CallOpened) -> None:
        current = self._known.get(event.call_id)
        if current is not None and current.phase is Phase.SETTLED:
            # a client runs everything that becomes available, also in a replay
            self._write_out(chunks, event.call_id, event.tool, event.input)
            return
        is_asking = event.phase is Phase.ASKING
        # no page gets `tool-input-available` before the approval, or for what a registered client runs
        is_shown = event.executor is Executor.SERVER if is_asking else event.executor is not Executor.CLIENT
        if is_shown:
            chunks.append(input_available(event.call_id, event.tool, event.input))
        else:
            self._write_out(chunks, event.call_id, event.tool, event.input)
        if is_asking and event.approval_id and (current is None or current.phase is Phase.ASKING):
            chunks.append(approval_request(event.approval_id, event.call_id))

    def _show_stored_input(self, chunks: ChunkList, call: Call) -> None:
        """Shows what the approval would be for, whatever the client shows."""
        if call.executor is Executor.SERVER:
            chunks.append(input_available(call.call_id, call.tool, call.input))
        else:
            self._write_out(chunks, call.call_id, call.tool, call.input)

    def _write_out(self, chunks: ChunkList, call_id: str, tool: str, input: object) -> None:
        """Shows an input without having it executed: as if the model were still writing it."""
        if call_id not in self._shown:
            chunks.append(input_start(call_id, tool))
        if call_id not in self._written:
            chunks.append(input_delta(call_id, encode(input).decode()))

    def _write_outcome(self, event: CallSettled, chunks: ChunkList) -> None:
        if self._block is not None:
            self._close_block(chunks)
        if event.call_id not in self._kept_back:
            chunks.append(outcome(event.call_id, event.outcome))

    def _write_approval(self, event: ApprovalAnswered, chunks: ChunkList) -> None:
        if not event.approved or event.executor is not Executor.FRONTEND:
            return
        current = self._known.get(event.call_id)
        may_run = not self._in_the_past if current is None else current.phase is not Phase.SETTLED
        if may_run:
            chunks.append(input_available(event.call_id, event.tool, event.input))

    def _start_step(self, event: StepStarted, chunks: ChunkList) -> None:
        self._close_step(chunks)
        self._step = event.step

    def _end_step(self, event: StepFinished | StepDiscarded, chunks: ChunkList) -> None:
        self._close_step(chunks)
        self._step = None

    def _pause(self, event: RunParked, chunks: ChunkList) -> None:
        if not self._in_the_past:
            self._finish(chunks, "tool-calls")

    def _end(self, event: RunFinished | RunFailed, chunks: ChunkList) -> None:
        self.ended_unread = not event.delivered
        if isinstance(event, RunFailed):
            self._fail(chunks, event.message)
        elif self._dead_end:
            self._fail(chunks, OVER)
        else:
            is_done = event.state is RunState.DONE
            self._finish(chunks, _FINISH_REASON.get(event.reason, "other") if is_done else "other")

    def _skip(self, event: Event, chunks: ChunkList) -> None:
        """The protocol has no chunk for it, or needs none."""

    def _begin_content(self, chunks: ChunkList) -> None:
        """Opens a step with its first content, and closes the text block before it."""
        if self._step is not None and not self._step_open:
            self._step_open = True
            chunks.append(START_STEP)
        if self._block is not None:
            self._close_block(chunks)

    def _close_step(self, chunks: ChunkList) -> None:
        if self._block is not None:
            self._close_block(chunks)
        if self._step_open:
            self._step_open = False
            chunks.append(FINISH_STEP)

    def _close_block(self, chunks: ChunkList) -> None:
        assert self._block is not None, "only what was opened is closed"
        block, self._block, self._open_delta = self._block, None, None
        chunks.append(b'{"type":"%b-end","id":"%b"}' % (block.partition(b"-")[0], block))

    # Any: each method takes its own type of event, which is the key
    _METHODS: ClassVar[dict[type[Event], Callable[[Chunks, Any, ChunkList], None]]] = {
        TextAdded: _write_text,
        ReasoningAdded: _write_text,
        StepStarted: _start_step,
        StepFinished: _end_step,
        StepDiscarded: _end_step,
        CallBegun: _begin_call,
        InputAdded: _add_input,
        CallOpened: _open_call,
        CallRejected: _reject_call,
        CallSettled: _write_outcome,
        ApprovalAnswered: _write_approval,
        RunParked: _pause,
        RunFinished: _end,
        RunFailed: _end,
        CallTaken: _skip,
        TakeRenewed: _skip,
        CallReleased: _skip,
        OutcomeReported: _skip,
        CallersMoved: _skip,
        ModelDelayed: _skip,
        RunStarted: _skip,
        RunResumed: _skip,
        AnswerDelivered: _skip,
        # events of the thread, which no reader of a run gets
        **dict.fromkeys(THREAD_EVENTS, _skip),
    }
    """The method for each type of event. A test checks that all are here."""


@dataclass(slots=True)
class Response:
    """What one response shows of a run: from where on, until which event, and which chunks come first."""

    run: Run
    after: Position
    chunks: Chunks
    until: int | None = None
    first: Sequence[bytes] = ()
    """Chunks that come before those of the journal."""
    with_ids: bool = False
    is_undelivered: bool = True
    """Nobody has read the answer to its end yet: if it ends before it is read, that is noted."""
    awaits_output: bool = False
    """It answers the first approval of a frontend tool, which has no output yet: there is nothing to show."""


def respond(turn: Turn, chat: Chat | None = None) -> Response:
    """`chat` is what the client sent, so that the response neither loses a part nor makes the client post
    forever."""
    if turn.is_new:
        return Response(turn.run, turn.after, Chunks(turn.run.run_id))
    if chat is not None and isinstance(chat.turn, CallAnswers) and chat.turn.call_ids:
        return _respond_to_answers(turn, chat.turn, chat.claimed)
    return _replay(turn)


def resume(turn: Turn) -> Response | None:
    """The answer, or what follows on the position that its reader has; None if the reader has all of it."""
    response = _replay(turn)
    if turn.seen is None:
        response.first = response.chunks.gap()
        return response
    response.after = turn.after
    # the reader has these chunks: what follows must fit on them
    response.chunks.of_entries(turn.seen)
    return None if response.chunks.ended else response


def _replay(turn: Turn) -> Response:
    """The whole run. One that waits for an answer ends the response after its last event."""
    run = turn.run
    known = {call.call_id: call for call in turn.calls}
    chunks = Chunks(run.run_id, past=run.last_seq, known=known)
    until = run.last_seq if turn.is_at_rest else None
    return Response(run, START, chunks, until, is_undelivered=run.active or not run.is_delivered)


def _respond_to_answers(turn: Turn, answers: CallAnswers, claimed: Collection[str]) -> Response:
    """The outcomes of open calls as they are stored, then the rest of the message."""
    run = turn.run
    if turn.is_followed:
        known = {call.call_id: call for call in turn.calls}
        return Response(run, turn.after, Chunks(run.run_id, past=turn.past, known=known))
    dead_end = not run.active and any(call.step == run.step for call in turn.calls)
    chunks = Chunks(run.run_id, past=run.last_seq, dead_end=dead_end)
    if not turn.is_at_rest:
        return Response(run, turn.after, chunks)
    if turn.awaits_output:
        # no correction: a client that is about to add its output would lose it
        return Response(run, Position(run.last_seq), chunks, run.last_seq, awaits_output=True)
    chunks.keep_back(_own_denials(turn))
    # what came after the steps that the client knows follows from the journal, in its place
    shown = [call for call in turn.calls if call.call_id in answers.call_ids]
    first = chunks.corrected(shown, dispatch=claimed, altered=turn.altered)
    return Response(run, turn.after, chunks, run.last_seq, first)


def _own_denials(turn: Turn) -> set[str]:
    """The ids of calls that this client denied, and that are denied in the record."""
    denied = {
        item.approval_id for item, _ in turn.receipts if isinstance(item, Reply) and not item.answer.approved
    }
    return {
        call.call_id
        for call in turn.calls
        if call.approval and call.approval.approval_id in denied and isinstance(call.outcome, Denied)
    }


class UiStreamEncoder:
    """The chunks as server-sent events. `with_ids` is for a reader that keeps its position."""

    __slots__ = ("_chunks", "_first", "_with_ids")

    def __init__(self, chunks: Chunks, *, first: Sequence[bytes] = (), with_ids: bool = False) -> None:
        self._chunks = chunks
        self._first = first
        self._with_ids = with_ids

    @property
    def ended(self) -> bool:
        return self._chunks.ended

    def encode_events(self, entries: Sequence[Entry]) -> bytes:
        if self._with_ids:
            return b"".join([self._with_id(entry) for entry in entries])
        if not entries:
            return b""
        chunks = self._chunks.of_entries(entries)
        return frames(self._with_first(chunks) if self._first else chunks)

    def close(self, *, cut: bool) -> bytes:
        return frames(self._with_first(self._chunks.close(cut=cut)))

    def _with_id(self, entry: Entry) -> bytes:
        """The id is on the last frame, so that a reader with the id has the whole entry."""
        chunks = self._with_first(self._chunks.of_entries((entry,)))
        return frames(chunks, f"{entry.end}~{self._chunks.mark}".encode()) if chunks else b""

    def _with_first(self, chunks: ChunkList) -> ChunkList:
        if self._first:
            chunks, self._first = [*self._first, *chunks], ()
        return chunks
