"""Appends and snapshots as bytes: JSON, so that a log can be read without farhand."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from farhand.core import state as fold
from farhand.core.log import Event
from farhand.core.principal import Owner
from farhand.core.state import ThreadState
from farhand.errors import Unreadable
from farhand.store.log.base import Loaded, Row


class Body(Struct, frozen=True, gc=False, omit_defaults=True):
    """The events of one append, with what a reader needs to number them without the state: the thread's run
    before them and the number of its last event; and the places of events that belong to no run."""

    events: tuple[Event, ...]
    run_id: str | None = None
    seq: int = 0
    outside: tuple[int, ...] = ()


_encoder = msgspec.json.Encoder()
_body = msgspec.json.Decoder(Body)
_snapshot = msgspec.json.Decoder(ThreadState)


def encode_body(body: Body) -> bytes:
    return _encoder.encode(body)


def decode_body(row: Row) -> Body:
    """`Unreadable` for a row that another version wrote or a disk damaged."""
    try:
        return _body.decode(row.body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(f"Row {row.version} of a thread's log cannot be read: {error}") from None


def encode_snapshot(thread: ThreadState) -> bytes:
    return _encoder.encode(thread)


def fold_loaded(owner: Owner, thread_id: str, loaded: Loaded) -> ThreadState:
    """The state that a snapshot and the rows after it make."""
    thread = ThreadState(owner=owner, thread_id=thread_id)
    if loaded.snapshot is not None:
        try:
            thread = _snapshot.decode(loaded.snapshot)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreadable(f"The snapshot of a thread cannot be read: {error}") from None
    for row in loaded.rows:
        fold.append(thread, decode_body(row).events, row.at)
    return thread
