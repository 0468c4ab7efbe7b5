"""Encodes events as those of AG-UI, in an order that its clients accept.

A run of theirs ends at every pause; many of them are one of ours. Who may execute a call is known when it is
opened, so nothing is sent while the model writes its input. Fields that older clients refuse are sent only to
those that say which version they speak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct

from farhand.agent.post_content import open_questions
from farhand.core.call import Call, Phase
from farhand.core.call_state import moved, opened_call
from farhand.core.event import (
    CALL_MOVES,
    THREAD_EVENTS,
    AnswerDelivered,
    CallBegun,
    CallMove,
    CallOpened,
    CallRejected,
    CallSettled,
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
from farhand.core.outcome import public, seen_by_model
from farhand.core.position import Entry
from farhand.core.run import Run, RunState
from farhand.core.tool import Executor, Tool
from farhand.errors import FarhandError
from farhand.faces.agui.decode import result_message_id
from farhand.faces.agui.interrupts import interrupt_of
from farhand.faces.agui.shapes import (
    AGENT_ID,
    PROTOCOL_VERSION,
    RUNTIME_VERSION,
    AguiEvent,
    AguiRefusal,
    CancelledOutcome,
    InterruptOutcome,
    MessagesSnapshotEvent,
    ReasoningContentEvent,
    ReasoningEndEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunOutcome,
    RunStartedEvent,
    RuntimeAgent,
    RuntimeInfo,
    ShownMessage,
    StopReply,
    SuccessOutcome,
    TextContentEvent,
    TextEndEvent,
    TextStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from farhand.wire.json_writer import encode
from farhand.wire.sse import frames

CUT = "The server cannot continue this stream now. Nothing is lost: connect again in a moment."

Tools = Mapping[str, Tool | None]
"""By version."""


class RunName(Struct, frozen=True):
    """How the client names what it is shown; `is_versioned` if it sends its protocol version."""

    thread_id: str
    run_id: str
    is_versioned: bool = False


class AguiEncoder:
    """The events of one response. It follows the state of the run's calls, because the end of a pause names
    those that are open.

    `shown_calls` and `shown_results` are what the client has. A pause before the event `past` is over.
    """

    def __init__(
        self,
        run: Run,
        name: RunName,
        *,
        past: int = 0,
        shown_calls: Iterable[str] = (),
        shown_results: Iterable[str] = (),
    ) -> None:
        self.ended = False
        self.ended_unread = False
        """The answer ended before anyone read it."""
        self.is_followed = False
        """Another run follows in the same response: the end of this one is kept back."""
        self._last: RunFinishedEvent | RunErrorEvent | None = None
        self._run = run
        self._name = name
        self._past = past
        self._at = 0
        self._is_parked = self._is_kept = False
        self._rests_since = 0
        self._is_silent = False
        """While it reads what the client already has."""
        self._calls: dict[str, Call] = {}
        self._shown = set(shown_calls)
        self._results = set(shown_results)
        self._step = 0
        self._own_steps: set[int] = set()
        """Steps that begin in this response."""
        self._attempts: dict[int, int] = {}
        self._texts: dict[int, str] = {}
        """The message of each step that calls belong to, as far as this response has it."""
        self._open: _OpenText | None = None
        self._usage = (0, 0)
        self._events: list[AguiEvent] = []

    # ----------------------------------------------------------------------------------------- from outside

    @property
    def is_paused(self) -> bool:
        """The run waits, and everything before that was sent: the response ends now."""
        if self.ended or self._at < self._past or not (self._is_parked or self._is_kept):
            return False
        # a run that has something to do stays parked until a worker has claimed it
        undone = [call for call in self._calls.values() if call.outcome is None]
        if self._rests_since < self._past and all(call.runs_at_client for call in undone if call.blocks):
            # parked for calls that are answered by now: the remaining ones are a registered client's, and are
            # waited for
            return False
        blockers = sum(call.blocks for call in undone)
        askers = {call.parent.call_id for call in undone if call.parent is not None}
        return 0 < blockers == len(undone) - len(askers)

    @property
    def questions(self) -> list[Call]:
        """What a person is asked now."""
        return open_questions(self._calls.values())

    def begin(self, history: Sequence[ShownMessage] | None = None) -> bytes:
        version = PROTOCOL_VERSION if self._name.is_versioned else None
        self._events.append(RunStartedEvent(self._name.thread_id, self._name.run_id, version))
        return self._flush() if history is None else self.correct(history)

    def correct(self, history: Sequence[ShownMessage]) -> bytes:
        """The record, for a client that shows something else."""
        self._events.append(MessagesSnapshotEvent(list(history)))
        return self._flush()

    def skip(self, entries: Iterable[Entry]) -> None:
        """What the client has of the run."""
        self._is_silent = True
        for entry in entries:
            self._take(entry)
        self._is_silent = False
        self._texts.clear()
        self._usage = (0, 0)

    def encode_events(self, entries: Sequence[Entry]) -> bytes:
        for entry in entries:
            if self.ended:
                break
            self._take(entry)
        return self._flush()

    def pause(self, tools: Tools) -> bytes:
        """Ends the response at a pause. `tools` are those of the questions. While a person is asked, calls of
        the page are held back: a client executes whatever it sees, and continues only with all answers."""
        questions = self.questions
        if questions:
            is_versioned = self._name.is_versioned
            asked = [
                interrupt_of(call, tools.get(call.tool_version), with_expiry=is_versioned)
                for call in questions
            ]
            self._finish(InterruptOutcome(asked))
            return self._flush()
        waiting = [call for call in self._calls.values() if _is_for_page(call)]
        for call in waiting:
            self._show(call)
        pending = [call.call_id for call in waiting]
        self._finish(SuccessOutcome(pending if pending and self._name.is_versioned else None))
        return self._flush()

    def close(self, *, cut: bool) -> bytes:
        self.is_followed = False
        if cut:
            self._fail(CUT, "shutting_down")
            return self._flush()
        return self.pause({})

    def end(self) -> bytes:
        """The end that was held back: nothing follows after all."""
        self._events += [] if self._last is None else [self._last]
        return self._flush()

    # ------------------------------------------------------------------------------------------- the events

    def _take(self, entry: Entry) -> None:
        self._at = entry.seq
        event = entry.event
        if isinstance(event, CallOpened | CallRejected):
            run = self._run
            call = opened_call(event, run.owner, run.thread_id, run.run_id, entry.at)
            self._calls[call.call_id] = call
        elif isinstance(event, CALL_MOVES):
            self._move(event, entry.at)
        self._METHODS[type(event)](self, event)

    def _move(self, event: CallMove, at: float) -> None:
        call = self._calls.get(event.call_id)
        if call is not None:
            self._calls[event.call_id] = moved(call, event, at)

    def _start_step(self, event: StepStarted) -> None:
        self._close_text()
        self._step = event.step
        if not self._is_silent:
            self._own_steps.add(event.step)

    def _end_step(self, event: StepFinished) -> None:
        self._close_text()
        used = event.usage
        self._usage = (self._usage[0] + used.input_tokens, self._usage[1] + used.output_tokens)

    def _discard_step(self, event: StepDiscarded) -> None:
        """The same step is written again: as another message, or its text would be appended to the discarded
        one."""
        self._close_text()
        self._attempts[event.step] = self._attempts.get(event.step, 0) + 1
        self._texts.pop(event.step, None)

    def _write_text(self, event: TextAdded | ReasoningAdded) -> None:
        if not event.text or self._is_silent:
            return
        kind = type(event)
        if self._open is None or (self._open.kind, self._open.part) != (kind, event.part):
            self._close_text()
            self._open = _OpenText(kind, event.part, self._text_id(event))
            self._events += self._open.first()
        self._events.append(self._open.content(event.text))

    def _text_id(self, event: TextAdded | ReasoningAdded) -> str:
        if isinstance(event, ReasoningAdded):
            return f"{self._step_id(self._step)}:r{event.part}"
        first = self._step not in self._texts
        message_id = self._step_id(self._step) if first else f"{self._step_id(self._step)}:{event.part}"
        self._texts[self._step] = message_id
        return message_id

    def _step_id(self, step: int) -> str:
        attempt = self._attempts.get(step, 0)
        name = f"{self._run.run_id}:{step}"
        return f"{name}.{attempt}" if attempt else name

    def _open_call(self, event: CallOpened | CallRejected) -> None:
        call = self._calls[event.call_id]
        if self._is_silent:
            # the page's own calls are shown at the pause, and the client says which of them it has
            if call.executor is not Executor.FRONTEND or isinstance(event, CallRejected):
                self._shown.add(call.call_id)
                self._results.update([call.call_id] if isinstance(event, CallRejected) else [])
            return
        if isinstance(event, CallRejected):
            self._show(call, event.input)
            self._show_result(call)
        elif call.parent is None and call.executor is not Executor.FRONTEND:
            self._show(call)

    def _settle_call(self, event: CallSettled) -> None:
        call = self._calls.get(event.call_id)
        if call is None or call.parent is not None or self._is_silent:
            return
        self._show(call)
        self._show_result(call)

    def _show(self, call: Call, input: object = None) -> None:
        if call.call_id in self._shown:
            return
        self._shown.add(call.call_id)
        self._close_text()
        args = encode(call.input if input is None else input).decode()
        self._events += (
            ToolCallStartEvent(call.call_id, call.tool, self._parent(call)),
            ToolCallArgsEvent(call.call_id, args),
            ToolCallEndEvent(call.call_id),
        )

    def _parent(self, call: Call) -> str:
        """The message of the call's step, or a new one if an earlier response had that: CopilotKit executes
        the calls of new messages alone."""
        known = self._texts.get(call.step)
        if known is None:
            own = self._step_id(call.step)
            known = own if call.step in self._own_steps else f"{own}:{call.call_id}"
            self._texts[call.step] = known
        return known

    def _show_result(self, call: Call) -> None:
        if call.call_id in self._results or call.outcome is None:
            return
        self._results.add(call.call_id)
        self._close_text()
        self._events.append(_result_event(call))

    def _park(self, event: RunParked) -> None:
        self._is_parked, self._is_kept = not event.is_kept, event.is_kept
        self._rests_since = self._at

    def _resume(self, event: RunResumed) -> None:
        self._is_parked = self._is_kept = False

    def _finish_run(self, event: RunFinished) -> None:
        self.ended_unread = not event.delivered
        if event.state is RunState.DONE:
            self._finish(SuccessOutcome())
        else:
            self._finish(CancelledOutcome() if self._name.is_versioned else None)

    def _break(self, event: RunFailed) -> None:
        self.ended_unread = not event.delivered
        self._fail(event.message, event.code)

    def _skip(self, event: Event) -> None:
        """The protocol has no event for it, or needs none."""

    # ------------------------------------------------------------------------------------------------- ends

    def _close_text(self) -> None:
        if self._open is not None:
            self._events += self._open.last()
            self._open = None

    def _finish(self, outcome: RunOutcome | None) -> None:
        usage = [TokenUsage(*self._usage)] if self._name.is_versioned and any(self._usage) else None
        self._close(RunFinishedEvent(self._name.thread_id, self._name.run_id, outcome, usage))

    def _fail(self, message: str, code: str) -> None:
        self._close(RunErrorEvent(message, code))

    def _close(self, last: RunFinishedEvent | RunErrorEvent) -> None:
        self.ended = True
        self._close_text()
        if self.is_followed:
            self._last = last
        else:
            self._events.append(last)

    def _flush(self) -> bytes:
        events, self._events = self._events, []
        return frames([encode(event) for event in events])

    # Any: each method takes its own type of event, which is the key
    _METHODS: ClassVar[dict[type[Event], Callable[[AguiEncoder, Any], None]]] = {
        TextAdded: _write_text,
        ReasoningAdded: _write_text,
        StepStarted: _start_step,
        StepFinished: _end_step,
        StepDiscarded: _discard_step,
        CallOpened: _open_call,
        CallRejected: _open_call,
        RunParked: _park,
        RunResumed: _resume,
        RunFinished: _finish_run,
        RunFailed: _break,
        **dict.fromkeys(CALL_MOVES, _skip),
        CallSettled: _settle_call,
        CallBegun: _skip,
        InputAdded: _skip,
        ModelDelayed: _skip,
        RunStarted: _skip,
        AnswerDelivered: _skip,
        # events of the thread, which no reader of a run gets
        **dict.fromkeys(THREAD_EVENTS, _skip),
    }
    """The method for each type of event. A test checks that all are here."""


class _OpenText(Struct, frozen=True):
    """A text or a piece of reasoning that is being written."""

    kind: type[TextAdded | ReasoningAdded]
    part: int
    message_id: str

    def first(self) -> list[AguiEvent]:
        if self.kind is TextAdded:
            return [TextStartEvent(self.message_id)]
        return [ReasoningStartEvent(self.message_id), ReasoningMessageStartEvent(self.message_id)]

    def content(self, text: str) -> AguiEvent:
        if self.kind is TextAdded:
            return TextContentEvent(self.message_id, text)
        return ReasoningContentEvent(self.message_id, text)

    def last(self) -> list[AguiEvent]:
        if self.kind is TextAdded:
            return [TextEndEvent(self.message_id)]
        return [ReasoningMessageEndEvent(self.message_id), ReasoningEndEvent(self.message_id)]


def encode_info() -> bytes:
    return encode(
        RuntimeInfo(RUNTIME_VERSION, "sse", {AGENT_ID: RuntimeAgent(AGENT_ID, "", "farhand", _CAPABILITIES)})
    )


_CAPABILITIES = {
    "transport": {"streaming": True, "resumable": True},
    "tools": {"supported": True, "parallelCalls": True, "clientProvided": True},
    "reasoning": {"supported": True, "streaming": True, "encrypted": False},
    "humanInTheLoop": {
        "supported": True,
        "approvals": True,
        "interrupts": True,
        "approveWithEdits": True,
    },
}


def encode_refused_run(name: RunName, error: FarhandError) -> bytes:
    """A whole response that says why the post has no meaning in this thread now."""
    version = PROTOCOL_VERSION if name.is_versioned else None
    started = RunStartedEvent(name.thread_id, name.run_id, version)
    return frames([encode(started), encode(RunErrorEvent(str(error), error.code))])


def encode_error(error: FarhandError, status: int) -> bytes:
    return encode(AguiRefusal(error.code, str(error)))


def encode_stop(*, is_stopped: bool) -> bytes:
    if not is_stopped:
        return encode(StopReply(False, "No such run is active in this thread."))
    return encode(StopReply(True, interrupt=RunErrorEvent("The run was stopped.", "STOPPED")))


def _result_event(call: Call) -> ToolCallResultEvent:
    assert call.outcome is not None, "only settled calls have results"
    text = seen_by_model(public(call.outcome)).text
    return ToolCallResultEvent(result_message_id(call.call_id), call.call_id, text)


def _is_for_page(call: Call) -> bool:
    """Whether a page may execute the call now."""
    return (
        call.executor is Executor.FRONTEND
        and call.parent is None
        and call.phase in (Phase.READY, Phase.TAKEN)
    )
