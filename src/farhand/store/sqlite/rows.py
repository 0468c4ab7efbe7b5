"""Records as rows: JSON in `body`, a run in columns. Knows the columns; knows no connection and no rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

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

RUN = """
    SELECT run_no, thread_no, run_id, tenant, subject, thread_id, state, parked, step, fence, lease_until,
           max(last_seq, coalesce((SELECT max(seq) FROM events WHERE events.run_no = runs.run_no), 0)),
           blockers, started_at, ended_at, error, hold_for
    FROM runs JOIN threads USING (thread_no)
"""

RUN_BY_ID = RUN + " WHERE run_id = ?"

RunColumns: TypeAlias = tuple[
    int, int, str, str, str, str, str, int, int, int, float, int, int, float, float | None, str | None, float
]

Unknown: TypeAlias = dict[str, msgspec.Raw]
Body: TypeAlias = tuple[bytes]
"""A row with nothing but a record in it."""

encode = msgspec.json.Encoder().encode
thread_of = msgspec.json.Decoder(Thread).decode
_call_of = msgspec.json.Decoder(Call).decode
client_of = msgspec.json.Decoder(Client).decode
file_of = msgspec.json.Decoder(StoredFile).decode
_tool_of = msgspec.json.Decoder(Tool).decode
_message_of: Callable[[bytes], Message] = msgspec.json.Decoder(Message).decode
_event_of: Callable[[bytes], Event] = msgspec.json.Decoder(Event).decode
_happening_of: Callable[[bytes], Happening] = msgspec.json.Decoder(Happening).decode
_fields_of: Callable[[bytes], Unknown] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def body_of_thread(row: Body) -> Thread:
    return thread_of(row[0])


def body_of_message(row: Body) -> Message:
    return _message_of(row[0])


def body_of_call(row: Body) -> Call:
    return _call_of(row[0])


def body_of_tool(row: Body) -> Tool:
    return _tool_of(row[0])


def entry_of(row: tuple[int, bytes, float]) -> Entry:
    return Entry(row[0], _event_of(row[1]), row[2])


def body_of_client(row: Body) -> Client:
    return client_of(row[0])


def news_of(row: tuple[int, float, bytes, str | None, str | None]) -> News:
    return News(row[0], row[1], _happening_of(row[2]), row[3], row[4])


def due_of(row: tuple[float, str, str, str]) -> Due:
    return Due(row[0], Owner(row[1], row[2]), row[3])


def run_of(row: RunColumns) -> Run:
    return Run(
        run_id=row[2],
        owner=Owner(row[3], row[4]),
        thread_id=row[5],
        state=RunState(row[6]),
        parked=row[7] == 1,
        step=row[8],
        fence=row[9],
        lease_until=row[10],
        last_seq=row[11],
        blockers=row[12],
        started_at=row[13],
        hold_for=row[16],
        ended_at=row[14],
        error=row[15],
    )


def unknown_in(body: bytes, known: type[Struct]) -> Unknown:
    """The fields that a newer version of farhand has put beside ours."""
    fields = _fields_of(body)
    for name in known.__struct_fields__:
        fields.pop(name, None)
    return fields


def encode_with(unknown: Unknown, record: Struct) -> bytes:
    body = encode(record)
    return encode(_fields_of(body) | unknown) if unknown else body
