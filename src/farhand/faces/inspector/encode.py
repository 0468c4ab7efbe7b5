"""Encodes runs, calls, clients and tools for the Inspector. Pure; everything is redacted here."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, assert_never

from msgspec import UNSET, Struct, UnsetType

from farhand.agent.rerun import NeedsConfirmation, Rerun
from farhand.core.call import Call, Phase
from farhand.core.client import Client
from farhand.core.event import RunParked
from farhand.core.outcome import (
    Cancelled,
    Denied,
    Failure,
    Outcome,
    Success,
    TimedOut,
    digest,
    kind_of,
    reason_of,
)
from farhand.core.position import Entry, Happening, News
from farhand.core.result import Accepted, Conflict, Receipt, Refused, Repeated, Unknown
from farhand.core.run import Run
from farhand.core.tool import Executor, Tool
from farhand.faces.base import format_time
from farhand.faces.event_fields import event_type, struct_fields
from farhand.faces.inspector.call_timeline import Mark, timeline_of
from farhand.faces.inspector.event_text import event_json, event_line
from farhand.faces.inspector.redaction import redact_call, redact_entries, redact_news, redact_text
from farhand.faces.inspector.shapes import (
    InspectedCall,
    InspectedClient,
    InspectedClients,
    InspectedEvent,
    InspectedEvents,
    InspectedFrame,
    InspectedInbox,
    InspectedMark,
    InspectedReceipt,
    InspectedRerun,
    InspectedRow,
    InspectedRun,
    InspectedRunRow,
    InspectedRuns,
    InspectedTool,
    InspectedTools,
    InspectedTrouble,
    InspectedUsage,
    InspectedWaiting,
    InspectedWire,
)
from farhand.faces.inspector.spans import span_rows, split_time
from farhand.wire.http import Header
from farhand.wire.json_writer import encode

ModelPrice: TypeAlias = tuple[float, float]
"""Dollars for a million tokens in and out."""


class RecordedCall(Struct, frozen=True):
    """A call, its run (if it has one) and the run's journal, all of it redacted."""

    call: Call
    run: Run | None
    entries: Sequence[Entry]


class CallFrame(Struct, frozen=True):
    """`seq` is the journal entry of the frame; None if there is no journal."""

    seq: int | None
    text: bytes


EncodeCall: TypeAlias = Callable[[RecordedCall], list[CallFrame]]


class WireEncoder(Struct, frozen=True):
    """How another face encodes a call: `request` names the request, `headers` are those of its response."""

    name: str
    request: str
    headers: tuple[Header, ...]
    encode: EncodeCall


class RecordedRun(Struct, frozen=True, kw_only=True):
    """A run with its journal, and what was observed outside the journal."""

    run: Run
    row: InspectedRunRow
    entries: Sequence[Entry]
    marks: Sequence[Mark] = ()
    prompt: str | None = None


def run_row(run: Run, title: str, calls: Sequence[Call], now: float) -> InspectedRunRow:
    waiting = [call for call in calls if _is_question(call)]
    unhappy = [call for call in calls if call.outcome is not None and not isinstance(call.outcome, Success)]
    return InspectedRunRow(
        run_id=run.run_id,
        thread_id=run.thread_id,
        title=redact_text(title),
        state=run_state(run, calls),
        started_at=format_time(run.started_at),
        ended_at=None if run.ended_at is None else format_time(run.ended_at),
        seconds=round(max(0.0, (run.ended_at or now) - run.started_at), 3),
        steps=max((run.step, *(call.step for call in calls))),
        calls=len(calls),
        waiting=len(waiting),
        error=None if run.error is None else redact_text(run.error),
        trouble=_trouble(unhappy[-1]) if unhappy else UNSET,
    )


def _is_question(call: Call) -> bool:
    """Whether a person has to answer it. A call that a program or a browser has taken is running."""
    return call.phase is Phase.ASKING or (call.phase is Phase.READY and call.executor is Executor.FRONTEND)


def encode_page(rows: list[InspectedRunRow], following: str | None) -> bytes:
    return encode(InspectedRuns(rows, following if following is not None else UNSET))


def encode_run(recorded: RecordedRun, *, model: str, store: str, prices: Mapping[str, ModelPrice]) -> bytes:
    """`prices` are by the whole name of a model, or without its provider."""
    price = prices.get(model) or prices.get(model.partition(":")[2])
    row, marks = recorded.row, recorded.marks
    rows = span_rows(recorded.entries, recorded.run.started_at)
    for each in rows:
        each.title = each.title if each.title is UNSET else redact_text(each.title)
        each.cost = _cost(each, price)
    return encode(
        InspectedRun(
            run=row,
            figures=split_time(rows, row.seconds),
            rows=rows,
            now=row.seconds,
            kept=bool(recorded.entries),
            parks=sum(isinstance(entry.event, RunParked) for entry in recorded.entries),
            model=model,
            store=store,
            marks=[_mark(mark, recorded.run.started_at) for mark in marks],
            reconnects=sum(mark.kind == "resumed" for mark in marks),
            repeats=sum(mark.call_id is not None for mark in marks),
            usage=_usage(rows, price),
            prompt=None if recorded.prompt is None else redact_text(recorded.prompt),
        )
    )


def encode_events(run: Run, entries: Sequence[Entry], limit: int) -> bytes:
    """The last `limit` events. Text that came in pieces is one event."""
    tools: dict[str, str] = {}
    events = []
    for entry in redact_entries(entries):
        event = _event(entry.event, entry.seq, tools, run.thread_id)
        event.at = round(max(0.0, entry.at - run.started_at), 3)
        events.append(event)
    return encode(InspectedEvents(events[-limit:], len(events)))


def encode_feed(page: Iterable[News], total: int) -> bytes:
    tools: dict[str, str] = {}
    events = []
    for news in map(redact_news, page):
        event = _event(news.event, news.no, tools, news.thread_id)
        event.happened_at = format_time(news.at)
        event.run_id = news.run_id if news.run_id is not None else UNSET
        event.thread_id = news.thread_id if news.thread_id is not None else UNSET
        events.append(event)
    return encode(InspectedEvents(events, total))


def encode_call(
    call: Call,
    run: Run | None,
    entries: Sequence[Entry],
    wires: Iterable[WireEncoder],
    url: str,
    marks: Sequence[Mark] = (),
) -> bytes:
    """`url` is the address of the server, for the curl command; `marks` are those of the run."""
    hidden = redact_call(call)
    journal = redact_entries(entries)
    began = call.opened_at if run is None else run.started_at
    recorded = RecordedCall(hidden, run, journal)
    approval = hidden.approval
    asks = approval is not None and call.phase is Phase.ASKING
    return encode(
        InspectedCall(
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
            deadline=None if call.deadline is None else format_time(call.deadline),
            approval_id=approval.approval_id if asks and approval is not None else None,
            input=hidden.input,
            asked_input=None if approval is None else approval.asked_input,
            outcome=None if hidden.outcome is None else struct_fields(hidden.outcome),
            digest=call.digest,
            life=timeline_of(hidden, journal, marks, began=began),
            wires=[_wire(wire, recorded) for wire in wires],
            curl=curl_of(hidden, hidden.outcome, url),
            again=may_be_sent_again(call),
        )
    )


def may_be_sent_again(call: Call) -> bool:
    """Whether the record still has what was sent: an output that did not fit its schema was replaced by a
    reason, and without an answer there is nothing to send."""
    if isinstance(call.outcome, Denied):
        return call.approval is not None and call.approval.answer is not None
    far = call.executor is not Executor.SERVER and isinstance(call.outcome, Success | Failure)
    return far and digest(call.outcome) == call.digest


def encode_receipt(receipt: Receipt) -> bytes:
    match receipt:
        case Repeated():
            text = "The same answer again: nothing changed."
        case Accepted():
            text = "The answer was accepted."
        case Conflict(winner=winner):
            text = f"A different answer was accepted before ({winner.kind})."
        case Refused(reason=reason):
            text = f"Refused: {reason.replace('_', ' ')}."
        case Unknown():
            text = "There is no such call."
        case _:
            assert_never(receipt)
    return encode(InspectedReceipt(type(receipt).__name__.lower(), text))


def encode_rerun(rerun: Rerun | NeedsConfirmation) -> bytes:
    if isinstance(rerun, NeedsConfirmation):
        return encode(InspectedRerun(repeats=list(rerun.tools)))
    return encode(InspectedRerun(rerun.thread_id, rerun.run_id))


def encode_clients(clients: Iterable[tuple[Client, bool, float | None, int]]) -> bytes:
    shown = [
        InspectedClient(
            client_id=client.client_id,
            tools=[tool.name for tool in client.tools],
            here=here,
            away=None if away is None else round(away, 1),
            grace=client.grace_sec,
            registered_at=format_time(client.registered_at),
            open_calls=asked,
        )
        for client, here, away, asked in clients
    ]
    return encode(InspectedClients(shown))


def encode_tools(tools: Iterable[Tool]) -> bytes:
    shown = [
        InspectedTool(
            name=tool.name,
            description=tool.description,
            executor=tool.executor.value,
            client_id=tool.client_id,
            asks=tool.may_ask,
            card=tool.card,
            timeout=tool.timeout_sec,
            version=tool.version,
            input_schema=tool.input_schema,
            output_schema=tool.shown_output_schema,
        )
        for tool in tools
    ]
    return encode(InspectedTools(shown))


def encode_inbox(calls: Iterable[tuple[Call, str]]) -> bytes:
    return encode(InspectedInbox([_waiting(redact_call(call), title) for call, title in calls]))


def run_state(run: Run, calls: Sequence[Call]) -> str:
    if not run.active:
        return run.state.value
    if run.waits:
        return "parked" if run.rests else "waiting"
    # the row of a held run is written when the run continues: until then its calls say that it waits
    still_open = [call for call in calls if call.phase is not Phase.SETTLED]
    return "waiting" if still_open and all(call.blocks for call in still_open) else "running"


def _trouble(call: Call) -> InspectedTrouble:
    assert call.outcome is not None, "only settled calls have trouble"
    return InspectedTrouble(call.tool, kind_of(call.outcome), redact_text(reason_of(call.outcome)))


def _mark(mark: Mark, began: float) -> InspectedMark:
    return InspectedMark(mark.kind, round(max(0.0, mark.at - began), 3), mark.call_id or UNSET)


def _usage(rows: Sequence[InspectedRow], price: ModelPrice | None) -> InspectedUsage | None:
    read = [row.input_tokens for row in rows if row.input_tokens is not UNSET]
    written = [row.output_tokens for row in rows if row.output_tokens is not UNSET]
    if not read:
        return None
    return InspectedUsage(sum(read), sum(written), _dollars(price, sum(read), sum(written)))


def _cost(row: InspectedRow, price: ModelPrice | None) -> float | UnsetType:
    if row.input_tokens is UNSET or row.output_tokens is UNSET:
        return UNSET
    cost = _dollars(price, row.input_tokens, row.output_tokens)
    return UNSET if cost is None else cost


def _dollars(price: ModelPrice | None, input_tokens: int, output_tokens: int) -> float | None:
    if price is None:
        return None
    return round((input_tokens * price[0] + output_tokens * price[1]) / 1_000_000, 6)


def _event(event: Happening, number: int, tools: dict[str, str], thread_id: str | None) -> InspectedEvent:
    """`tools` collects the tool of each call id."""
    call_id, tool = getattr(event, "call_id", None), getattr(event, "tool", None)
    if call_id and tool:
        tools[call_id] = tool
    shape = InspectedEvent(
        number, event_type(event), event_line(event, tools, thread_id), event_json(event, thread_id)
    )
    shape.call_id = call_id or UNSET
    return shape


def _wire(wire: WireEncoder, recorded: RecordedCall) -> InspectedWire:
    frames = [
        InspectedFrame(frame.seq, frame.text.decode(errors="replace")) for frame in wire.encode(recorded)
    ]
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in wire.headers]
    return InspectedWire(wire.name, wire.request, headers, frames)


def _waiting(call: Call, title: str) -> InspectedWaiting:
    asks = call.approval is not None and call.phase is Phase.ASKING
    return InspectedWaiting(
        call_id=call.call_id,
        thread_id=call.thread_id,
        run_id=call.run_id,
        title=redact_text(title),
        tool=call.tool,
        executor=call.executor.value,
        phase=call.phase.value,
        input=call.input,
        opened_at=format_time(call.opened_at),
        deadline=None if call.deadline is None else format_time(call.deadline),
        approval_id=call.approval.approval_id if asks and call.approval is not None else None,
        holder=None if call.take is None else call.take.holder,
    )


def curl_of(call: Call, outcome: Outcome | None, address: str) -> str:
    """A command that sends the call's answer again; the token is a variable, never written out."""
    if call.approval is not None and (call.phase is Phase.ASKING or isinstance(outcome, Denied)):
        return _post(f"{address}/api/tools/approve", _approval(call.approval.approval_id, outcome))
    if call.executor is Executor.SERVER:
        # only the server can answer it, so the command reads its record
        return f"curl {shlex.quote(f'{address}/api/inspect/calls/{call.call_id}')} {_SIGN_IN}"
    return _post(f"{address}/api/tools/ack", _ack(call.call_id, outcome))


_SIGN_IN = '-H "Authorization: Bearer $FARHAND_TOKEN"'


def _approval(approval_id: str, outcome: Outcome | None) -> dict[str, object]:
    body: dict[str, object] = {"approvalId": approval_id, "approved": not isinstance(outcome, Denied)}
    return {**body, "reason": outcome.reason} if isinstance(outcome, Denied) and outcome.reason else body


def _ack(call_id: str, outcome: Outcome | None) -> dict[str, object]:
    ack: dict[str, object] = {"toolCallId": call_id, "status": "success"}
    match outcome:
        case Success(output=output):
            return {**ack, "output": output}
        case Failure(error=error):
            return {**ack, "status": "failed", "errorText": error}
        case None | TimedOut() | Cancelled() | Denied():
            # nobody has answered: the reader fills in the answer
            return {**ack, "output": None}


def _post(url: str, body: dict[str, object]) -> str:
    return (
        f"curl {shlex.quote(url)} {_SIGN_IN} \\\n  -H 'Content-Type: application/json' \\\n"
        f"  -d {shlex.quote(encode(body).decode())}"
    )
