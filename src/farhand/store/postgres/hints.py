"""What one process tells the others: something about this has changed, go and look.

A hint is a list that begins with its kind. Several make one notification, which the database keeps below
8000 bytes. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec

from farhand.core.call import Call
from farhand.store.hub import asked_of, feed_of, freed
from farhand.store.told import Told

BYTES = 7800

GREW = "grew"
"""A run's journal: its id, and the number of the first new entry."""
MOVED = "moved"
"""A topic of the hub that has something new."""
LOOK = "look"
"""A topic of the hub whose news are records: watchers have to read them."""
CLAIMED = "claimed"
"""A run that was taken from whoever held it."""
CLIENTS = "clients"
"""An owner, whose registrations changed."""
READ = "read"
"""A topic that somebody watches in the process that says so."""
UNREAD = "unread"
"""A topic that nobody watches there any more."""
HERE = "here"
"""The process that says so is there; it should hear that itself."""
WHO = "who"
"""Who watches what? Asked by a process that may have missed it."""
ASIDE = "aside"
"""A topic and an item that one process tells all others, without a record behind it."""
ALL = "all"
"""There was too much to tell: look at everything."""

Hint: TypeAlias = tuple[str | int, ...]

_decode = msgspec.json.Decoder(tuple[str, list[list[str | int]]]).decode


def hints_of(told: Told) -> Iterator[Hint]:
    """What other processes may want to hear of one commit."""
    for run_id, entries in told.entries.items():
        yield GREW, run_id, entries[0].seq
    for call in told.calls:
        yield from _hints_of_call(call, told)
    for run_id in told.claimed:
        yield CLAIMED, run_id
    for owner in told.feeds:
        yield MOVED, feed_of(owner)
    for owner in told.clients:
        yield CLIENTS, owner.tenant, owner.subject


def _hints_of_call(call: Call, told: Told) -> Iterator[Hint]:
    yield MOVED, call.call_id
    run = None if call.run_id is None else told.runs.get(call.run_id)
    if run is not None and run.blockers == 0 and not run.parked:
        yield MOVED, freed(run.run_id)
    if call.client_id is not None:
        yield LOOK, asked_of(call.owner, call.client_id)


def notifications(sender: str, hints: Iterable[Hint]) -> list[str]:
    """Each hint once, in as few notifications as possible."""
    parts = [msgspec.json.encode(hint) for hint in dict.fromkeys(hints)]
    whole = [part if len(part) < BYTES - 200 else b'["all"]' for part in parts]
    notes: list[str] = []
    some: list[bytes] = []
    size = 0
    for part in whole:
        if size + len(part) > BYTES - 200:
            notes.append(_note(sender, some))
            some, size = [], 0
        some.append(part)
        size += len(part) + 1
    return [*notes, _note(sender, some)] if some else notes


def is_from(sender: str, text: str) -> bool:
    """Without reading the rest: whoever says much hears all of it again."""
    return text.startswith(f'["{sender}",')


def read_note(text: str) -> tuple[str, list[list[str | int]]]:
    """Who said it, and the hints; of one that this version cannot read: look at everything."""
    try:
        return _decode(text)
    except msgspec.DecodeError:
        return "", [[ALL]]


def _note(sender: str, parts: list[bytes]) -> str:
    return (b'["%s",[%s]]' % (sender.encode(), b",".join(parts))).decode()
