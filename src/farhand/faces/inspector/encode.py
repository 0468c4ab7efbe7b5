"""Runs, calls, clients and tools in the words of the inspector's wire. Pure; everything is masked here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import assert_never

from msgspec import UNSET, Struct, UnsetType

from farhand.core.call import Call, Phase
from farhand.core.client import Client
from farhand.core.event import Entry, Happening, News, RunParked
from farhand.core.outcome import (
    Denied,
    Failure,
    Success,
    digest,
    kind_of,
    reason_of,
)
from farhand.core.result import Accepted, Conflict, Receipt, Refused, Repeated, Unknown
from farhand.core.run import Run
from farhand.core.tool import Executor, Tool
from farhand.errors import FarhandError
from farhand.faces.inspector.curl import curl_of
from farhand.faces.inspector.journal import masked_call, masked_entries, masked_news
from farhand.faces.inspector.life import Sentence, life_of
from farhand.faces.inspector.masks import masked_text
from farhand.faces.inspector.shapes import (
    CallShape,
    ClientShape,
    EventPage,
    EventShape,
    FiguresShape,
    FrameShape,
    ReceiptShape,
    RowShape,
    RunPage,
    RunRow,
    RunShape,
    SegmentShape,
    SentenceShape,
    ToolShape,
    Trouble,
    WaitingShape,
    WireShape,
)
from farhand.faces.inspector.spans import Row, figures_of, rows_of
from farhand.faces.inspector.told import plain, type_of, words_of
from farhand.faces.inspector.wires import Told, Wire
from farhand.wire.json_out import encode


class Around(Struct, frozen=True):
    """What the server says of itself beside a run."""

    model: str
    store: str
    now: float


def run_row(run: Run, title: str, calls: Sequence[Call], now: float) -> RunRow:
    waiting = [call for call in calls if call.blocks]
    unhappy = [call for call in calls if call.outcome is not None and not isinstance(call.outcome, Success)]
    return RunRow(
        run_id=run.run_id,
        thread_id=run.thread_id,
        title=masked_text(title),
        state=state_of(run),
        started_at=_time(run.started_at),
        ended_at=None if run.ended_at is None else _time(run.ended_at),
        seconds=_seconds(run, now),
        steps=run.step,
        calls=len(calls),
        waiting=len(waiting),
        error=None if run.error is None else masked_text(run.error),
        trouble=_trouble(unhappy[-1]) if unhappy else UNSET,
    )


def encode_page(rows: list[RunRow], following: str | None) -> bytes:
    return encode(RunPage(rows, following if following is not None else UNSET))


def encode_run(run: Run, row: RunRow, entries: Sequence[Entry], around: Around) -> bytes:
    rows = rows_of(entries, run.started_at)
    figures = figures_of(rows, row.seconds)
    return encode(
        RunShape(
            run=row,
            figures=FiguresShape(**{name: getattr(figures, name) for name in figures.__struct_fields__}),
            rows=[_row(each) for each in rows],
            now=row.seconds,
            kept=bool(entries),
            parks=sum(isinstance(entry.event, RunParked) for entry in entries),
            model=around.model,
            store=around.store,
        )
    )


def encode_events(run: Run, entries: Sequence[Entry], limit: int) -> bytes:
    """The last ones. Text that came in pieces is one event."""
    tools: dict[str, str] = {}
    events = []
    for entry in masked_entries(entries):
        event = _event(entry.event, entry.seq, tools)
        event.at = round(max(0.0, entry.at - run.started_at), 3)
        events.append(event)
    return encode(EventPage(events[-limit:], len(events)))


def encode_feed(page: Iterable[News], total: int) -> bytes:
    tools: dict[str, str] = {}
    events = []
    for news in map(masked_news, page):
        event = _event(news.event, news.no, tools)
        event.happened_at = _time(news.at)
        event.run_id = news.run_id if news.run_id is not None else UNSET
        event.thread_id = news.thread_id if news.thread_id is not None else UNSET
        events.append(event)
    return encode(EventPage(events, total))


def encode_call(
    call: Call, run: Run | None, entries: Sequence[Entry], wires: Iterable[Wire], url: str
) -> bytes:
    """`url` is where the server was reached, for the command."""
    hidden = masked_call(call)
    journal = masked_entries(entries)
    began = call.opened_at if run is None else run.started_at
    told = Told(hidden, run, journal)
    approval = hidden.approval
    asks = approval is not None and call.phase is Phase.ASKING
    return encode(
        CallShape(
            call_id=call.call_id,
            tool=call.tool,
            executor=call.executor.value,
            phase=call.phase.value,
            thread_id=call.thread_id,
            run_id=call.run_id,
            step=call.step,
            client_id=call.client_id,
            holder=None if call.take is None else call.take.holder,
            card=call.card,
            deadline=None if call.deadline is None else _time(call.deadline),
            approval_id=approval.approval_id if asks and approval is not None else None,
            input=hidden.input,
            asked_input=None if approval is None else approval.asked_input,
            outcome=None if hidden.outcome is None else plain(hidden.outcome),
            digest=call.digest,
            life=[_sentence(each) for each in life_of(hidden, journal, began=began)],
            wires=[_wire(wire, told) for wire in wires],
            curl=curl_of(hidden, hidden.outcome, url),
            again=may_be_sent_again(call),
        )
    )


def may_be_sent_again(call: Call) -> bool:
    """Whether the record still has what was sent: an output that broke its schema was replaced by a reason,
    and where nobody answered there is nothing."""
    if isinstance(call.outcome, Denied):
        return call.approval is not None and call.approval.answer is not None
    far = call.executor is not Executor.SERVER and isinstance(call.outcome, Success | Failure)
    return far and digest(call.outcome) == call.digest


def encode_receipt(receipt: Receipt) -> bytes:
    match receipt:
        case Repeated():
            told = "The same answer again: nothing changed."
        case Accepted():
            told = "The answer was taken."
        case Conflict(winner=winner):
            told = f"Another answer was taken before ({winner.kind})."
        case Refused(reason=reason):
            told = f"Not taken: {reason.replace('_', ' ')}."
        case Unknown():
            told = "There is no such call."
        case _:
            assert_never(receipt)
    return encode(ReceiptShape(type(receipt).__name__.lower(), told))


def encode_clients(clients: Iterable[tuple[Client, bool, float | None, int]]) -> bytes:
    shown = [
        ClientShape(
            client_id=client.client_id,
            tools=[tool.name for tool in client.tools],
            here=here,
            away=None if away is None else round(away, 1),
            grace=client.grace_sec,
            registered_at=_time(client.registered_at),
            open_calls=asked,
        )
        for client, here, away, asked in clients
    ]
    return encode({"clients": shown})


def encode_tools(tools: Iterable[Tool]) -> bytes:
    shown = [
        ToolShape(
            name=tool.name,
            description=tool.description,
            executor=tool.executor.value,
            client_id=tool.client_id,
            asks=tool.may_ask,
            card=tool.card,
            timeout=tool.timeout_sec,
            version=tool.version,
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
        )
        for tool in tools
    ]
    return encode({"tools": shown})


def encode_inbox(calls: Iterable[tuple[Call, str]]) -> bytes:
    return encode({"calls": [_waiting(masked_call(call), title) for call, title in calls]})


def encode_error(error: FarhandError, status: int) -> bytes:
    return encode({"error": {"code": error.code, "message": str(error)}})


def state_of(run: Run) -> str:
    if not run.active:
        return run.state.value
    if run.waits:
        return "parked" if run.parked else "waiting"
    return "running"


def _seconds(run: Run, now: float) -> float:
    return round(max(0.0, (run.ended_at or now) - run.started_at), 3)


def _trouble(call: Call) -> Trouble:
    assert call.outcome is not None, "only ended calls are in trouble"
    return Trouble(call.tool, kind_of(call.outcome), masked_text(reason_of(call.outcome)))


def _row(row: Row) -> RowShape:
    return RowShape(
        step=row.step,
        start=row.start,
        end=_or_unset(row.end),
        segments=[
            SegmentShape(each.kind.value, each.start, _or_unset(each.end), each.lost) for each in row.segments
        ],
        call_id=row.call_id or UNSET,
        tool=row.tool or UNSET,
        executor=row.executor.value if row.executor is not None else UNSET,
        card=row.card or UNSET,
        outcome=row.outcome or UNSET,
    )


def _event(event: Happening, number: int, tools: dict[str, str]) -> EventShape:
    """`tools` learns the names of calls as they are told."""
    call_id, tool = getattr(event, "call_id", None), getattr(event, "tool", None)
    if call_id and tool:
        tools[call_id] = tool
    shape = EventShape(number, type_of(event), words_of(event, tools), plain(event))
    shape.call_id = call_id or UNSET
    return shape


def _sentence(sentence: Sentence) -> SentenceShape:
    return SentenceShape(sentence.title, sentence.detail, sentence.tone, _or_unset(sentence.at))


def _wire(wire: Wire, told: Told) -> WireShape:
    frames = [FrameShape(frame.seq, frame.text.decode(errors="replace")) for frame in wire.encode(told)]
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in wire.headers]
    return WireShape(wire.name, wire.request, headers, frames)


def _waiting(call: Call, title: str) -> WaitingShape:
    asks = call.approval is not None and call.phase is Phase.ASKING
    return WaitingShape(
        call_id=call.call_id,
        thread_id=call.thread_id,
        run_id=call.run_id,
        title=masked_text(title),
        tool=call.tool,
        executor=call.executor.value,
        phase=call.phase.value,
        input=call.input,
        opened_at=_time(call.opened_at),
        deadline=None if call.deadline is None else _time(call.deadline),
        approval_id=call.approval.approval_id if asks and call.approval is not None else None,
        holder=None if call.take is None else call.take.holder,
    )


def _or_unset(value: float | None) -> float | UnsetType:
    return UNSET if value is None else value


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
