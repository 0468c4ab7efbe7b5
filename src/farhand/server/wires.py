"""How each face tells a call, for the Inspector: the faces' own encoders, given the journal of its run.

Faces do not know each other, so it is here that they meet.
"""

from __future__ import annotations

from farhand.clients.inbox import Ended, Offered
from farhand.core.event import ApprovalAnswered, CallOpened, CallSettled, Entry, Event, News, RunParked
from farhand.core.run import Run
from farhand.core.tool import Executor
from farhand.faces.awaiting.encode import Encoder as AwaitingEncoder
from farhand.faces.awaiting.encode import Opening
from farhand.faces.awaiting.routes import HEADERS as AWAITING_HEADERS
from farhand.faces.awaiting.shapes import Format, MetaInit
from farhand.faces.base import Encoder
from farhand.faces.client_tools.encode import encode_items
from farhand.faces.client_tools.routes import HEADERS as CLIENT_TOOLS_HEADERS
from farhand.faces.events.encode import encode_news
from farhand.faces.events.routes import HEADERS as EVENTS_HEADERS
from farhand.faces.inspector.wires import EncodeCall, Frame, Told, Wire
from farhand.faces.ui_stream.encode import Chunks
from farhand.faces.ui_stream.encode import Encoder as UiStreamEncoder
from farhand.faces.ui_stream.routes import HEADERS as UI_STREAM_HEADERS


def wires(model: str) -> tuple[Wire, ...]:
    """`model` is the name that the awaiting face tells."""
    return (
        Wire("ui-stream", "POST /api/chat", UI_STREAM_HEADERS, _ui_stream),
        Wire("awaiting, xml", "POST /agent/run", AWAITING_HEADERS, _awaiting("xml", model)),
        Wire("awaiting, raw", "POST /agent/run", AWAITING_HEADERS, _awaiting("raw", model)),
        Wire("client-tools", "GET /client-tools/pending/{clientID}", CLIENT_TOOLS_HEADERS, _client_tools),
        Wire("events", "GET /api/events", EVENTS_HEADERS, _events),
    )


def _ui_stream(told: Told) -> list[Frame]:
    if told.run is None:
        return []
    return _frames(UiStreamEncoder(Chunks(told.run.run_id), with_ids=True), told)


def _awaiting(style: Format, model: str) -> EncodeCall:
    def encode(told: Told) -> list[Frame]:
        if told.run is None:
            return []
        meta = MetaInit(format=style, user_query="", agent_uuid=told.run.thread_id, model=model)
        return _frames(AwaitingEncoder(Opening(run_id=told.run.run_id, meta=meta)), told)

    return encode


def _frames(encoder: Encoder, told: Told) -> list[Frame]:
    """As a reader gets them who stays through every pause."""
    frames = []
    for entry in told.entries:
        if isinstance(entry.event, RunParked):
            continue
        text = encoder.encode_events((entry,))
        if text and _is_about(entry, told.call.call_id):
            frames.append(Frame(entry.seq, text))
    return frames


def _events(told: Told) -> list[Frame]:
    return [
        Frame(entry.seq, encode_news(_news(entry, told.run), told.call))
        for entry in told.entries
        if _is_about(entry, told.call.call_id) and not hasattr(entry.event, "text")
    ]


def _news(entry: Entry, run: Run | None) -> News:
    """The number in a feed is the owner's own; here the journal's stands for it."""
    known = (None, None) if run is None else (run.thread_id, run.run_id)
    return News(entry.seq, entry.at, entry.event, *known)


def _client_tools(told: Told) -> list[Frame]:
    call = told.call
    if call.executor is not Executor.CLIENT:
        return []
    offered, ended = encode_items([Offered(call)]), encode_items([Ended(call)])
    if told.run is None:
        return [Frame(None, offered), *([] if call.outcome is None else [Frame(None, ended)])]
    about = [entry for entry in told.entries if _is_about(entry, call.call_id)]
    return [
        Frame(entry.seq, ended if isinstance(entry.event, CallSettled) else offered)
        for entry in about
        if isinstance(entry.event, CallSettled) or _is_offer(entry.event)
    ]


def _is_offer(event: Event) -> bool:
    match event:
        case CallOpened(approval_id=approval_id):
            return approval_id is None
        case ApprovalAnswered(approved=approved):
            return approved
        case _:
            return False


def _is_about(entry: Entry, call_id: str) -> bool:
    return getattr(entry.event, "call_id", None) == call_id
