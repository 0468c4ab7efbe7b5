"""Hand-written journals, and the responses that are made from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from farhand.core.approval import Approval
from farhand.core.event import CallOpened, CallSettled, Event
from farhand.core.outcome import Outcome, Success
from farhand.core.position import START, Entry, Position
from farhand.core.tool import Executor
from farhand.faces.awaiting.encode import AwaitingEncoder, StreamStart
from farhand.faces.awaiting.shapes import Format, MetaInit
from farhand.wire import sse

CALL = "call_" + "a" * 32
OTHER = "call_" + "b" * 32


def journal(*events: Event) -> list[Entry]:
    return [Entry(seq, event, 0.0) for seq, event in enumerate(events, start=1)]


def encoder(
    style: Format = "xml",
    *,
    after: Position = START,
    past: int = 0,
    gap: str | None = None,
    ignored: Sequence[str] = (),
) -> AwaitingEncoder:
    meta = MetaInit(style, "hi", "t1", "scripted")
    return AwaitingEncoder(
        StreamStart(run_id="run_1", meta=meta, after=after, past=past, gap=gap, ignored=ignored)
    )


def frames_of(encoder: AwaitingEncoder, entries: Iterable[Entry]) -> list[sse.Event]:
    return list(sse.parse(encoder.encode_events((entry,)) for entry in entries))


def datas_of(encoder: AwaitingEncoder, entries: Iterable[Entry]) -> list[str]:
    """Without the first frame, which every response has."""
    return [each.data for each in frames_of(encoder, entries)][1:]


def opened(
    call_id: str = CALL,
    tool: str = "user_confirm",
    *,
    executor: Executor = Executor.FRONTEND,
    input: dict[str, object] | None = None,
    asking: bool = False,
) -> CallOpened:
    return CallOpened(
        call_id=call_id,
        tool=tool,
        tool_version="v1",
        executor=executor,
        input=input or {},
        approval=Approval(approval_id="apr_1", digest="d") if asking else None,
    )


def settled(
    call_id: str = CALL,
    outcome: Outcome | None = None,
    *,
    tool: str = "user_confirm",
    executor: Executor = Executor.FRONTEND,
) -> CallSettled:
    return CallSettled(
        call_id=call_id, tool=tool, executor=executor, outcome=outcome or Success("yes"), digest="d"
    )
