"""Encodes the events of a run as the frames of one response.

Each frame carries the position of a reader that has it. If one event has several frames, only the last one
moves the position: a reader cut between them may get the end of a block twice, but never text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.turns import Turn
from farhand.core.call import Phase
from farhand.core.event import (
    ApprovalAnswered,
    CallOpened,
    CallSettled,
    Event,
    InputAdded,
    ReasoningAdded,
    RunFailed,
    RunFinished,
    RunParked,
    RunResumed,
    StepStarted,
    TextAdded,
)
from farhand.core.position import START, Entry, Position, mark_of
from farhand.core.result import Accepted, Conflict, Receipt, Refused, Repeated, Unknown, Winner
from farhand.core.thread import text_of
from farhand.core.tool import Executor
from farhand.errors import FarhandError, ResultMismatch
from farhand.faces.awaiting.formats import ContentBlock, Raw, Style, Xml, error_tag
from farhand.faces.awaiting.shapes import (
    GAP,
    IGNORED,
    META,
    PAUSE,
    AwaitedTool,
    Fault,
    Format,
    Gap,
    Late,
    MetaInit,
    Mismatch,
    Refusal,
)
from farhand.wire.json_writer import encode
from farhand.wire.markup import attribute
from farhand.wire.sse import DONE, frame


class StreamStart(Struct, frozen=True, kw_only=True):
    """How a response begins, and which part of the run the reader already has.

    The reader has everything up to `after`. A pause up to `past` was there before the response: it ends the
    response only if nothing came after it.
    """

    run_id: str
    meta: MetaInit
    after: Position = START
    past: int = 0
    gap: str | None = None
    ignored: Sequence[str] = ()


def start_stream(
    turn: Turn, formatter: Format, model: str, *, ignored: Sequence[str] = (), gap: str | None = None
) -> StreamStart:
    asked = "" if turn.message is None else text_of(turn.message)
    return StreamStart(
        run_id=turn.run.run_id,
        meta=MetaInit(formatter, asked, turn.run.thread_id, model),
        # a new run is sent from its start
        after=START if turn.is_new else turn.after,
        past=turn.past,
        gap=gap,
        ignored=ignored,
    )


class AwaitingEncoder:
    """Encodes one response. It gets the run from its start, and writes no frame for what the reader has."""

    def __init__(self, opening: StreamStart) -> None:
        self.ended = False
        self._opening = opening
        self._mark = mark_of(opening.run_id)
        self._style: Style = (
            Xml() if opening.meta.format == "xml" else Raw(opening.run_id, opening.meta.model)
        )
        self._waiting = _Waiting()
        self._block: ContentBlock | None = None
        self._is_started = False
        self._at = opening.after
        self._end_of_block = opening.after

    def encode_events(self, entries: Iterable[Entry]) -> bytes:
        return b"".join([self._encoded(entry) for entry in entries])

    def _encoded(self, entry: Entry) -> bytes:
        if self.ended:
            return b""
        frames = self._begin()
        had, rest = _parted(entry, self._opening.after)
        if had is not None:
            self._catch_up(had)
        if rest is not None:
            frames += b"".join(self._frames(rest))
        return frames + self._end(entry)

    def close(self, *, cut: bool) -> bytes:
        self.ended = True
        ending = self._frame(error_tag("shutting_down", _CUT)) if cut else b""
        return self._begin() + ending + DONE

    def _begin(self) -> bytes:
        if self._is_started:
            return b""
        self._is_started = True
        opening = self._opening
        tags = [_tag(META, opening.meta)]
        if opening.gap is not None:
            tags.append(_tag(GAP, Gap(opening.gap)))
        if opening.ignored:
            tags.append(_tag(IGNORED, opening.ignored))
        return b"".join(map(self._frame, tags))

    def _catch_up(self, entry: Entry) -> None:
        """Follows the event without writing frames, to know which block is open."""
        at = self._at
        for _ in self._frames(entry):
            pass
        self._style.rest()
        self._at = at

    def _frames(self, entry: Entry) -> Iterator[bytes]:
        block = self._style.block_of(entry.event)
        stopped = self._block is not None and self._block != block
        if stopped and self._style.held:
            yield self._move(self._style.rest(), self._end_of_block)
        stops = [self._stop_block()] if stopped else []
        if block is None:
            texts = self._style.together([*stops, *self._style.whole(entry.event)])
            yield from self._last_moves([*texts, *self._control(entry)], entry.end)
            return
        if self._block is None:
            self._block = block
            texts = self._style.together([*stops, self._style.start(block)])
            yield from self._last_moves(texts, Position(entry.seq, entry.offset))
        if isinstance(entry.event, TextAdded | ReasoningAdded | InputAdded):
            yield self._move(self._style.add(block, entry.event.text), self._position_after(entry))
            self._end_of_block = entry.end

    def _stop_block(self) -> str:
        block, self._block = self._block, None
        assert block is not None, "only an open block is stopped"
        return self._style.stop(block)

    def _control(self, entry: Entry) -> list[str]:
        """Entries that a page must act on get frames of their own."""
        self._waiting.note(entry.event)
        if isinstance(entry.event, RunFailed):
            return [error_tag(entry.event.code, entry.event.message)]
        # a pause that was answered is not sent again: a page would run its tools a second time
        if entry.seq >= self._opening.past and self._waiting.pauses_now():
            return [_tag(PAUSE, self._waiting.tools)]
        return []

    def _last_moves(self, datas: list[str], to: Position) -> Iterator[bytes]:
        for data in datas[:-1]:
            yield self._frame(data)
        yield self._move(datas[-1] if datas else "", to)

    def _end(self, entry: Entry) -> bytes:
        over = isinstance(entry.event, RunFinished | RunFailed)
        if not over and not (self._waiting.paused and entry.seq >= self._opening.past):
            return b""
        self.ended = True
        return DONE

    def _position_after(self, entry: Entry) -> Position:
        """The reader's position after this piece, without the characters that are held back."""
        end, held = entry.end, self._style.held
        if not held:
            return end
        spoken = end.offset - entry.offset
        return Position(entry.seq, end.offset - held) if held <= spoken else self._at

    def _move(self, data: str, to: Position) -> bytes:
        self._at = to
        return self._frame(data)

    def _frame(self, data: str) -> bytes:
        return frame(data, id=f"{self._at}~{self._mark}") if data else b""


class _Waiting:
    """What the run waits for, from its events. Only frontend calls and approvals pause a response."""

    def __init__(self) -> None:
        self._asked: dict[str, AwaitedTool] = {}
        self._at_clients: set[str] = set()
        self._parked = False
        self._is_sent = False

    @property
    def tools(self) -> list[AwaitedTool]:
        return list(self._asked.values())

    @property
    def paused(self) -> bool:
        return self._parked and bool(self._asked) and not self._at_clients

    def pauses_now(self) -> bool:
        """True once for each pause."""
        if self._is_sent or not self.paused:
            return False
        self._is_sent = True
        return True

    def note(self, event: Event) -> None:
        match event:
            case CallOpened():
                asks = event.phase is Phase.ASKING
                self._open(event.executor, AwaitedTool(event.call_id, event.tool, event.input, asks))
            case ApprovalAnswered(call_id=call_id, tool=tool, input=input, approved=True):
                self._open(event.executor, AwaitedTool(call_id, tool, input))
            case CallSettled(call_id=call_id):
                self._asked.pop(call_id, None)
                self._at_clients.discard(call_id)
                if not self._asked:
                    # the tool that asked continues without an event, and may ask again
                    self._parked = self._is_sent = False
            case RunParked():
                self._parked = True
            case RunResumed() | StepStarted():
                self._parked = self._is_sent = False
            case _:
                pass

    def _open(self, executor: Executor, tool: AwaitedTool) -> None:
        if tool.needs_approval or executor is Executor.FRONTEND:
            self._asked[tool.tool_use_id] = tool
            return
        self._asked.pop(tool.tool_use_id, None)
        if executor is Executor.CLIENT:
            self._at_clients.add(tool.tool_use_id)


_CUT = (
    "The server is restarting. Nothing is lost: continue with GET /agent/{agent_uuid}/stream "
    "and Last-Event-ID."
)


def _parted(entry: Entry, at: Position) -> tuple[Entry | None, Entry | None]:
    """The part of the entry that the reader has, and the rest."""
    if entry.end <= at:
        return entry, None
    event = entry.event
    if entry.seq > at.seq or not isinstance(event, TextAdded | ReasoningAdded | InputAdded):
        return None, entry
    cut = at.offset - entry.offset
    had = replace(entry, event=replace(event, text=event.text[:cut]))
    return had, replace(entry, offset=at.offset, event=replace(event, text=event.text[cut:]))


def _tag(name: str, data: object) -> str:
    return f'<{name} data="{attribute(msgspec.to_builtins(data))}"></{name}>'


def encode_error(error: FarhandError, status: int) -> bytes:
    detail = None
    if isinstance(error, ResultMismatch):
        detail = Mismatch(sorted(error.expected), error.missing, error.unexpected, error.doubled)
    return encode(Refusal(Fault(error.code, str(error), detail)))


def encode_refusal(receipts: Iterable[tuple[str, Receipt]]) -> tuple[int, bytes]:
    """Nothing was accepted: the status, and the reason for each call id."""
    late = [_late(call_id, receipt) for call_id, receipt in receipts]
    codes = {each.code for each in late}
    code = next(code for code in _REFUSALS if code in codes)
    status, message = _REFUSALS[code]
    return status, encode(Refusal(Fault(code, message, late)))


_REFUSALS = {
    "not_approved": (
        409,
        'A call waits for an approval: send "approved": true or false with its result. Nothing was applied.',
    ),
    "conflict": (409, "The call already has a different result, which it keeps."),
    "repeated": (
        409,
        "These results were already accepted, and the run continued with them. Read its stream.",
    ),
    "expired": (410, "The call expired before this result arrived; the run continued without it."),
    "cancelled": (410, "The call was cancelled before this result arrived."),
    "unknown": (404, "There is no such call."),
}
"""In order of precedence: the first code that applies to one of the entries decides."""


def _late(call_id: str, receipt: Receipt) -> Late:
    match receipt:
        case Repeated():
            return Late(call_id, "repeated")
        case Conflict(winner=winner):
            return _of_winner(call_id, "conflict", winner)
        case Refused(reason=reason, winner=winner):
            return _of_winner(call_id, reason, winner)
        case Unknown() | Accepted():
            return Late(call_id, "unknown")


def _of_winner(call_id: str, code: str, winner: Winner | None) -> Late:
    if winner is None:
        return Late(call_id, code)
    return Late(call_id, code, winner.kind, winner.digest)
