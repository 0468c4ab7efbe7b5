"""What the Inspector needs of the server: a call as each face sends it, by the faces' own encoders, applied
to the run's journal.

Faces must not import each other, so they are combined here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version

from farhand.agent.service import AgentService
from farhand.clients.inbox import EndedCall, OfferedCall
from farhand.core.event import ApprovalAnswered, CallOpened, CallSettled, Event, RunParked
from farhand.core.position import Entry, News
from farhand.core.run import Run
from farhand.core.tool import Executor
from farhand.faces.agui.encode import AguiEncoder, RunName
from farhand.faces.awaiting.encode import AwaitingEncoder, StreamStart
from farhand.faces.awaiting.shapes import Format, MetaInit
from farhand.faces.base import STREAM_HEADERS, RunEncoder
from farhand.faces.client_tools.encode import encode_items
from farhand.faces.events import encode_news
from farhand.faces.inspector.encode import CallFrame, EncodeCall, RecordedCall, WireEncoder
from farhand.faces.inspector.routes import ServerDetails
from farhand.faces.ui_stream.encode import Chunks, UiStreamEncoder
from farhand.faces.ui_stream.routes import HEADERS as UI_STREAM_HEADERS
from farhand.server.copy_as_test import write_test


def server_details(service: AgentService, prices: Mapping[str, tuple[float, float]]) -> ServerDetails:
    store = type(service.log.store).__name__.removesuffix("Store").lower()
    return ServerDetails(wires(service.spec.model.name), store, _version(), write_test, prices)


@cache
def _version() -> str:
    # read from the files of the installation
    return version("farhand")


def wires(model: str) -> tuple[WireEncoder, ...]:
    """`model` is the name that the awaiting face reports."""
    return (
        WireEncoder("ui-stream", "POST /api/chat", UI_STREAM_HEADERS, _ui_stream),
        WireEncoder("awaiting, xml", "POST /agent/run", STREAM_HEADERS, _awaiting("xml", model)),
        WireEncoder("awaiting, raw", "POST /agent/run", STREAM_HEADERS, _awaiting("raw", model)),
        WireEncoder("ag-ui", "POST /ag-ui", STREAM_HEADERS, _agui),
        WireEncoder("client-tools", "GET /client-tools/pending/{clientID}", STREAM_HEADERS, _client_tools),
        WireEncoder("events", "GET /api/events", STREAM_HEADERS, _events),
    )


def _ui_stream(recorded: RecordedCall) -> list[CallFrame]:
    if recorded.run is None:
        return []
    return _frames(UiStreamEncoder(Chunks(recorded.run.run_id), with_ids=True), recorded)


def _agui(recorded: RecordedCall) -> list[CallFrame]:
    """As one response after the other: each ends at a pause, with the calls that the page may execute."""
    if recorded.run is None:
        return []
    run, call, frames = recorded.run, recorded.call, []
    encoder = AguiEncoder(run, RunName(run.thread_id, run.alias or run.run_id, is_versioned=True))
    names = [call.call_id, *([] if call.approval is None else [call.approval.approval_id])]
    for entry in recorded.entries:
        text = encoder.encode_events((entry,))
        is_answered = isinstance(entry.event, ApprovalAnswered) and not encoder.questions
        if encoder.is_paused and (is_answered or isinstance(entry.event, RunParked)):
            text += encoder.pause({})
            encoder.ended = False
        if any(name.encode() in text for name in names):
            frames.append(CallFrame(entry.seq, text))
    return frames


def _awaiting(style: Format, model: str) -> EncodeCall:
    def encode(recorded: RecordedCall) -> list[CallFrame]:
        if recorded.run is None:
            return []
        meta = MetaInit(format=style, user_query="", agent_uuid=recorded.run.thread_id, model=model)
        return _frames(AwaitingEncoder(StreamStart(run_id=recorded.run.run_id, meta=meta)), recorded)

    return encode


def _frames(encoder: RunEncoder, recorded: RecordedCall) -> list[CallFrame]:
    """As a reader receives them that stays connected through every pause."""
    frames = []
    for entry in recorded.entries:
        if isinstance(entry.event, RunParked):
            continue
        text = encoder.encode_events((entry,))
        if text and _is_about(entry, recorded.call.call_id):
            frames.append(CallFrame(entry.seq, text))
    return frames


def _events(recorded: RecordedCall) -> list[CallFrame]:
    return [
        CallFrame(entry.seq, encode_news(_news(entry, recorded.run), recorded.call))
        for entry in recorded.entries
        if _is_about(entry, recorded.call.call_id) and not hasattr(entry.event, "text")
    ]


def _news(entry: Entry, run: Run | None) -> News:
    """A feed numbers per owner; here the number in the journal is used instead."""
    known = (None, None) if run is None else (run.thread_id, run.run_id)
    return News(entry.seq, entry.at, entry.event, *known)


def _client_tools(recorded: RecordedCall) -> list[CallFrame]:
    call = recorded.call
    if call.executor is not Executor.CLIENT:
        return []
    offered, ended = encode_items([OfferedCall(call)]), encode_items([EndedCall(call)])
    if recorded.run is None:
        return [CallFrame(None, offered), *([] if call.outcome is None else [CallFrame(None, ended)])]
    about = [entry for entry in recorded.entries if _is_about(entry, call.call_id)]
    return [
        CallFrame(entry.seq, ended if isinstance(entry.event, CallSettled) else offered)
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
