"""Records as they are stored: JSON in a `body`, a run in columns. Knows no connection and no rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from farhand.core.call import Call
from farhand.core.client import Client
from farhand.core.event import Entry, Event, Happening, News
from farhand.core.file import StoredFile
from farhand.core.principal import Owner
from farhand.core.run import Run, RunState
from farhand.core.thread import Message, Thread
from farhand.core.tool import Tool
from farhand.store.base import Due

# a row of a driver: what is in it follows from the columns that were asked for
Columns: TypeAlias = Any
Unknown: TypeAlias = dict[str, msgspec.Raw]

encode = msgspec.json.Encoder().encode
thread_of = msgspec.json.Decoder(Thread).decode
client_of = msgspec.json.Decoder(Client).decode
file_of = msgspec.json.Decoder(StoredFile).decode
_call_of = msgspec.json.Decoder(Call).decode
_tool_of = msgspec.json.Decoder(Tool).decode
_message_of: Callable[[bytes], Message] = msgspec.json.Decoder(Message).decode
_event_of: Callable[[bytes], Event] = msgspec.json.Decoder(Event).decode
_events_of: Callable[[bytes], list[Event]] = msgspec.json.Decoder(list[Event]).decode
_happening_of: Callable[[bytes | msgspec.Raw], Happening] = msgspec.json.Decoder(Happening).decode
_apart: Callable[[bytes], list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw]).decode
_fields_of: Callable[[bytes], Unknown] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def body_of_thread(row: Columns) -> Thread:
    return thread_of(row[0])


def body_of_message(row: Columns) -> Message:
    return _message_of(row[0])


def body_of_call(row: Columns) -> Call:
    return _call_of(row[0])


def call_if_readable(row: Columns) -> Call | None:
    """For scans over everybody's calls: one that this version cannot read must not hide the others."""
    try:
        return _call_of(row[0])
    except ValueError:
        return None


def call_if_there(row: Columns) -> Call | None:
    """Of a list of one body or none."""
    return _call_of(row[0][0]) if row[0] else None


def calls_in(row: Columns) -> list[Call]:
    """Of a list of bodies."""
    return [_call_of(body) for body in row[0]]


def messages_of(row: Columns) -> list[Message]:
    """Of a list of bodies."""
    return [_message_of(body) for body in row[0]]


def body_of_tool(row: Columns) -> Tool:
    return _tool_of(row[0])


def tool_if_there(row: Columns) -> Tool | None:
    """Of a list of one body or none."""
    return _tool_of(row[0][0]) if row[0] else None


def body_of_client(row: Columns) -> Client:
    return client_of(row[0])


def entry_of(row: Columns) -> Entry:
    return Entry(row[0], _event_of(row[1]), row[2])


def entries_of(row: Columns) -> list[Entry]:
    """Of the number of the last one, a body with all of them, and their time."""
    last, body, at = row
    events = _events_of(body)
    return [Entry(seq, event, at) for seq, event in enumerate(events, last - len(events) + 1)]


def news_of(row: Columns) -> News:
    return News(row[0], row[1], _happening_of(row[2]), row[3], row[4])


def news_among(row: Columns) -> News:
    """The same, of a body with several events: the sixth column tells how many of them come after it; None if
    the body is its own."""
    behind = row[5]
    if behind is None:
        return news_of(row)
    return News(row[0], row[1], _happening_of(_apart(row[2])[-1 - behind]), row[3], row[4])


def due_of(row: Columns) -> Due:
    return Due(row[0], Owner(row[1], row[2]), row[3])


def number_of(row: Columns) -> int:
    return int(row[0])


def span_of(row: Columns) -> tuple[int, int]:
    return row[0], row[1]


def run_of(row: Columns) -> Run:
    """Of the columns run_no, run_id, tenant, subject, thread_id, state, parked, step, fence, lease_until,
    last_seq, blockers, started_at, hold_for, ended_at, error."""
    return Run(
        run_id=row[1],
        owner=Owner(row[2], row[3]),
        thread_id=row[4],
        state=RunState(row[5]),
        parked=bool(row[6]),
        step=row[7],
        fence=row[8],
        lease_until=row[9],
        last_seq=row[10],
        blockers=row[11],
        started_at=row[12],
        hold_for=row[13],
        ended_at=row[14],
        error=row[15],
    )


def run_if_there(row: Columns) -> Run | None:
    """Of a list of one run's columns, or none."""
    return run_of(row[0][0]) if row[0] else None


def named_run_of(row: Columns) -> tuple[str, Run | None]:
    """For scans over everybody's runs: one that this version cannot read must not hide the others."""
    try:
        return row[1], run_of(row)
    except ValueError:
        return row[1], None


def stray_at(run: Run) -> float | None:
    """From when on nobody advances the run though somebody could."""
    if run.ended_at is not None:
        return None
    if run.parked:
        return 0.0 if run.could_go_on else None
    return run.lease_until


def unknown_in(body: bytes, known: type[Struct]) -> Unknown:
    """The fields that a newer version of farhand has put beside ours."""
    fields = _fields_of(body)
    for name in known.__struct_fields__:
        fields.pop(name, None)
    return fields


def encode_with(unknown: Unknown, record: Struct) -> bytes:
    body = encode(record)
    return encode(_fields_of(body) | unknown) if unknown else body
